//! Once a thread and its callsites are set up, an event does not touch the heap.

use hairline::{
    Flow, Overflow, SessionBuilder, Track, bytes, interned, scope, trace_async, trace_begin, trace_counter,
    trace_end, trace_instant, trace_log, trace_scope,
};
use hairline_tests::alloc::allocations_during;
use hairline_tests::recording::{FORMATS, record_with};

/// Allocations while `events` runs, after `events` has run for a while.
fn counted(events: impl FnMut(u64) + Send, rounds: u64) {
    counted_with(|b| b, events, rounds);
}

fn counted_with(
    configure: impl Fn(SessionBuilder) -> SessionBuilder,
    mut events: impl FnMut(u64) + Send,
    rounds: u64,
) {
    for format in FORMATS {
        let mut counted = u64::MAX;
        let trace = record_with(format, &configure, |_| {
            std::thread::scope(|threads| {
                threads.spawn(|| {
                    events(20);
                    counted = allocations_during(|| events(rounds)).1;
                });
            });
        });
        assert_eq!(trace.summary.lost.total(), 0, "{format:?}");
        assert_eq!(counted, 0, "{format:?}");
    }
}

#[test]
fn no_event_allocates_not_even_where_a_chunk_ends() {
    let events = |rounds| {
        let text = "sixteen bytes ..";
        for n in 0..rounds {
            trace_scope!("t", "scope");
            trace_scope!("t", "arguments", n, text, half = 0.5, yes = true);
            trace_instant!("t", "instant");
            trace_instant!("t", "instant with arguments", n, text);
            trace_counter!("t", "counter", n);
        }
    };
    counted(events, 20_000); // of 200 bytes: some 250 chunks
}

#[test]
fn neither_do_flows_tracks_intervals_and_nested_values() {
    let (flow, track) = (Flow::new(), Track::new("track"));
    let events = |rounds| {
        let text = "sixteen bytes ..";
        for n in 0..rounds {
            trace_scope!("t", "flow", n, flow: &flow);
            trace_begin!("t", "on a track", text, track: &track);
            trace_end!(&track, n);
            let mut interval = trace_async!("t", "interval", n);
            interval.arg("late", text);
            trace_instant!("t", "inside", track: &interval);
            let _child = trace_async!("t", "child", track: &track);
            trace_instant!("t", "nested", list = [[n, 2], [3, 4]], words = [text], blob = bytes(&[1, 2]));
            trace_instant!("t", "interned", text = interned("a text with a number"));
            trace_counter!("t", "unit", n, unit: "things");
            trace_counter!("t", "on a track", n, track: &track);
            let mut scope = scope!("t", "late", name: text, correlation: n);
            scope.arg("n", n).arg("text", text);
            trace_log!(hairline::Level::Info, "t", "round {}", n);
        }
    };
    counted(events, 1_000);
}

#[test]
fn neither_do_slices_on_tracks_and_intervals_of_a_flight_recorder() {
    let track = Track::new("track");
    let events = |rounds| {
        for n in 0..rounds {
            trace_scope!("t", "scope", n);
            trace_begin!("t", "on a track", n, track: &track);
            let _interval = trace_async!("t", "interval", n);
            let _other = trace_async!("t", "another interval", text = "sixteen bytes ..");
            trace_end!(&track);
        }
    };
    counted_with(|b| b.overflow(Overflow::Overwrite).buffer_size(1 << 20), events, 5_000);
}

/// The memory of an event that is the first of its thread or of its callsite comes from the system: a signal
/// handler that interrupts the program's allocator may record it.
#[test]
fn neither_do_the_first_events_of_a_thread_and_of_a_callsite() {
    fn events(run: usize) {
        macro_rules! new_callsites {
            ($($n:literal)*) => {
                match run {
                    $($n => {
                        trace_scope!("t,several", concat!("scope ", $n), n = $n, text = "a text");
                        trace_instant!("t", concat!("instant ", $n), list = [1, 2]);
                        trace_counter!("t", concat!("counter ", $n), $n, unit: "things");
                    })*
                    _ => panic!("too many runs"),
                }
            };
        }
        new_callsites!(0 1 2 3 4 5 6 7);
    }
    let plain = |builder: SessionBuilder| builder;
    let detailed = |builder: SessionBuilder| builder.thread_time(true).source_locations(true);
    let recorder = |builder: SessionBuilder| builder.overflow(Overflow::Overwrite);
    let recorder_detailed = |builder: SessionBuilder| recorder(detailed(builder));
    let kinds: [&dyn Fn(SessionBuilder) -> SessionBuilder; 4] =
        [&plain, &detailed, &recorder, &recorder_detailed];
    let mut run = 0;
    for format in FORMATS {
        for kind in kinds {
            let mut counted = u64::MAX;
            record_with(format, kind, |_| {
                std::thread::scope(|threads| {
                    threads.spawn(|| counted = allocations_during(|| events(run)).1);
                });
            });
            assert_eq!(counted, 0, "{format:?}, run {run}");
            run += 1;
        }
    }
}

#[derive(serde::Serialize)]
struct Request<'a> {
    id: u64,
    peer: Peer<'a>,
}

#[derive(serde::Serialize)]
struct Peer<'a> {
    host: &'a str,
    ports: [u16; 3],
}

#[test]
fn neither_do_names_made_at_run_time_formatted_values_and_arguments_at_the_end() {
    let address = std::net::Ipv4Addr::LOCALHOST;
    let sizes = std::collections::BTreeMap::from([("read", 1), ("sent", 2)]);
    let events = |rounds| {
        let text = "sixteen bytes ..";
        for n in 0..rounds {
            let request = Request { id: n, peer: Peer { host: text, ports: [80, 443, 8080] } };
            trace_scope!("t", "named", sizes, name: text);
            trace_scope!("t", "serde", request = hairline::serialize(&request));
            trace_instant!("t", "formatted", peer = %address, pair = ?(n, text), name: text);
            let mut scope = scope!("t", "late", list = [n, 2]);
            scope.arg("n", n).arg("text", text).arg("half", 0.5).arg("yes", true).arg("fifth", n);
            let mut nested = scope!("t", "late and nested");
            nested.arg("sizes", &sizes).arg("request", hairline::serialize(&request));
        }
    };
    counted(events, 2_000);
}

#[test]
fn neither_do_cpu_time_and_source_locations() {
    let events = |rounds| {
        for n in 0..rounds {
            trace_scope!("t", "scope", n);
            trace_instant!("t", "instant");
        }
    };
    counted_with(|b| b.thread_time(true).source_locations(true), events, 1_000);
}
