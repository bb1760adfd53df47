//! Arguments whose code panics: the event is left out or ends without them, and the thread goes on recording.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hairline::{Argument, Track, scope, trace_async, trace_begin, trace_end, trace_instant};
use hairline_tests::recording::{FORMATS, record, record_with};

/// An argument whose code panics once it is written.
struct Panics;

impl Argument for Panics {
    type Held<'a> = u64;
    fn hold(&self) -> u64 {
        panic!("in the program's own code")
    }
}

fn quietly(f: impl FnOnce()) {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    assert!(catch_unwind(AssertUnwindSafe(f)).is_err());
    std::panic::set_hook(hook);
}

#[test]
fn a_nested_argument_that_panics_leaves_the_writer_as_it_is_in_its_chunk() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.chunk_size(4096).buffer_size(64 << 10),
            |_| {
                for n in 0..2_000 {
                    trace_instant!("t", "before", n);
                    if n % 100 == 50 {
                        let name = format!("a name made at run time, {n}");
                        let track = Track::new(name);
                        // The track is described, then the argument panics.
                        quietly(|| trace_instant!("t", "panics", list = [Panics], track: &track));
                    }
                }
            },
        );
        let verdict = trace.ask(&["select count(*) from slice where name = 'before'"]);
        let lost = trace.summary.lost.total();
        if lost == 0 {
            verdict.require_clean();
        }
        assert_eq!(verdict.results[0].text(), (2_000 - lost).to_string(), "{format:?}");
    }
}

#[test]
fn an_end_argument_that_panics_is_left_out_and_its_scope_ends() {
    for format in FORMATS {
        let trace = record(format, |_| {
            quietly(|| {
                let mut scope = scope!("t", "scope");
                scope.arg("list", [Panics]);
            });
        });
        assert_eq!(trace.rows("select name, dur >= 0 from slice"), "scope\t1", "{format:?}");
    }
}

#[test]
fn a_slice_on_a_track_ends_though_its_argument_panics() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let track = Track::new("track");
            trace_begin!("t", "slice", track: &track);
            quietly(|| trace_end!(&track, list = [Panics]));
        });
        assert_eq!(trace.rows("select name, dur >= 0 from slice"), "slice\t1", "{format:?}");
    }
}

// request  [ ................ ]
// query       [                   its argument panics: it has no record
// next             [ ... ]        on the lane of the request
#[test]
fn an_interval_whose_argument_panics_leaves_the_lane_of_its_parent() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let pool = Track::new("pool");
            let request = Arc::new(trace_async!("t", "request", track: &pool));
            quietly(|| drop(trace_async!("t", "query", list = [Panics], track: &request)));
            drop(trace_async!("t", "next", track: &request));
        });
        let slices = "select name, depth, dur >= 0 from slice order by ts";
        assert_eq!(trace.rows(slices), "request\t0\t1\nnext\t1\t1", "{format:?}");
    }
}
