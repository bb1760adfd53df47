//! Strings of all lengths, and such that are not quite text.

use hairline::{Format, trace_instant, trace_scope};
use hairline_formats::track_event::{self as te, AnnotationValue, PacketData};
use hairline_formats::{Value, fxt};
use hairline_tests::recording::{FORMATS, Trace, record, record_with};

/// The longest string of the FXT document.
const LONGEST: usize = 32_000;

/// All string values of arguments in the file, in its order.
fn strings(trace: &Trace) -> Vec<String> {
    let bytes = std::fs::read(trace.path()).unwrap();
    let mut all = Vec::new();
    if trace.format == Format::Fxt {
        let mut reader = fxt::RecordReader::new(&bytes[..]);
        while let Some((_, record)) = reader.next().unwrap() {
            if let fxt::Record::Event(event) = record {
                for (_, value) in event.args().map(Result::unwrap) {
                    if let fxt::ArgumentValue::Value(Value::Str(text)) = value {
                        all.push(text.to_owned());
                    }
                }
            }
        }
    } else {
        let mut reader = te::PacketReader::new(&bytes[..]);
        while let Some((_, packet)) = reader.next().unwrap() {
            if let Some(PacketData::Event(event)) = packet.data {
                for annotation in event.annotations().map(Result::unwrap) {
                    if let AnnotationValue::Value(Value::Str(text)) = annotation.value {
                        all.push(text.to_owned());
                    }
                }
            }
        }
    }
    all
}

#[test]
fn strings_are_whole_up_to_the_format_s_limit_and_cut_with_a_mark_beyond() {
    let lengths = [0, 1, 7, 8, 9, LONGEST - 1, LONGEST, LONGEST + 1, 32_767, 32_768, 60_000];
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.chunk_size(128 << 10).buffer_size(4 << 20),
            |_| {
                for len in lengths {
                    let text = "x".repeat(len);
                    trace_instant!("t", "i", text);
                }
            },
        );
        let found = strings(&trace);
        assert_eq!(found.len(), lengths.len(), "{format:?}");
        for (len, text) in lengths.into_iter().zip(&found) {
            if format == Format::TrackEvent || len <= LONGEST {
                assert_eq!(text.len(), len, "{format:?}");
            } else {
                assert!(text.ends_with("x…") && text.len() <= LONGEST, "{format:?} {len}: {}", text.len());
                assert!(text.len() > LONGEST - 1000, "{format:?} {len}: {}", text.len());
            }
        }
        assert_eq!(trace.rows("select count(*) from slice"), lengths.len().to_string(), "{format:?}");
    }
}

#[test]
fn strings_may_hold_any_character() {
    let odd = ["a\0b", "\0", "line\nbreak", "\u{fffd}", "🦀\u{200d}é", "\u{10ffff}", "tab\t\"quote\"\\"];
    for format in FORMATS {
        let trace = record(format, |_| {
            for text in odd {
                trace_instant!("t", "i", text, name: text);
            }
            trace_scope!("cat\0egory", "na\0me");
        });
        assert_eq!(strings(&trace), odd, "{format:?}");
        // A query's result ends at the first NUL, the trace does not.
        assert_eq!(trace.rows("select count(*), sum(dur < 0) from slice"), "8\t0", "{format:?}");
    }
}

#[test]
fn empty_names_and_categories_are_allowed() {
    for format in FORMATS {
        let trace = record(format, |_| {
            trace_scope!("", "");
            trace_scope!("t", "", n = 1);
            trace_instant!("", "i", text = "");
        });
        assert_eq!(
            trace.rows(
                "select depth, ifnull(category, ''), ifnull(name, ''), dur >= 0 from slice order by ts"
            ),
            "0\t\t\t1\n1\tt\t\t1\n2\t\ti\t1",
            "{format:?}"
        );
    }
}
