//! Slices that take too long trigger a snapshot.

use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::process::Command;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use hairline::{
    Category, Error, Format, Overflow, Session, SessionBuilder, TraceFuture, Track, scope, trace_async,
    trace_scope,
};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension, turn};

const MS: Duration = Duration::from_millis(1);

type Pinned = Pin<Box<dyn Future<Output = ()>>>;

fn recorder(folder: &Path, format: Format) -> SessionBuilder {
    let builder = Session::builder().output(folder.join(format!("t.{}", extension(format))));
    builder.overflow(Overflow::Overwrite).trigger_interval(Duration::ZERO)
}

/// The names of the files in the folder, without those of the session's end.
fn snapshots(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| !["t.fxt", "t.pftrace"].contains(&name.as_str()));
    names.sort();
    names
}

/// Runs the program in a session, and returns the names of its snapshots.
fn snapshots_of(builder: SessionBuilder, folder: &Path, program: impl FnOnce()) -> Vec<String> {
    let _turn = turn();
    let session = builder.start().unwrap();
    program();
    session.stop().unwrap();
    snapshots(folder)
}

#[test]
fn a_slow_scope_writes_a_window_with_its_name_and_a_quick_one_none() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let builder = recorder(folder.path(), format).trigger_on_slow("net/ret*", 20 * MS);
        let written = snapshots_of(builder, folder.path(), || {
            for n in 0..10_000 {
                trace_scope!("net", "request", n);
                trace_scope!("net", "read");
            }
            trace_scope!("net", "answer");
            trace_scope!("db", "request");
            trace_scope!("net", "retry");
            std::thread::sleep(21 * MS);
        });
        let name = format!("t.net-retry.1.{}", extension(format));
        assert_eq!(written, std::slice::from_ref(&name), "{format:?}");
        let rows = "select count(*), max(dur) >= 21000000 from slice where name = 'retry'";
        let verdict = judge::load(folder.path().join(name), &[rows]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "1\t1", "{format:?}");
    }
}

/// One after the other, each in a session of its own.
#[test]
fn each_kind_of_slice_may_be_slow() {
    let track = Track::new("a track");
    let poll = |future: &mut Pinned| {
        let _ = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    };
    let kinds: [(&str, &dyn Fn()); 13] = [
        ("plain", &|| {
            trace_scope!("t", "plain");
            std::thread::sleep(3 * MS);
        }),
        ("with_values", &|| {
            trace_scope!("t", "with values", a = 1, b = "two");
            std::thread::sleep(3 * MS);
        }),
        ("nested", &|| {
            trace_scope!("t", "nested", a = [1, 2]);
            std::thread::sleep(3 * MS);
        }),
        ("named", &|| {
            trace_scope!("t", "named", name: String::from("other"));
            std::thread::sleep(3 * MS);
        }),
        ("with_flow", &|| {
            trace_scope!("t", "with flow", flow: &hairline::Flow::new());
            std::thread::sleep(3 * MS);
        }),
        ("argument_at_the_end", &|| {
            let mut scope = scope!("t", "argument at the end");
            scope.arg("n", 1);
            std::thread::sleep(3 * MS);
        }),
        ("text_at_the_end", &|| {
            let mut scope = scope!("t", "text at the end");
            scope.arg("n", "one");
            std::thread::sleep(3 * MS);
        }),
        ("on_a_track", &|| {
            trace_scope!("t", "on a track", track: &track);
            std::thread::sleep(3 * MS);
        }),
        ("interval", &|| {
            let interval = trace_async!("t", "interval");
            std::thread::sleep(3 * MS);
            std::thread::spawn(|| drop(interval)).join().unwrap();
        }),
        ("span", &|| {
            let _span = tracing::info_span!("span").entered();
            std::thread::sleep(3 * MS);
        }),
        ("life", &|| {
            let mut future: Pinned = Box::pin(std::future::pending().traced("t", "life"));
            poll(&mut future);
            std::thread::sleep(3 * MS);
            poll(&mut future);
        }),
        ("poll_of_a_life", &|| {
            let blocks = async {
                std::thread::sleep(3 * MS);
                std::future::pending::<()>().await;
            };
            let mut future: Pinned = Box::pin(blocks.traced("t", "poll of a life"));
            poll(&mut future);
            std::mem::forget(future); // its life never ends
        }),
        ("span_with_a_field", &|| {
            let _span = tracing::info_span!("span with a field", n = 1).entered();
            std::thread::sleep(3 * MS);
        }),
    ];
    let _subscriber = tracing::subscriber::set_default(hairline::Subscriber::new().category(Category::Level));
    for format in FORMATS {
        for (name, slice) in &kinds {
            let folder = tempfile::tempdir().unwrap();
            let category = if name.starts_with("span") { "info" } else { "t" };
            let rule = format!("{category}/*");
            for is_first_hit in [true, false] {
                let _turn = turn();
                let builder = recorder(folder.path(), format).trigger_on_slow(rule.clone(), 2 * MS);
                let session = builder.trigger_interval(Duration::from_secs(60)).start().unwrap();
                slice();
                session.stop().unwrap();
                let file = format!("t.{category}-{name}.1.{}", extension(format));
                assert_eq!(
                    snapshots(folder.path()),
                    std::slice::from_ref(&file),
                    "{format:?}, first: {is_first_hit}"
                );
                fs::remove_file(folder.path().join(file)).unwrap();
            }
        }
    }
}

#[test]
fn the_option_of_a_macro_counts_where_no_rule_matches() {
    for format in FORMATS {
        let folder = tempfile::tempdir().unwrap();
        let work = || {
            trace_scope!("t", "by option", slow: Duration::from_millis(2));
            trace_scope!("t", "by rule", n = 1, slow: Duration::from_millis(2));
            let _interval = trace_async!("t", "patient", slow: Duration::from_secs(60));
            std::thread::sleep(3 * MS);
        };
        let builder = recorder(folder.path(), format).trigger_on_slow("t/by rule", 60_000 * MS);
        let written = snapshots_of(builder, folder.path(), work);
        assert_eq!(written, [format!("t.t-by_option.1.{}", extension(format))], "{format:?}");
        let streaming = Session::builder().output(folder.path().join("t.fxt")).trigger_on_slow("*/*", MS);
        assert_eq!(
            snapshots_of(streaming, folder.path(), work),
            written,
            "a session that streams writes none"
        );
    }
}

#[test]
fn a_slice_of_more_than_the_range_of_its_id_is_slow() {
    let folder = tempfile::tempdir().unwrap();
    let builder = recorder(folder.path(), Format::Fxt).trigger_on_slow("t/long", 1000 * MS);
    let written = snapshots_of(builder, folder.path(), || {
        trace_scope!("t", "long");
        for _ in 0..10 {
            trace_scope!("t", "short", slow: Duration::from_secs(2));
        }
        // The id of a begin comes again after 4.295 s: by it, this slice took 5 ms.
        std::thread::sleep(4300 * MS);
    });
    assert_eq!(written, ["t.t-long.1.fxt"]);
}

#[test]
fn snapshots_keep_the_interval_and_the_number_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let wait = |n: u32| {
        let path = folder.path().join(format!("t.t-slow.{n}.pftrace"));
        let deadline = Instant::now() + Duration::from_secs(20);
        while !path.exists() {
            assert!(Instant::now() < deadline, "no {}", path.display());
            std::thread::sleep(MS);
        }
    };
    let slow = || {
        trace_scope!("t", "slow");
        std::thread::sleep(2 * MS);
    };
    let builder = recorder(folder.path(), Format::TrackEvent).trigger_on_slow("t/slow", MS).keep_snapshots(2);
    let written = snapshots_of(builder, folder.path(), || {
        for n in 1..=4 {
            slow();
            wait(n);
        }
    });
    assert_eq!(written, ["t.t-slow.3.pftrace", "t.t-slow.4.pftrace"]);

    let folder = tempfile::tempdir().unwrap();
    let builder = recorder(folder.path(), Format::TrackEvent).trigger_on_slow("t/slow", MS);
    let written = snapshots_of(builder.trigger_interval(Duration::from_secs(60)), folder.path(), || {
        for _ in 0..5 {
            slow();
            std::thread::sleep(100 * MS);
        }
    });
    assert_eq!(written, ["t.t-slow.1.pftrace"]);
}

#[test]
fn the_environment_has_rules_too() {
    let folder = tempfile::tempdir().unwrap();
    let run = |trigger: &str| {
        Command::new(env!("CARGO_BIN_EXE_victim"))
            .arg("steps")
            .env("HAIRLINE", folder.path().join("t.fxt"))
            .env("HAIRLINE_OVERFLOW", "overwrite")
            .env("HAIRLINE_TRIGGER", trigger)
            .output()
            .unwrap()
    };
    let output = run("panic,slow:*/step:1ns,every:0ms,keep:1");
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let written = snapshots(folder.path());
    assert!(matches!(written.as_slice(), [one] if one.contains("-step.")), "{written:?}");
    for wrong in ["slow:step:1ms", "slow:*/step:1", "every:soon", "keep:-1", "fast:*/*:1ms"] {
        let text = String::from_utf8(run(wrong).stderr).unwrap();
        assert!(text.contains("HAIRLINE_TRIGGER") || text.contains("slow slices"), "{wrong}: {text}");
    }
}

#[test]
fn a_rule_that_makes_no_sense_is_an_error() {
    for (pattern, limit) in [("request", MS), ("net/request", Duration::ZERO)] {
        let builder = Session::builder().overflow(Overflow::Overwrite).trigger_on_slow(pattern, limit);
        assert!(matches!(builder.start(), Err(Error::Value { .. })), "{pattern}");
    }
}
