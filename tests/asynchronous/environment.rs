//! Recording that the environment asks for, in a program that has nothing but spans of the `tracing` crate.

use std::process::Command;

use hairline_tests::judge;

#[test]
fn the_very_first_span_is_recorded_however_the_subscriber_is_installed() {
    for listener in ["subscriber", "layer"] {
        for way in ["global", "scoped", "after-another"] {
            for extension in ["fxt", "pftrace"] {
                let name = format!("{listener}, {way}, {extension}");
                let directory = tempfile::tempdir().unwrap();
                let trace = directory.path().join(format!("trace.{extension}"));
                let mut program = Command::new(env!("CARGO_BIN_EXE_spans_victim"));
                let output = program.args([listener, way]).env("HAIRLINE", &trace).output().unwrap();
                assert_eq!(output.stdout, b"done\n", "{name}");
                assert!(output.stderr.is_empty(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
                let verdict = judge::load(
                    &trace,
                    &[
                        "select s.category, iif(s.name like 'event %spans_victim.rs:%', 'event', s.name) as shown, p.name, min(s.dur) >= 0, count(), count(distinct a.display_value) \
                         from slice s left join slice p on s.parent_id = p.id join args a on s.arg_set_id = a.arg_set_id \
                         where replace(a.key, 'debug.', '') = 'n' group by shown order by shown desc",
                    ],
                );
                verdict.require_clean();
                let expected = "victim\tfirst\tNULL\t1\t8\t8\nvictim\tevent\tfirst\t1\t8\t8";
                assert_eq!(verdict.results[0].text(), expected, "{name}");
            }
        }
    }
}
