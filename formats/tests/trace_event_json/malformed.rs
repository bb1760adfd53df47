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
