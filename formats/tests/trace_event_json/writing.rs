//! The text of written traces.

use super::*;

fn written(value: Value<'_>) -> String {
    let mut out = Vec::new();
    put_value(&mut out, &value);
    String::from_utf8(out).unwrap()
}

struct Nested;

impl Entries for Nested {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("a", Value::I64(1));
        show("\"", Value::Array(&Elements));
        show("empty", Value::Array(&Nothing));
    }
}

struct Elements;

impl Entries for Elements {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("", Value::Null);
        show("", Value::Dict(&Nothing));
    }
}

struct Nothing;

impl Entries for Nothing {
    fn each(&self, _: &mut dyn FnMut(&str, Value<'_>)) {}
}

struct Endless;

impl Entries for Endless {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("", Value::Array(&Endless));
    }
}

#[test]
fn each_type_of_value_has_its_form() {
    for (value, expected) in [
        (Value::Null, "null"),
        (Value::Bool(true), "true"),
        (Value::I64(i64::MIN), "-9223372036854775808"),
        (Value::U64(u64::MAX), "18446744073709551615"),
        (Value::Koid(7), "7"),
        (Value::F64(1.0), "1.0"),
        (Value::F64(-0.1), "-0.1"),
        (Value::F64(1e300), "1e300"),
        (Value::F64(5e-324), "5e-324"),
        (Value::F64(f64::NAN), "\"NaN\""),
        (Value::F64(f64::INFINITY), "\"inf\""),
        (Value::F64(f64::NEG_INFINITY), "\"-inf\""),
        (Value::Str("a\"\\/\n\u{1}\u{7f}é𝄞"), "\"a\\\"\\\\/\\n\\u0001\u{7f}é𝄞\""),
        (Value::Str("C:\\a\\\\"), r#""C:\\a\\\u005c""#),
        (Value::Str("\\"), r#""\u005c""#),
        (Value::Interned { iid: 5, text: "t" }, "\"t\""),
        (Value::Pointer(0xdead_beef), "\"0xdeadbeef\""),
        (Value::Blob(b"\x00\xff"), "\"00ff\""),
        (Value::Dict(&Nested), r#"{"a":1,"\"":[null,{}],"empty":[]}"#),
    ] {
        assert_eq!(written(value), expected);
    }
    assert_eq!(written(Value::Array(&Endless)), format!("{}\"...\"{}", "[".repeat(32), "]".repeat(32)));
}

#[test]
fn times_have_the_decimals_that_they_need() {
    for (ns, expected) in [
        (0, "0"),
        (1, "0.001"),
        (-1, "-0.001"),
        (10, "0.01"),
        (1_500, "1.5"),
        (12_000, "12"),
        (1_234_567_890_123_456_789, "1234567890123456.789"),
        (i64::MAX, "9223372036854775.807"),
        (i64::MIN, "-9223372036854775.808"),
    ] {
        let mut out = Vec::new();
        put_event(&mut out, &Event { ts: Some(ns), ..Event::default() });
        assert_eq!(String::from_utf8(out).unwrap(), format!("{{\"ts\":{expected}}}"));
    }
}

fn trace(writer: JsonWriter<Vec<u8>>) -> String {
    String::from_utf8(writer.finish().unwrap()).unwrap()
}

#[test]
fn the_array_form_has_an_event_a_line() {
    assert_eq!(trace(JsonWriter::array(Vec::new())), "[\n]\n");
    let mut writer = JsonWriter::array(Vec::new());
    writer.event(&Event::default()).unwrap();
    writer.event(&Event::default()).unwrap();
    assert_eq!(writer.member("a", &Value::Null).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    assert_eq!(trace(writer), "[\n{},\n{}\n]\n");
}

#[test]
fn the_object_form_has_members_before_and_after_its_events() {
    assert_eq!(trace(JsonWriter::object(Vec::new())), "{\"traceEvents\":[\n]}\n");
    let mut writer = JsonWriter::object(Vec::new());
    writer.display_time_unit(TimeUnit::Milliseconds).unwrap();
    writer.member("otherData", &Value::Dict(&Nested)).unwrap();
    writer.event(&Event::default()).unwrap();
    writer.event(&Event::default()).unwrap();
    writer.member("stackFrames", &Value::Dict(&Nothing)).unwrap();
    writer.member("samples", &Value::Array(&Nothing)).unwrap();
    assert_eq!(writer.event(&Event::default()).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    let text = trace(writer);
    let parsed: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(parsed["displayTimeUnit"], "ms");
    assert_eq!(parsed["otherData"]["a"], 1);
    assert_eq!(parsed["traceEvents"].as_array().unwrap().len(), 2);
    assert_eq!(lines(text.as_bytes()).len(), 4);

    // Members without events between them keep their order.
    let mut writer = JsonWriter::object(Vec::new());
    writer.member("a", &Value::I64(1)).unwrap();
    assert_eq!(trace(writer), "{\"a\":1,\n\"traceEvents\":[\n]}\n");
}

#[test]
fn a_flushed_output_is_a_trace() {
    let mut file = Vec::new();
    let mut writer = JsonWriter::object(&mut file);
    writer.event(&Event { ph: Some(Phase::Mark), ..Event::default() }).unwrap();
    writer.flush().unwrap();
    drop(writer);
    assert_eq!(lines(&file[..]), [r#"17 {"ph":"R"}"#]);
}

#[test]
fn a_failing_output_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("full"))
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let long = "x".repeat(100_000);
    let event = Event { name: long.as_str().into(), ..Event::default() };
    assert!(JsonWriter::array(Full).event(&event).is_err());
    assert!(JsonWriter::array(Full).finish().is_err());
}
