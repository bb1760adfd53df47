//! Flows.

use std::sync::atomic::{AtomicU32, Ordering};

use hairline::{Flow, Format, Track, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, record};

const FLOWS: &str = "select so.name, si.name from flow f join slice so on f.slice_out = so.id \
     join slice si on f.slice_in = si.id order by so.ts, si.ts";

// main    [ push ]              [ collect ]
// worker            [ work ] ·note
#[test]
fn a_flow_connects_slices_of_several_threads_in_the_order_of_time() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let flow = Flow::new();
            {
                trace_scope!("t", "push", n = 1, flow: &flow);
            }
            let flow = std::thread::spawn(move || {
                {
                    trace_scope!("t", "work", flow: &flow);
                }
                trace_instant!("t", "note", flow: &flow);
                flow
            })
            .join()
            .unwrap();
            {
                trace_scope!("t", "collect", end_flow: &flow);
            }
            trace_scope!("t", "after");
        });
        assert_eq!(trace.rows(FLOWS), "push\twork\nwork\tnote\nnote\tcollect", "{format:?}");
        assert_eq!(
            trace.rows("select name, dur = 0 from slice where name = 'note'"),
            "note\t1",
            "{format:?}: an instant stays one"
        );
    }
}

#[test]
fn an_event_may_take_part_in_many_flows() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let flows: Vec<Flow> = (0..6).map(|_| Flow::new()).collect();
            for flow in &flows {
                trace_scope!("t", "one", flow: flow);
            }
            let [a, b, c, d, e, f] = &flows[..] else { unreachable!() };
            trace_scope!("t", "all", end_flow: a, end_flow: b, flow: c, flow: d, end_flow: e, end_flow: f);
        });
        assert_eq!(trace.rows(FLOWS), ["one\tall"; 6].join("\n"), "{format:?}");
    }
}

#[test]
fn a_flow_that_never_began_does_not_end() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let flow = Flow::new();
            trace_scope!("t", "end", end_flow: &flow);
        });
        assert_eq!(
            trace.rows("select count(*), (select count(*) from flow) from slice"),
            "1\t0",
            "{format:?}"
        );
    }
}

#[test]
fn a_flow_of_the_last_session_begins_anew() {
    let flow = Flow::new();
    for format in FORMATS {
        let trace = record(format, |_| {
            {
                trace_scope!("t", "a", flow: &flow);
            }
            trace_scope!("t", "b", end_flow: &flow);
        });
        assert_eq!(trace.rows(FLOWS), "a\tb", "{format:?}");
    }
}

/// The number of flows that two threads first use at the same moment.
const RACES: u32 = 500;

// thread 1   [ use ]        both begin the flow, or so each of them thinks
// thread 2   [ use ]
fn race(format: Format, flow_of_second: impl Fn(&Flow) -> Option<Flow> + Sync) {
    let trace = record(format, |_| {
        let flows: Vec<(Flow, Option<Flow>)> = (0..RACES)
            .map(|_| {
                let flow = Flow::new();
                let second = flow_of_second(&flow);
                (flow, second)
            })
            .collect();
        let arrived = AtomicU32::new(0);
        let meet = |n: u32| {
            arrived.fetch_add(1, Ordering::SeqCst);
            while arrived.load(Ordering::SeqCst) < 2 * (n + 1) {
                std::hint::spin_loop();
            }
        };
        let use_all = |second: bool| {
            for (n, (flow, clone)) in (0..).zip(&flows) {
                let flow = clone.as_ref().filter(|_| second).unwrap_or(flow);
                meet(n);
                if n % 4 == 3 {
                    trace_scope!("t", "use", n, flow: flow); // on the cold path
                } else {
                    trace_scope!("t", "use", flow: flow);
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| use_all(true));
            use_all(false);
        });
    });
    assert_eq!(trace.rows("select count(*) from slice"), (2 * RACES).to_string(), "{format:?}");
    let one_thread_to_the_other = "select count(distinct slice_out), sum(so.track_id != si.track_id) from flow \
         join slice so on slice_out = so.id join slice si on slice_in = si.id";
    assert_eq!(trace.rows(one_thread_to_the_other), format!("{RACES}\t{RACES}"), "{format:?}");
}

#[test]
fn two_threads_that_first_use_a_flow_at_the_same_moment_begin_it_once() {
    FORMATS.into_iter().for_each(|format| race(format, |_| None));
}

#[test]
fn two_threads_that_first_use_clones_of_a_flow_at_the_same_moment_begin_it_once() {
    FORMATS.into_iter().for_each(|format| race(format, |flow| Some(flow.clone())));
}

// main   [ push ]                           [ collect ]
// 1              [ work ]
// 2                        [ work ] ·note
#[test]
fn flows_cloned_to_several_threads_are_one_chain() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let flow = Flow::new();
            let parts = [1, 2].map(|_| flow.clone());
            {
                trace_scope!("t", "push", flow: &flow);
            }
            for (n, part) in (1..).zip(parts) {
                let work = move || {
                    {
                        trace_scope!("t", "work", n, flow: &part);
                    }
                    let again = part.clone();
                    drop(part);
                    trace_instant!("t", "note", flow: &again);
                };
                std::thread::spawn(work).join().unwrap();
            }
            trace_scope!("t", "collect", end_flow: &flow);
        });
        let chain = "push\twork\nwork\tnote\nnote\twork\nwork\tnote\nnote\tcollect";
        assert_eq!(trace.rows(FLOWS), chain, "{format:?}");
    }
}

#[test]
fn the_end_of_a_flow_that_only_a_clone_began_is_recorded() {
    let flow = Flow::new();
    for format in FORMATS {
        let trace = record(format, |_| {
            let clone = flow.clone();
            {
                trace_scope!("t", "a", flow: &clone);
            }
            trace_scope!("t", "b", end_flow: &flow);
        });
        assert_eq!(trace.rows(FLOWS), "a\tb", "{format:?}");
    }
}

#[test]
fn ids_are_random_and_can_be_sent_to_another_process() {
    let (a, b) = (Flow::new(), Flow::new());
    assert_ne!(a.id(), b.id());
    assert!(a.id() > u64::from(u32::MAX) || b.id() > u64::from(u32::MAX));
    assert_eq!(Flow::from_id(a.id()).id(), a.id());
}

// thread [ push ]                   [ next ]
// track            [ on a track ]
#[test]
fn a_flow_goes_through_slices_of_threads_and_of_tracks() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let track = Track::new("track");
            let (first, second) = (Flow::new(), Flow::new());
            {
                trace_scope!("t", "push", flow: &first);
            }
            {
                trace_scope!("t", "on a track", track: &track, flow: &first, flow: &second);
            }
            trace_scope!("t", "next", end_flow: &first, end_flow: &second);
        });
        let ends = trace.rows(
            "select so.name, si.name from flow f join slice so on f.slice_out = so.id \
             join slice si on f.slice_in = si.id order by so.ts",
        );
        assert_eq!(ends, "push\ton a track\non a track\tnext\non a track\tnext", "{format:?}");
        assert_eq!(trace.rows("select count(*) from slice"), "3", "{format:?}");
    }
}

#[test]
fn an_event_may_name_a_flow_twice() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let flow = Flow::new();
            {
                trace_scope!("t", "a", flow: &flow, flow: &flow);
            }
            trace_scope!("t", "b", flow: &flow, end_flow: &flow);
        });
        let ends = trace.rows(
            "select distinct so.name, si.name from flow f join slice so on f.slice_out = so.id \
             join slice si on f.slice_in = si.id where so.name != si.name",
        );
        assert_eq!(ends, "a\tb", "{format:?}");
    }
}

#[test]
fn a_flow_through_a_slice_on_a_track_has_a_place_with_a_name() {
    for format in FORMATS {
        let trace = record(format, |_| {
            let (track, flow) = (Track::new("track"), Flow::new());
            {
                trace_scope!("category", "named", track: &track, flow: &flow);
            }
            trace_scope!("t", "next", end_flow: &flow);
        });
        let ends = trace.rows(
            "select so.category, so.name, si.name from flow f join slice so on f.slice_out = so.id \
             join slice si on f.slice_in = si.id",
        );
        assert_eq!(ends, "category\tnamed\tnext", "{format:?}");
    }
}
