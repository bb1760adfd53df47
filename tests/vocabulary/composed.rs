//! Names made at run time, nested arguments and arguments at the end: the hot path composes such a record.
//! What it cannot write takes the cold path, and says the same.

use std::collections::BTreeMap;

use hairline::{Format, Overflow, bytes, interned, koid, scope, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, record, record_with};

#[derive(serde::Serialize)]
struct Outer<'a> {
    text: &'a str,
    inner: Inner,
    none: Option<u8>,
    by_number: BTreeMap<u8, i64>,
}

#[derive(serde::Serialize)]
enum Inner {
    Unit,
    Pair(u64, f64),
    Named { low: i64 },
}

/// Lengths around those at which a copy, a length's varint, a buffer or the path changes.
const LENGTHS: [usize; 19] = [0, 1, 3, 4, 7, 8, 9, 16, 17, 32, 33, 119, 120, 121, 127, 128, 129, 900, 1200];

/// Events of every shape, in slices of this thread.
fn everything() {
    for len in LENGTHS {
        let text = "é".repeat(len / 2) + &"x".repeat(len % 2);
        let map = BTreeMap::from([("a", i64::MIN), ("another key", len as i64)]);
        let inner = match len % 3 {
            0 => Inner::Unit,
            1 => Inner::Pair(u64::MAX, 0.25),
            _ => Inner::Named { low: -1 },
        };
        let by_number = BTreeMap::from([(7, -7), (200, 0)]);
        let outer = Outer { text: &text, inner, none: None, by_number };
        {
            trace_scope!("t", "named", len, name: format!("named {text}"));
            let mut late = scope!("t", "late");
            late.arg("text", &text).arg("i", -1_i32).arg("u", u64::MAX).arg("yes", true);
            trace_scope!("t", "nested", list = [len, 2], map, empty = [0_u8; 0]);
        }
        trace_instant!("t", "serde", outer = hairline::serialize(&outer), name: "an instant by serde");
        trace_instant!("t", "texts", shown = %text, debug = ?text, words = [&text, "two"]);
        let mut many = scope!("t", "many");
        for key in ["a", "b", "c", "d", "e", "f", "g"].iter().take(len % 8) {
            many.arg(key, 0.5);
        }
        many.arg("nested", [[1], [2]]).arg("text", &text);
        let mut odd = scope!("t", "odd", interned = interned("of all"), name: "with an interned text");
        odd.arg("none", None::<u8>)
            .arg("blob", bytes(&[0, 255]))
            .arg("id", koid(3))
            .arg("map", &outer.by_number);
    }
    let mut scope = scope!("t", "a long key");
    scope.arg("k".repeat(1100).leak(), 1).arg("n", 2);
}

/// Numbers of every kind at the end of a scope: one, two, and one before others.
fn numbers() {
    macro_rules! numbers {
        ($($number:expr),*) => {$({
            let mut one = scope!("t", "one");
            one.arg("number", $number);
            let mut named = scope!("t", "named", name: "one with a name");
            named.arg("n", $number);
            let mut two = scope!("t", "two");
            two.arg("first", $number).arg("second number", $number);
            let mut more = scope!("t", "more");
            more.arg("first", $number).arg("text", "t").arg("last", $number);
            let mut three = scope!("t", "three", list = [1]);
            three.arg("a", $number).arg("b", None::<i8>).arg("c", $number).arg("d", $number);
        })*};
    }
    numbers!(0_u8, 127_u8, 128_u16, 16_383_u16, 16_384_u32, u32::MAX, 1_u64 << 32, u64::MAX);
    numbers!(-1_i8, i32::MIN, i32::MAX, i64::from(i32::MIN) - 1, i64::from(i32::MAX) + 1, i64::MIN);
    numbers!(0.5, f64::MAX, true, false, koid(7), koid(u64::MAX), std::ptr::without_provenance::<u8>(0xf00d));
    for len in (0..=10).chain(95..=105).chain([127, 128, 999, 1000]) {
        let key: &str = "k".repeat(len).leak();
        let mut one = scope!("t", "key");
        one.arg(key, len);
        let mut two = scope!("t", "keys");
        two.arg("n", 1).arg(key, i64::MIN);
    }
}

/// Texts at the end of a scope: alone, and with others.
fn texts() {
    let text = "é".repeat(32);
    for len in (0..=10).chain(15..=17).chain(30..=34).chain(38..=42) {
        let text = format!("{}{}", &text[..len / 2 * 2], &"x"[..len % 2]);
        let key: &str = "k".repeat(len).leak();
        scope!("t", "text").arg("text", &text);
        scope!("t", "key of a text").arg(key, "done");
        scope!("t", "key of a text as long").arg(key, &text);
        scope!("t", "two texts").arg("first", &text).arg("second", &text);
        scope!("t", "text and number").arg("first", &text).arg("second", len);
        scope!("t", "number and text").arg("first", len).arg("second", &text);
        scope!("t", "text and null").arg("first", &text).arg("second", None::<u8>);
        scope!("t", "null and text").arg("first", None::<u8>).arg("second", &text);
        let mut named = scope!("t", "named", name: key);
        named.arg("text", &text);
    }
}

fn lines(text: &str) -> Vec<String> {
    let mut all: Vec<String> = text.lines().map(str::to_owned).collect();
    all.sort();
    all
}

/// A session with source locations records every event on the cold path.
#[test]
fn the_hot_path_says_what_the_cold_path_says() {
    const SLICES: &str = "select depth, name, dur >= 0 from slice order by ts, id";
    for format in FORMATS {
        let events = || {
            for _ in 0..2 {
                everything();
                numbers();
                texts();
            }
        };
        let hot = record(format, |_| events());
        let cold = record_with(format, |b| b.source_locations(true), |_| events());
        let of_cold = cold.arguments();
        let without_source: Vec<&str> =
            of_cold.lines().filter(|l| !l.contains(": source") && !l.contains("source.")).collect();
        assert_eq!(lines(&hot.arguments()), lines(&without_source.join("\n")), "{format:?}");
        assert_eq!(hot.rows(SLICES), cold.rows(SLICES), "{format:?}");
        assert_eq!(hot.summary.lost.total() + cold.summary.lost.total(), 0, "{format:?}");
    }
}

/// Chunks of 4 KiB end at every offset within such records: with exactly enough room, and with a byte less.
#[test]
fn every_record_is_whole_wherever_a_chunk_ends() {
    const ROUNDS: usize = 4000;
    for format in FORMATS {
        for overflow in [Overflow::Drop, Overflow::Overwrite] {
            let small = |b: hairline::SessionBuilder| {
                let size = if overflow == Overflow::Overwrite { 4 << 20 } else { 64 << 20 };
                b.overflow(overflow).chunk_size(4096).buffer_size(size)
            };
            let trace = record_with(format, small, |_| {
                let name = "n".repeat(60);
                trace_scope!("t", "outermost", name: "outermost of this run");
                for n in 0..ROUNDS {
                    let len = n % 53;
                    trace_scope!("t", "named", name: &name[..=len]);
                    let mut late = scope!("t", "late", list = [len, n]);
                    late.arg("text", &name[..len]).arg("n", n);
                    let mut one = scope!("t", "one");
                    one.arg("n", n);
                    let mut two = scope!("t", "two");
                    two.arg("m", n).arg("n", n);
                    let mut text = scope!("t", "text");
                    text.arg("n", &name[..len.min(40)]);
                }
            });
            let label = format!("{format:?} {overflow:?}");
            let rows = trace.ask(&[
                "select count(*), sum(dur >= 0), sum(depth = 2) from slice where name = 'late'",
                "select count(*), sum(dur >= 0), sum(depth = 1) from slice where name glob 'n*n' or name = 'n'",
                "select name, dur > 0, depth from slice where name glob 'outer*'",
                "select count(*) from slice where name = 'late' and \
                 coalesce(extract_arg(arg_set_id, 'debug.n'), extract_arg(arg_set_id, 'n')) = \
                 coalesce(extract_arg(arg_set_id, 'debug.list[1]'), extract_arg(arg_set_id, 'list[1]')) and \
                 length(coalesce(extract_arg(arg_set_id, 'debug.text'), extract_arg(arg_set_id, 'text'), '')) = \
                 coalesce(extract_arg(arg_set_id, 'debug.list[0]'), extract_arg(arg_set_id, 'list[0]'))",
            ]);
            rows.require_clean();
            let ends = trace.ask(&["select count(*), sum(dur >= 0), count(distinct \
                coalesce(extract_arg(arg_set_id, 'debug.n'), extract_arg(arg_set_id, 'n'), '')) \
                from slice where name in ('one', 'text', 'two') group by name order by name"]);
            let distinct = [ROUNDS, 41, ROUNDS].map(|distinct| format!("{ROUNDS}\t{ROUNDS}\t{distinct}"));
            assert_eq!(ends.results[0].text(), distinct.join("\n"), "{label}");
            let all = format!("{ROUNDS}\t{ROUNDS}\t{ROUNDS}");
            assert_eq!(rows.results[0].text(), all, "{label}");
            assert_eq!(rows.results[1].text(), all, "{label}");
            assert_eq!(rows.results[2].text(), "outermost of this run\t1\t0", "{label}");
            assert_eq!(rows.results[3].text(), ROUNDS.to_string(), "{label}");
            assert_eq!(trace.summary.lost.total(), 0, "{label}");
        }
    }
}

/// FXT has room for 15 arguments.
#[test]
fn arguments_beyond_the_format_s_limit_are_counted() {
    for format in FORMATS {
        for (count, lost) in [(15, 0), (16, 1), (20, 5)] {
            let trace = record(format, |_| {
                trace_scope!("t", "outer");
                let list: Vec<usize> = (0..count).collect();
                trace_instant!("t", "list", list);
                let mut late = scope!("t", "late");
                late.arg("list", &list);
            });
            let lost = if format == Format::Fxt { lost } else { 0 };
            let arguments = trace.arguments(); // the trace's tail tells of the loss too
            let own =
                arguments.lines().filter(|line| line.starts_with("list: ") || line.starts_with("late: "));
            assert_eq!(own.count(), 2 * (count - lost), "{format:?} {count}");
            assert_eq!(trace.summary.lost.arguments, 2 * lost as u64, "{format:?} {count}");
        }
    }
}

/// A value's own code may record events, and even end scopes: it runs before the record is written.
#[test]
fn code_of_a_value_may_record_events() {
    struct Loud;
    impl serde::Serialize for Loud {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut inner = scope!("t", "within", name: "inside of a value");
            inner.arg("n", 1);
            serializer.serialize_u8(7)
        }
    }
    for format in FORMATS {
        let trace = record(format, |_| {
            for _ in 0..3 {
                trace_scope!("t", "outer", value = hairline::serialize(&[Loud, Loud]));
                let mut late = scope!("t", "late");
                late.arg("value", hairline::serialize(&[Loud]));
            }
        });
        let counts = "select name, count(*), sum(dur < 0) from slice group by name order by name";
        assert_eq!(trace.rows(counts), "inside of a value\t9\t0\nlate\t3\t0\nouter\t3\t0", "{format:?}");
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}

/// A `Serialize` that fails is its error; one that ignores the error of a part lacks that part.
#[test]
fn a_serialize_that_fails_leaves_no_half_of_a_value() {
    use serde::ser::{Error, SerializeMap, SerializeSeq};
    struct Fails;
    impl serde::Serialize for Fails {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut list = serializer.serialize_seq(None)?;
            list.serialize_element("half")?;
            Err(S::Error::custom("no more"))
        }
    }
    struct Ignores;
    impl serde::Serialize for Ignores {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            let _ = map.serialize_entry("lost", &Fails);
            map.serialize_key("without a value")?;
            map.serialize_key(&(1, 2))?;
            map.serialize_value(&3)?;
            map.serialize_key("without a value either")?;
            map.end()
        }
    }
    for format in FORMATS {
        let trace = record(format, |_| {
            for _ in 0..2 {
                trace_instant!("t", "fails", v = hairline::serialize(&Fails));
                trace_instant!("t", "ignores", v = hairline::serialize(&Ignores));
            }
        });
        let arguments = trace.arguments();
        let lines: Vec<&str> = arguments.lines().collect();
        assert_eq!(lines[0], "fails: v = no more", "{format:?}");
        assert!(lines[1].starts_with("ignores: v.") && lines[1].ends_with(" = 3"), "{format:?}: {lines:?}");
        assert_eq!(lines[2..], lines[..2], "{format:?}");
    }
}
