//! Threads with complete slices beside begins and ends, from JSON: importers pair those of each format in
//! another way. What is not the same is said.

use std::fmt::Write as _;

use hairline_convert::TraceFormat::{Fxt, Json, TrackEvent};
use hairline_tests::equal::Shown;

use crate::convert;
use crate::matrix::same;

/// An event of thread 1: its phase, name, time, and the duration of a complete slice, in microseconds.
type Event = (char, &'static str, f64, f64);

fn json(events: &[Event]) -> Vec<u8> {
    let mut all = String::new();
    for (phase, name, time, duration) in events {
        let duration = if *phase == 'X' { format!(",\"dur\":{duration}") } else { String::new() };
        let separator = if all.is_empty() { "[" } else { ",\n" };
        write!(all, r#"{separator}{{"ph":"{phase}","name":"{name}","pid":1,"tid":1,"ts":{time}{duration}}}"#)
            .expect("memory");
    }
    (all + "]").into_bytes()
}

/// What is said of the events in a format, and whether importers show the same slices.
fn shown(events: &[Event], to: hairline_convert::TraceFormat) -> (Vec<&'static str>, bool) {
    let trace = json(events);
    let (converted, report) = convert(&trace, to);
    let slices = |trace: &[u8]| same(&Shown::with_complaints(trace).0, "slices");
    (report.iter().map(|(what, _)| what).collect(), slices(&trace) == slices(&converted))
}

#[test]
fn slices_that_end_together_are_the_same_in_each_format() {
    let ends_with_the_outer = [
        ('X', "request", 1.2, 2.8),
        ('B', "step", 3.8, 0.0),
        ('E', "step", 4.0, 0.0),
        ('X', "next", 5.0, 1.5),
    ];
    let ends_with_the_inner = [
        ('B', "request", 1.2, 0.0),
        ('X', "step", 2.0, 2.5),
        ('E', "request", 4.5, 0.0),
        ('X', "next", 5.0, 1.5),
    ];
    for events in [&ends_with_the_outer[..], &ends_with_the_inner[..]] {
        for to in [TrackEvent, Fxt, Json] {
            assert_eq!(shown(events, to), (vec![], true), "{}: {events:?}", to.name());
        }
    }
}

#[test]
fn slices_that_cross_are_said_whatever_came_first() {
    // The first event of a thread; one that was open when the first complete slice came; one that the complete
    // slice closes.
    let first = [('B', "b", 4.8, 0.0), ('X', "s", 3.4, 3.8), ('E', "b", 11.6, 0.0)];
    let open = [
        ('B', "w", 1.0, 0.0),
        ('E', "w", 2.0, 0.0),
        ('B', "b", 10.0, 0.0),
        ('X', "s", 11.0, 1.5),
        ('E', "b", 50.0, 0.0),
        ('B', "c", 60.0, 0.0),
        ('E', "c", 100.0, 0.0),
        ('X', "late", 30.0, 25.5),
    ];
    let closed = [('B', "b", 1.0, 0.0), ('X', "s", 2.5, 5.5), ('B', "c", 7.0, 0.0), ('E', "c", 12.0, 0.0)];
    for events in [&first[..], &open[..], &closed[..]] {
        for to in [TrackEvent, Fxt, Json] {
            let (said, is_same) = shown(events, to);
            assert!(is_same || !said.is_empty(), "{}: {events:?}", to.name());
        }
    }
}

#[test]
fn nothing_is_said_of_a_thread_in_order() {
    // Slices that overlap go to a track beside it, whose times are not those of the thread.
    let events = [
        ('X', "one", 1.0, 10.0005),
        ('X', "two", 5.0, 1000.5),
        ('B', "b", 20.0, 0.0),
        ('E', "b", 30.0, 0.0),
        ('X', "c", 40.0, 5.5),
        ('X', "d", 50.0, 5.5),
    ];
    let (said, _) = shown(&events, TrackEvent);
    assert_eq!(said, ["slices that overlap others of their thread, on a track beside it"]);
}
