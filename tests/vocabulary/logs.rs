//! Log messages.

use hairline::{Format, Level, trace_log};
use hairline_formats::fxt;
use hairline_tests::recording::{FORMATS, record, record_tiny};

#[test]
fn messages_have_a_level_and_a_text() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let attempt = 3;
            trace_log!(Level::Warn, "net", "no answer after {attempt} attempts");
            trace_log!(Level::Trace, "net", "{} of {}", 1, "two");
            trace_log!(Level::Fatal, "net", "plain");
        });
        assert_eq!(
            trace.rows("select category, name from slice order by ts"),
            "net\tno answer after {attempt} attempts\nnet\t{} of {}\nnet\tplain",
            "{format:?}"
        );
        let texts = trace.rows(
            "select a.display_value from slice s join args a using (arg_set_id) \
             where a.key in ('message', 'track_event.log_message') order by s.ts",
        );
        assert_eq!(texts, "no answer after 3 attempts\n1 of two\nplain", "{format:?}");
        if format == Format::TrackEvent {
            assert_eq!(
                trace.rows("select prio, msg from android_logs order by ts"),
                "5\tno answer after 3 attempts\n2\t1 of two\n7\tplain"
            );
        } else {
            let levels = trace.rows(
                "select a.display_value from slice s join args a using (arg_set_id) where a.key = 'level' order by s.ts",
            );
            assert_eq!(levels, "warn\ntrace\nfatal");
        }
    }
}

#[test]
fn long_messages_are_cut_and_empty_ones_are_there() {
    for format in FORMATS {
        let trace = record_tiny(format, |_| {
            trace_log!(Level::Info, "t", "{}", "x".repeat(100_000));
            trace_log!(Level::Info, "t", "{}", "");
        });
        assert_eq!(trace.rows("select count(*) from slice"), "2", "{format:?}");
        let texts = trace.rows(
            "select length(a.display_value), substr(a.display_value, -1) from slice s join args a using (arg_set_id) \
             where a.key in ('message', 'track_event.log_message') order by s.ts limit 1",
        );
        assert!(texts.ends_with("\t…"), "{format:?}: {texts}");
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
    }
}

#[test]
fn fxt_has_a_log_record_beside_the_instant() {
    let trace = record(Format::Fxt, |_| trace_log!(Level::Info, "t", "{} of {}", 1, 2));
    let bytes = std::fs::read(trace.path()).unwrap();
    let mut reader = fxt::RecordReader::new(&bytes[..]);
    let mut logged = Vec::new();
    while let Some((_, record)) = reader.next().unwrap() {
        if let fxt::Record::Log { message, .. } = record {
            logged.push(message.to_vec());
        }
    }
    assert_eq!(logged, [b"1 of 2"]);
    assert_eq!(trace.rows("select name, dur from slice"), "{} of {}\t0");
}
