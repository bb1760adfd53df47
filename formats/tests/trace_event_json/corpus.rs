//! Valid, unusual and malformed inputs, and the expected items.

use super::*;

#[track_caller]
fn reads(trace: &str, expected: &[&str]) {
    assert_eq!(lines(trace.as_bytes()), expected, "{trace}");
    assert_eq!(lines(Slow::new(trace.as_bytes())), expected, "byte by byte: {trace}");
}

#[test]
fn a_trace_can_have_no_events() {
    for trace in [
        "",
        " \n",
        "\u{feff}",
        "[",
        "[]",
        "[ ] ",
        "{",
        "{}",
        "{ }\n",
        "\u{feff}[]",
        "[,]",
        "[{}",
        "{\"traceEvents\":[",
    ] {
        let expected: &[&str] = if trace == "[{}" { &["1 {}"] } else { &[] };
        reads(trace, expected);
    }
}

#[test]
fn the_example_of_the_document_is_read_with_and_without_its_bracket() {
    let events = r#"[ {"name": "Asub", "cat": "PERF", "ph": "B", "pid": 22630, "tid": 22630, "ts": 829},
 {"name": "Asub", "cat": "PERF", "ph": "E", "pid": 22630, "tid": 22630, "ts": 833} "#;
    let expected = [
        r#"2 {"name":"Asub","cat":"PERF","ph":"B","ts":829,"pid":22630,"tid":22630}"#,
        r#"86 {"name":"Asub","cat":"PERF","ph":"E","ts":833,"pid":22630,"tid":22630}"#,
    ];
    for end in ["", "]", "]\n", ",", ",]"] {
        reads(&format!("{events}{end}"), &expected);
    }
}

#[test]
fn events_are_found_everywhere_in_the_object_form() {
    reads(
        r##"{"displayTimeUnit": "ns", "otherData": {"version": "1 ]}"}, "stackFrames": {"5": {"category": "libc", "name": "f", "parent": 4}},
"traceEvents": [{"ph":"M"},{"ph":"X"}], "samples": [{"cpu":0, "tid": 1, "ts": 1000.5, "name": "cycles:HG", "sf": 3, "weight": 1}],
"systemTraceEvents": "# tracer: \"nop\"", "powerTraceAsString":"x", "mine": 1, "traceEvents": [{"ph":"E"}]}"##,
        &[
            r#"1 displayTimeUnit: "ns""#,
            r#"26 otherData: {"version": "1 ]}"}"#,
            r#"76 StackFrame(StackFrame { id: "5", category: "libc", name: "f", parent: Some(Number(4)) })"#,
            r#"146 {"ph":"M"}"#,
            r#"157 {"ph":"X"}"#,
            r#"182 Sample(Sample { cpu: Some(Number(0)), tid: Some(Number(1)), ts: Some(1000500), name: "cycles:HG", sf: Some(Number(3)), weight: Some(Number(1)) })"#,
            r##"261 systemTraceEvents: "# tracer: \"nop\"""##,
            r#"303 powerTraceAsString: "x""#,
            "329 mine: 1",
            r#"356 {"ph":"E"}"#,
        ],
    );
}

#[test]
fn a_member_that_only_resembles_the_events_is_a_member() {
    reads(
        r#"{"traceEvents": "[]", "samples": {}, "stackFrames": []}"#,
        &[r#"1 traceEvents: "[]""#, "22 samples: {}", "37 stackFrames: []"],
    );
}

#[test]
fn an_event_may_have_a_member_named_as_the_list_of_events() {
    reads(
        r#"[{"traceEvents":3,"ph":"B","ts":1},{"traceEvents":[4],"ph":"E","ts":2}]"#,
        &[r#"1 {"ph":"B","ts":1} +1"#, r#"35 {"ph":"E","ts":2} +1"#],
    );
    reads(
        "{\"traceEvents\":3,\"ph\":\"B\",\"ts\":1}\n{\"ph\":\"E\",\"ts\":2}",
        &[r#"0 {"ph":"B","ts":1} +1"#, r#"34 {"ph":"E","ts":2}"#],
    );
}

#[test]
fn fields_of_unexpected_types_are_read() {
    reads(
        r#"[{"name":5,"cat":null,"ph":"X","ts":"1.5","dur":2e1,"tts":null,"pid":"main","tid":7.0,"id":-1,"scope":{"a": 1},"flow_in":1,"flow_out":0,"id2":[1],"args":null}"#,
        &[
            r#"1 {"name":"5","ph":"X","ts":1.5,"dur":20,"pid":"main","tid":7,"id":-1,"scope":"{\"a\": 1}","flow_in":true}"#,
        ],
    );
}

#[test]
fn the_last_of_two_equal_names_counts_and_escapes_in_names_are_decoded() {
    reads(
        r#"[{"ts":1,"na\u006de":"a","ts":2,"name":"b\/\ud834\udd1e","x":1,"y":2}"#,
        &[r#"1 {"name":"b/𝄞","ts":2} +2"#],
    );
}

#[test]
fn phases_that_are_no_single_letter_are_none() {
    for (ph, expected) in
        [("\"\"", None), ("\"XX\"", Some(Phase::Complete)), ("7", None), ("\"é\"", Some(Phase::Other('é')))]
    {
        with_event(&format!("{{\"ph\":{ph}}}"), |event| assert_eq!(event.ph, expected));
    }
}

#[test]
fn metadata_has_the_content_of_its_name() {
    let says = |name: &str, args: &str, expected: Option<Metadata<'_>>| {
        let event = format!(r#"{{"ph":"M","name":"{name}","args":{args}}}"#);
        with_event(&event, |event| assert_eq!(event.metadata(), expected, "{name} {args}"));
    };
    says("process_name", r#"{"name":"a\n"}"#, Some(Metadata::ProcessName("a\n".into())));
    says("process_labels", r#"{"labels":"a,b"}"#, Some(Metadata::ProcessLabels("a,b".into())));
    says("process_sort_index", r#"{"sort_index":-5}"#, Some(Metadata::ProcessSortIndex(-5)));
    says("thread_name", r#"{"name":"main"}"#, Some(Metadata::ThreadName("main".into())));
    says("thread_sort_index", r#"{"sort_index":5}"#, Some(Metadata::ThreadSortIndex(5)));
    says("thread_name", r#"{"name":5}"#, None);
    says("thread_name", "[]", None);
    says("num_cpus", r#"{"number":8}"#, None);
    with_event(r#"{"ph":"X","name":"thread_name","args":{"name":"a"}}"#, |event| {
        assert_eq!(event.metadata(), None);
    });
}

#[test]
fn a_malformed_event_is_read_as_what_it_means() {
    const NO_TIME: &str = "ts is no number of microseconds in the range of 64 bits of nanoseconds";
    reads(
        r#"[{"ph":"X","ts":tomorrow},{"ph":"B","ts":"tomorrow"},{"a":NaN},{"a" 1},{1},{"ts":18446744073709551615},{"ts":1}]"#,
        &[
            &format!("byte 1: {NO_TIME}"),
            &format!("byte 41: {NO_TIME}"),
            "53 {} +1",
            "63 {} +1",
            "71 {} +1",
            &format!("byte 81: {NO_TIME}"),
            r#"103 {"ts":1}"#,
        ],
    );
    reads("[{\n\"name\":\n\"\u{1}\"},{}]", &[r#"1 {"name":"\u0001"}"#, "16 {}"]);
    reads(
        r#"[{"ph":"X","args":{"load":NaN,},"tts":never,"name":"a"}]"#,
        &[r#"1 {"name":"a","ph":"X","args":{"load":"NaN"}} +1"#],
    );
}

#[test]
fn the_events_of_all_traces_in_a_file_are_read() {
    let event = r#"{"ph":"X"}"#;
    for (trace, restarts, skipped) in [
        (format!("{event}\n{event}\n{event}"), 0, 0),
        (format!("{event}{event},{event}"), 0, 0),
        (format!("[{event},{event}]\n[{event}]"), 1, 0),
        (format!("{{\"traceEvents\":[{event}]}}{{\"traceEvents\":[{event},{event}]}}"), 1, 0),
        (format!("[{event},{event}]\ndone [1]\n{event}"), 1, 1),
        (format!("[{event},{event}]\n[1, null,-2.5e3\n, \"a [b], {{c\", {event}]"), 1, 4),
        (format!("[{event},{event}]\n[x, {event}"), 1, 1),
        (format!("[{event},{event}]\n[12:30] \"run\"\n[1, 2]\n[{event}]"), 1, 2),
        (format!("[{event},\0\0\0\n{event},{event}]\0\0"), 0, 2),
        (format!("[{event} (12): run\", \"pid\": 1}},\n{event},{event}]"), 0, 1),
        (format!("{{\"traceEvents\":[{event}]}}\n,{event}\n,{event}]}}"), 1, 2),
    ] {
        let mut reader = JsonReader::new(trace.as_bytes());
        let mut events = 0;
        while let Some((_, item)) = reader.next().expect("no error") {
            events += u32::from(matches!(item, Item::Event(_)));
        }
        assert_eq!((events, reader.restarts(), reader.skipped()), (3, restarts, skipped), "{trace}");
    }
}

#[test]
fn values_that_are_no_events_are_passed_over_and_counted() {
    let mut reader = JsonReader::new(&br#"[null, 5, "a", [{"a":"X"}], {"ph":"B"}, true, -1.5]"#[..]);
    assert_eq!(reader.next().unwrap().map(|(offset, _)| offset), Some(28));
    assert!(reader.next().unwrap().is_none());
    assert_eq!(reader.skipped(), 6);
}

#[test]
fn an_input_that_is_no_trace_is_an_error_at_its_first_wrong_byte() {
    for (trace, expected) in [
        ("hello", "byte 0: [ or {, with which a trace begins, expected"),
        ("\0", "byte 0: [ or {, with which a trace begins, expected"),
        (",[]", "byte 0: [ or {, with which a trace begins, expected"),
        ("// c\n[]", "byte 0: [ or {, with which a trace begins, expected"),
    ] {
        reads(trace, &[expected]);
    }
    // An object ends where as many brackets are closed as opened, even if they do not match.
    reads("[{]}", &["1 {}"]);
    for trace in ["[}", "[x]", "[] []", "{}}", "{5:1}", r#"{"a" 1}"#, r#"{"a":}"#, r#"{"traceEvents":[}"#] {
        reads(trace, &[]);
    }
    reads("[1{}]", &["2 {}"]);
    reads("{\"a\":,\n\"b\":1}", &["7 b: 1"]);
    reads(r#"{"a":nul,"b":1}"#, &["byte 7: not JSON: EOF while parsing a value", "9 b: 1"]);
}

#[test]
fn bytes_that_are_not_utf8_are_replaced_and_counted() {
    let mut reader = JsonReader::new(&b"{\"k\xff\":1,\"traceEvents\":[{\"name\":\"a\xffb\"},{}]}"[..]);
    for expected in ["k\u{fffd}: 1", "{\"name\":\"a\u{fffd}b\"}", "{}"] {
        let (_, item) = reader.next().unwrap().unwrap();
        assert_eq!(line(&item), expected);
    }
    assert_eq!(reader.repairs(), 2);
}
