//! Traces that are truncated, huge, deeply nested or damaged.

use super::*;
use crate::common::damaged;

/// A small trace with all forms.
const SMALL: &str = r#"{"displayTimeUnit":"ns","o":{"a":[1,"}\""]},"stackFrames":{"1":{"name":"f"}},"traceEvents":[
{"name":"a\u00e9\\","ph":"B","ts":1.5,"args":{"x":[{}]}}, 7, {"ph":"E"}],"samples":[{"ts":2}],"n":-1.5e3,"t":true} "#;

fn is_truncated(line: &str) -> bool {
    line.contains("the input ends inside")
}

#[test]
fn a_trace_cut_at_any_byte_is_read() {
    let whole = lines(SMALL.as_bytes());
    assert_eq!(whole.len(), 8);
    for cut in 0..SMALL.len() {
        let mut read = lines(&SMALL.as_bytes()[..cut]);
        if read.last().is_some_and(|line| is_truncated(line)) {
            read.pop();
        }
        assert_eq!(read, whole[..read.len()], "cut at {cut}");
        let begun =
            whole.iter().filter(|line| line.split(' ').next().unwrap().parse::<usize>().unwrap() < cut);
        assert!(begun.count() - read.len() <= 1, "cut at {cut}");
    }
}

#[test]
fn everything_before_a_cut_is_read() {
    for cut in 0..SMALL.len() {
        let mut reader = JsonReader::new(&SMALL.as_bytes()[..cut]);
        let error = loop {
            match reader.next() {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(e) => break Some(e),
            }
        };
        if let Some(e) = error {
            assert!(e.is_truncated(), "cut at {cut}: {e}");
            assert!(lines(&SMALL.as_bytes()[..e.offset as usize]).iter().all(|line| !is_truncated(line)));
        }
    }
}

#[test]
fn strings_of_a_megabyte_are_read() {
    let long = "long \\\" ".repeat(150_000);
    let trace = format!(r#"[{{"name":"{long}"}},{{"args":{{"a":"{long}"}}}},{{"ph":"X"}}]"#);
    let mut reader = JsonReader::new(trace.as_bytes());
    match reader.next().unwrap().unwrap() {
        (1, Item::Event(event)) => assert_eq!(event.name, long.replace('\\', "")),
        other => panic!("{other:?}"),
    }
    assert!(reader.next().unwrap().is_some());
    assert!(matches!(reader.next(), Ok(Some((_, Item::Event(event)))) if event.ph == Some(Phase::Complete)));
}

#[test]
fn objects_above_the_limit_are_passed_over() {
    let large = "x".repeat(100_000);
    let trace =
        format!(r#"{{"a":"{large}","traceEvents":[{{"name":"{large}"}},{{"ph":"X"}},"{large}"],"b":1}}"#);
    let (first, second) = (trace.find("{\"name").unwrap() as u64, trace.find("{\"ph").unwrap() as u64);
    for limit in [20, 50_000, 100_000] {
        for slow in [false, true] {
            let source: Box<dyn std::io::Read> =
                if slow { Box::new(Slow::new(trace.as_bytes())) } else { Box::new(trace.as_bytes()) };
            let mut reader = JsonReader::new(source).limit(limit);
            let e = reader.next().unwrap_err();
            assert_eq!(e.offset, first);
            assert!(
                matches!(e.kind, DecodeErrorKind::TooLarge { what: "an object", limit: l } if l == limit)
            );
            assert!(matches!(reader.next(), Ok(Some((at, Item::Event(_)))) if at == second), "limit {limit}");
            assert!(matches!(reader.next(), Ok(Some((_, Item::Member { .. })))));
            assert!(reader.next().unwrap().is_none());
            assert_eq!(reader.skipped(), 2);
        }
    }
}

#[test]
fn nothing_inside_of_an_object_above_the_limit_is_an_event() {
    let large = "x".repeat(100_000);
    let trace = format!(r#"[{{"args":[{{"ph":"B"}}],"ph":"X","a":"{large}"}},{{"ph":"E"}}]"#);
    for limit in [100, 50_000, 100_000] {
        let mut reader = JsonReader::new(trace.as_bytes()).limit(limit);
        assert!(matches!(reader.next().unwrap_err().kind, DecodeErrorKind::TooLarge { .. }));
        assert!(matches!(reader.next(), Ok(Some((_, Item::Event(event)))) if event.ph == Some(Phase::End)));
        assert!(reader.next().unwrap().is_none(), "limit {limit}");
    }
}

#[test]
fn a_name_or_white_space_above_the_limit_is_an_error() {
    for trace in [format!("{{\"{}\":1}}", "k".repeat(300)), format!("{{\"a\"{}:1}}", " ".repeat(300))] {
        let mut reader = JsonReader::new(trace.as_bytes()).limit(100);
        assert!(matches!(reader.next().unwrap_err().kind, DecodeErrorKind::Unexpected(_)));
        assert!(reader.next().unwrap().is_none());
    }
}

#[test]
fn nesting_of_any_depth_is_read() {
    const DEPTH: usize = 1_000_000;
    let (open, close) = ("{\"a\":".repeat(DEPTH), "}".repeat(DEPTH));
    let trace = format!("[{{\"args\":{open}1{close}}},{{\"ph\":\"X\"}}]");
    let mut reader = JsonReader::new(trace.as_bytes());
    match reader.next().unwrap().unwrap() {
        (1, Item::Event(event)) => event.args.each(|name, value| {
            let mut paths = Vec::new();
            value.flatten(&mut name.to_owned(), &mut |path, _| paths.push(path.len()));
            assert!(paths.len() == 1 && paths[0] < 100);
        }),
        other => panic!("{other:?}"),
    }
    assert!(matches!(reader.next(), Ok(Some((_, Item::Event(_))))));
    assert_eq!(lines("[".repeat(DEPTH).as_bytes()), ["byte 1: the input ends inside a value"]);
}

/// The names of the events, the number of faults, and the reader at the end.
fn names(trace: &[u8], limit: usize) -> (Vec<String>, usize, JsonReader<&[u8]>) {
    let mut reader = JsonReader::new(trace).limit(limit);
    let (mut names, mut faults) = (Vec::new(), 0);
    loop {
        match reader.next() {
            Ok(Some((_, Item::Event(event)))) => names.push(event.name.clone().into_owned()),
            Ok(Some(_)) => {}
            Ok(None) => return (names, faults, reader),
            Err(_) => faults += 1,
        }
    }
}

#[test]
fn an_object_whose_strings_have_no_end_is_passed_over() {
    for rest in ["y", " ", "\n", "}", "\\"] {
        let trace = format!("[{{\"a\":\"b\"x}}{}\n{{\"name\":\"a\",\"ph\":\"i\"}}", rest.repeat(9000));
        let (names, faults, _) = names(trace.as_bytes(), 1000);
        assert_eq!((names, faults), (vec!["a".to_owned()], 1), "{rest:?}");
    }
}

#[test]
fn a_second_run_is_read_where_the_first_one_did_not_close_its_brackets() {
    let event = |name| format!(r#"{{"name":"{name}","ph":"i"}}"#);
    let (a, b, c) = (event("a"), event("b"), event("c"));
    for trace in [
        format!("[\n{a},\n{b},\n[\n{c}\n]"),
        format!("[{a},{b}\n[{c},"),
        format!("[{a},{b},\n  {{\"traceEvents\":[{c}]}}"),
        format!("{{\"traceEvents\":[\n{a},\n{b},\n{{\"otherData\":{{}},\"traceEvents\":[\n{c}\n]}}\n"),
        format!("{{\"traceEvents\":[{a},{b}]\n{{\"traceEvents\":[{c}]}}"),
        format!("[{{\"traceEvents\":[{a}, {b}]}}, {{\"traceEvents\":[{c}]}}]"),
        format!("[[\n{a},\n{b}],\n[\n{c}\n]]"),
        format!("[{a}, [{b}], {c}]"),
        format!("[{a},\n[,{b},{c}"),
        format!("{{\"traceEvents\":[\n{a},\n{b},\n[\n{c}\n]"),
        format!("[{a},{{\"name\":\"b\",\"ph\":\"i\",\"args\":{{\"x\":\"cut\n[{c}]"),
        format!("[{a},{{\"name\":\"b\",\"ph\":\"i\",\"args\":{{\"x\":1,\n{{\"traceEvents\":[{c}]}}"),
    ] {
        let (names, faults, reader) = names(trace.as_bytes(), 1000);
        assert_eq!((names.concat(), faults), ("abc".to_owned(), 0), "{trace}");
        assert!(reader.restarts() > 0, "{trace}");
    }
    let trace = format!("[{a}, [1, {b}], {c}]");
    let (names, _, reader) = names(trace.as_bytes(), 1000);
    assert_eq!((names.concat(), reader.skipped(), reader.restarts()), ("ac".to_owned(), 1, 0));
}

#[test]
fn a_bracket_or_quote_too_many_costs_no_other_event_on_its_line() {
    let event = |name| format!(r#"{{"name":"{name}","ph":"i","args":{{"x":[1,"y"]}}}}"#);
    let (a, b, c) = (event("a"), event("b"), event("c"));
    for wrong in ["[", "{", "'", "{\"k\":[", "\n[", "],[,"] {
        for at in [r#"1,"y""#, r#""x""#, r#","ph""#] {
            let b = b.replace(at, &format!("{wrong}{at}"));
            for trace in
                [format!("[{a},{b},{c}]"), format!("{{\"traceEvents\": [{a}, {b}, {c}], \"d\": {{}}}}")]
            {
                let (names, _, _) = names(trace.as_bytes(), 1000);
                assert!(names.first().is_some_and(|name| name == "a"), "{trace}");
                assert!(names.last().is_some_and(|name| name == "c"), "{trace}");
            }
        }
    }
}

#[test]
fn an_event_that_is_json_is_whole_however_large_it_is() {
    let inner = "{\n\"name\": \"inner\",\n\"ph\": \"X\"\n},\n".repeat(5_000);
    let trace = format!("[{{\"name\":\"a\",\"args\":{{\"all\":[\n{inner}{{}}\n]}},\"ph\":\"i\"}}]");
    let (names, faults, reader) = names(trace.as_bytes(), 1 << 20);
    assert_eq!((names.concat(), faults, reader.mends()), ("a".to_owned(), 0, 0));
}

#[test]
fn events_that_are_not_read_are_neither_repaired_nor_mended() {
    let (names, faults, reader) = names(b"[{\"ts\":\"x\",\"args\":NaN,\"name\":\"\xe9\"}]", 1000);
    assert_eq!((names.len(), faults, reader.mends(), reader.repairs()), (0, 1, 0, 0));
}

/// Each of these took hours at this size while the time grew with its square.
#[test]
fn the_time_grows_no_faster_than_the_trace() {
    for piece in [
        "\n",
        "{",
        "\n{",
        "{\"a\":\"b\"x},",
        "{\"ph\":\"X\",\"args\":[\n",
        "]\n",
        "{\"",
        "{\"a\":\"\n{\",",
        "\",\"",
        "[{",
        "[1,\n",
        "1,\n",
        "[\"a\",1 ",
    ] {
        for begin in ["[", "[{\"a\":\"", "[{\"a\":[", "[]\n["] {
            let trace = format!("{begin}{}", piece.repeat((2 << 20) / piece.len()));
            names(trace.as_bytes(), 8 << 20);
        }
    }
}

#[test]
fn a_failing_input_is_an_error() {
    let mut reader = JsonReader::new(std::io::Read::chain(&b"[{\"ph\":"[..], Broken));
    assert!(matches!(reader.next(), Err(DecodeError { offset: 7, kind: DecodeErrorKind::Io(_) })));
    assert!(reader.next().unwrap().is_none());
}

proptest! {
    #[test]
    fn random_text_is_read_to_its_end(
        pieces in prop::collection::vec(
            prop::sample::select(vec!["[", "]", "{", "}", ",", ":", "\"", "\\", "1", "-", "true", "\"a\":", "\"ts\":", "\"traceEvents\":", " ", "\n", "é"]),
            0..60,
        ),
    ) {
        require_sane(pieces.concat().as_bytes());
    }

    #[test]
    fn a_damaged_trace_is_read_to_its_end(bytes in damaged(SMALL.as_bytes().to_vec())) {
        require_sane(&bytes);
    }
}

/// Reads without a panic and without endless errors; every error has an offset in the input, and the pieces
/// of the input make no difference.
fn require_sane(bytes: &[u8]) {
    let mut reader = JsonReader::new(bytes);
    let mut errors = 0;
    loop {
        match reader.next() {
            Ok(Some((offset, _))) => assert!(offset < bytes.len() as u64),
            Ok(None) => break,
            Err(e) => {
                assert!(e.offset <= bytes.len() as u64, "{e}");
                errors += 1;
            }
        }
    }
    assert!(errors <= bytes.len());
    assert_eq!(lines(bytes), lines(Slow::new(bytes)));
}
