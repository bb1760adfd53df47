//! What objects that are not quite JSON mean.

use super::*;

/// What the object at the beginning of a text means, and the rest of the text.
#[track_caller]
fn read(text: &str) -> (String, &str) {
    let mut json = Vec::new();
    let Tolerated::End(end) =
        object((text.as_bytes(), true), Fresh::AtLine, &mut json, (&mut Ahead::default(), 0))
    else {
        panic!("no end: {text}")
    };
    let json = String::from_utf8(json).expect("text");
    serde_json::from_str::<serde_json::Value>(&json).unwrap_or_else(|e| panic!("{e}: {json}"));
    (json, &text[end..])
}

#[track_caller]
fn reads(text: &str, json: &str) {
    assert_eq!(read(text), (json.to_owned(), ""), "{text}");
}

#[test]
fn words_that_are_no_numbers_are_texts() {
    reads(r#"{"a":NaN,"b":-Infinity,"c":[inf,0x1f]}"#, r#"{"a":"NaN","b":"-Infinity","c":["inf","0x1f"]}"#);
    reads(r#"{"a":undefined,"b":None,"c":,"d":True}"#, r#"{"a":null,"b":null,"c":null,"d":true}"#);
    reads(r#"{"a":+1,"b":.5,"c":007,"d":1.}"#, r#"{"a":1,"b":0.5,"c":7,"d":1}"#);
}

#[test]
fn characters_that_are_not_escaped_stay() {
    reads(r#"{"a":"C:\Users\new","b":"D:\u12"}"#, r#"{"a":"C:\\Users\new","b":"D:\\u12"}"#);
    reads(r#"{"a":"C:\work\","b":1}"#, r#"{"a":"C:\\work\\","b":1}"#);
    reads(r#"{'a':'it\'s "it"','b':'\\','c':1}"#, r#"{"a":"it's \"it\"","b":"\\","c":1}"#);
    reads(r#"{'a':'C:\work\','c':1}"#, r#"{"a":"C:\\work\\","c":1}"#);
    reads("{\"a\":\"1\n2\t\u{1}\"}", r#"{"a":"1\u000a2\u0009\u0001"}"#);
}

#[test]
fn quotes_inside_a_string_stay() {
    reads(r#"{"name":"a "b", c","ph":"X"}"#, r#"{"name":"a \"b\", c","ph":"X"}"#);
    reads(
        r#"{"name":"{"x": "y", "z": 1}(2)","ph":"X"}"#,
        r#"{"name":"{\"x\": \"y\", \"z\": 1}(2)","ph":"X"}"#,
    );
    reads(r#"{"name":"op "" _kg","pid":1}"#, r#"{"name":"op \"\" _kg","pid":1}"#);
    reads(r#"{"args":{"a":"say "hi"","b":1}}"#, r#"{"args":{"a":"say \"hi\"","b":1}}"#);
}

#[test]
fn quotes_and_commas_may_be_missing() {
    reads(r#"{"name":"a, "ph":"X"}"#, r#"{"name":"a","ph":"X"}"#);
    reads(r#"{"ts":1,tid": 0,pid:2,'cat':'c'}"#, r#"{"ts":1,"tid":0,"pid":2,"cat":"c"}"#);
    reads(r#"{"a":1 "b":"2" "c":3,,}"#, r#"{"a":1,"b":"2","c":3}"#);
    reads(r#"{"a":[1,2,],"b":[3}}"#, r#"{"a":[1,2],"b":[3]}"#);
}

#[test]
fn a_line_that_begins_an_event_ends_the_object_before_it() {
    let next = r#"{"name":"b","ph":"X"}"#;
    for (cut, json) in [
        (r#"{"ph":"X","name":"a"#, r#"{"ph":"X","name":"a"}"#),
        (r#"{"ph":"X","args":{"a":[1,"#, r#"{"ph":"X","args":{"a":[1]}}"#),
        (r#"{"ph":"X","na"#, r#"{"ph":"X","na":null}"#),
        (r#"{"ph":"X","#, r#"{"ph":"X"}"#),
    ] {
        let text = format!("{cut}\n{next}");
        let (found, rest) = read(&text);
        assert_eq!((found.as_str(), rest.trim_start()), (json, next), "{text}");
    }
    // As a value, only the event after it is a fresh start.
    let text = format!("{{\"ph\":\"X\",\"args\":\n{next},\n{next}");
    assert_eq!(read(&text).1, next);
    let (json, rest) = read("{\"a\":\"text\n{\\\"b\\\":1}\"}");
    assert_eq!((json.as_str(), rest), (r#"{"a":"text\u000a{\"b\":1}"}"#, ""));
}

#[test]
fn an_object_is_the_same_however_many_bytes_are_there() {
    let text = "{\"name\":\"a \"b\", \\q\",\"args\":{\"x\":nan},\n\"ph\":\"X\"},\n{\"ph\":\"X\"}";
    let (json, rest) = read(text);
    let len = text.len() - rest.len();
    for cut in 1..text.len() {
        let mut partly = Vec::new();
        match object((&text.as_bytes()[..cut], false), Fresh::AtLine, &mut partly, (&mut Ahead::default(), 0))
        {
            Tolerated::More => assert!(cut < len + 4, "{cut}"),
            Tolerated::End(end) => assert_eq!((end, partly), (len, json.clone().into_bytes())),
        }
    }
}
