//! The examples of Perfetto's document "Writing TrackEvent Protos Synthetically", recorded through the public
//! API.
//!
//! ```text
//! examples/NN_name.textproto ── Perfetto's converter ──> trace ──┐
//!                                                                ├──> the same rows
//! the same events by macros ──── a recording ──────────> trace ──┘
//! ```
//!
//! A recording has real times, random uuids and this process's ids. So a time is compared by its rank among
//! all begins and ends, and a process or thread by what lies on it. The process's name is that of the
//! executable.

use std::thread;
use std::time::Duration;

use hairline::{
    Flow, Format, Ordering, Track, scope, trace_begin, trace_counter, trace_end, trace_instant, trace_scope,
};
use hairline_tests::Verdict;
use hairline_tests::judge::{encode, load_bytes};
use hairline_tests::recording::{FORMATS, Trace, record};
use serde_json::Value;

/// Slices, their begin and end as ranks.
const SLICES: &str = "with times(t) as (select ts from slice union select ts + dur from slice where dur >= 0) \
     select s.name, s.category, s.depth, (select count() from times where t <= s.ts) as begins, \
       iif(s.dur < 0, 'open', (select count() from times where t <= s.ts + s.dur)) as ends, \
       t.name as track, p.name as parent, t.type as kind, thread.name as thread \
     from slice s join track t on s.track_id = t.id left join track p on t.parent_id = p.id \
     left join thread_track tt on tt.id = t.id left join thread using (utid) \
     order by s.ts, s.depth";

/// Tracks; `process` is 1 on those of the process that the trace is of. The process's own track is not among
/// them while it has neither a name nor events: it is there as soon as anything has it as its parent.
const TRACKS: &str = "with \
       properties as (select arg_set_id, key || '=' || display_value as property from args \
         where key in ('child_ordering', 'sibling_order_rank', 'description')), \
       owned as (select id, upid from process_track union select id, upid from process_counter_track \
         union select thread_track.id, upid from thread_track join thread using (utid)) \
     select t.name, p.name as parent, t.type as kind, \
       owned.upid = (select upid from process where pid != 0) as process, thread.name as thread, \
       (select group_concat(property) from properties where arg_set_id = t.source_arg_set_id) as properties \
     from track t left join track p on t.parent_id = p.id left join owned on owned.id = t.id \
     left join thread_track tt on tt.id = t.id left join thread using (utid) \
     where t.name is not null or t.type != 'process_track_event' \
     order by t.name, t.type, thread.name";

const FLOWS: &str = "select a.name as begins, b.name as ends \
     from flow join slice a on a.id = slice_out join slice b on b.id = slice_in order by a.ts";

const COUNTERS: &str =
    "select t.name, c.value from counter c join track t on c.track_id = t.id order by c.ts";

/// What is compared. A row is a line of cells between tabs.
#[derive(Debug, PartialEq)]
struct Shown {
    slices: Vec<String>,
    tracks: Vec<String>,
    flows: Vec<String>,
    counters: Vec<String>,
}

impl Shown {
    const SQL: &[&str] = &[SLICES, TRACKS, FLOWS, COUNTERS];

    /// The rows of a trace that has no fault.
    fn of(verdict: &Verdict) -> Self {
        verdict.require_clean();
        let [slices, tracks, flows, counters] =
            [0, 1, 2, 3].map(|n| verdict.results[n].text().lines().map(str::to_owned).collect());
        Self { slices, tracks, flows, counters }
    }

    /// The rows of an example.
    fn example(text: &str) -> Self {
        Self::of(&load_bytes(&encode(text), Self::SQL))
    }

    /// The rows of a recording.
    fn recorded(trace: &Trace) -> Self {
        assert_eq!(trace.summary.lost.total(), 0);
        let mut verdict = trace.ask(Self::SQL);
        if trace.format == Format::Fxt {
            // A record always has a category and a name, if need be an empty one.
            let cells = verdict.results.iter_mut().flat_map(|rows| &mut rows.rows).flatten();
            cells.filter(|cell| *cell == "").for_each(|cell| *cell = Value::Null);
        }
        Self::of(&verdict)
    }

    /// Where an example names the process's own track, the recording has a track of that name below it. In
    /// the rows this is another kind of track and nothing else: the importer says of neither that it has a
    /// parent.
    fn below_the_process(mut self) -> Self {
        for row in self.slices.iter_mut().chain(&mut self.tracks) {
            *row = row.replace("process_track_event", "process_merged_track_event");
        }
        self
    }

    #[track_caller]
    fn require(&self, trace: &Trace) {
        let recorded = Self::recorded(trace);
        let format = trace.format;
        assert!(*self == recorded, "{format:?}\nthe example: {self:#?}\nrecorded: {recorded:#?}");
    }
}

/// The next event has a later time.
fn later() {
    thread::sleep(Duration::from_micros(1));
}

/// Does something on a new thread of this name, until it is done.
fn on_thread(name: &str, program: impl FnOnce() + Send) {
    thread::scope(|s| {
        thread::Builder::new().name(name.to_owned()).spawn_scoped(s, program).expect("a thread");
    });
}

#[test]
fn slices_of_a_thread_nest() {
    let expected = Shown::example(include_str!("examples/01_thread_slices.textproto"));
    for format in FORMATS {
        let trace = record(format, |_| {
            on_thread("My thread name", || {
                trace_scope!("", "My special parent");
                later();
                {
                    trace_scope!("", "My special child");
                    later();
                    trace_instant!("", "");
                    later();
                }
                later();
            });
        });
        expected.require(&trace);
    }
}

#[test]
fn slices_that_overlap_are_on_sibling_tracks_of_the_process() {
    let expected = Shown::example(include_str!("examples/02_process_slices.textproto")).below_the_process();
    let elsewhere = |event: &(dyn Fn() + Sync)| on_thread("worker", event);
    for format in FORMATS {
        expected.require(&record(format, |_| overlapping_slices(|event| event())));
        // As the document says of such tracks: a slice may begin on a thread and end on another.
        expected.require(&record(format, |_| overlapping_slices(elsewhere)));
    }
}

fn overlapping_slices(run: impl Fn(&(dyn Fn() + Sync))) {
    let first = Track::process().child("My special track");
    let second = Track::process().child("My special track");
    let events: [&(dyn Fn() + Sync); 8] = [
        &|| trace_begin!("", "My special parent A", track: &first),
        &|| trace_begin!("", "My special parent A", track: &second),
        &|| trace_begin!("", "My special child", track: &first),
        &|| trace_begin!("", "My special child", track: &second),
        &|| trace_end!(&second),
        &|| trace_end!(&first),
        &|| trace_end!(&second),
        &|| trace_end!(&first),
    ];
    for event in events {
        run(event);
        later();
    }
}

#[test]
fn tracks_of_no_process_make_a_tree() {
    let expected = Shown::example(include_str!("examples/03_custom_tree.textproto"));
    for format in FORMATS {
        let trace = record(format, |_| {
            let root = Track::new("Root");
            let (parent_b, parent_a) = (root.child("Parent B"), root.child("Parent A"));
            let (child_a1, child_a2) = (parent_a.child("Child A1"), parent_a.child("Child A2"));
            let child_b1 = parent_b.child("Child B1");
            let a1 = scope!("", "A1", track: &child_a1);
            later();
            let b1 = scope!("", "B1", track: &child_b1);
            later();
            let a2 = scope!("", "A2", track: &child_a2);
            later();
            drop(b1);
            later();
            drop(a2);
            later();
            drop(a1);
        });
        expected.require(&trace);
    }
}

#[test]
fn tracks_are_ordered_by_name() {
    let expected = Shown::example(&used(include_str!("examples/04_lexicographic.textproto"), 10..=12));
    for format in FORMATS {
        let trace = record(format, |_| {
            let root = Track::new("Root").ordering(Ordering::Lexicographic);
            use_in_turn(&[&root, &root.child("B"), &root.child("A")]);
        });
        expected.require(&trace);
    }
}

#[test]
fn tracks_are_ordered_by_their_first_event() {
    // The example ends the slice "A1" on track 60000, which is not A1's: the slice stays open, and the end
    // makes a track without a name. The recording leaves the slice open; the macros cannot end what was not
    // begun.
    let mut expected = Shown::example(include_str!("examples/05_chronological.textproto"));
    let stray = expected.tracks.remove(0);
    assert_eq!(stray, "NULL\tNULL\tglobal_merged_track_event\tNULL\tNULL\tNULL");
    for format in FORMATS {
        let trace = record(format, |_| {
            let root = Track::new("Root").ordering(Ordering::Chronological);
            let (a, b) = (root.child("A"), root.child("B"));
            trace_begin!("", "B1", track: &b);
            later();
            trace_begin!("", "A1", track: &a);
            later();
            trace_end!(&root.child("not A")); // leaves nothing in the trace
            later();
            trace_end!(&b);
        });
        expected.require(&trace);
    }
}

#[test]
fn tracks_are_ordered_by_their_rank() {
    let expected = Shown::example(&used(include_str!("examples/06_explicit_order.textproto"), 10..=13));
    for format in FORMATS {
        let trace = record(format, |_| {
            let root = Track::new("Root").ordering(Ordering::Explicit);
            let (b, a, c) = (root.child("B").rank(1), root.child("A").rank(100), root.child("C").rank(-100));
            use_in_turn(&[&root, &b, &a, &c]);
        });
        expected.require(&trace);
    }
}

/// The importer shows no track without events: these examples have none, so each of their tracks gets an
/// instant.
fn used(text: &str, tracks: impl IntoIterator<Item = u64>) -> String {
    assert!(Shown::example(text).tracks.is_empty());
    let instant = |track| {
        format!(
            "packet {{ timestamp: {track} track_event {{ type: TYPE_INSTANT track_uuid: {track} name: \"used\" }} \
             trusted_packet_sequence_id: 3903809 }}\n"
        )
    };
    text.to_owned() + &tracks.into_iter().map(instant).collect::<String>()
}

fn use_in_turn(tracks: &[&Track]) {
    for track in tracks {
        trace_instant!("", "used", track: track);
        later();
    }
}

#[test]
fn a_flow_goes_to_another_thread_and_back() {
    let expected = Shown::example(include_str!("examples/07_flows.textproto"));
    for format in FORMATS {
        let trace = record(format, |_| {
            on_thread("Main thread", || {
                let flow = Flow::new();
                {
                    trace_scope!("", "Request generation", flow: &flow);
                    later();
                }
                later();
                on_thread("Background thread", || {
                    trace_scope!("", "Background work", flow: &flow);
                    later();
                });
                later();
                trace_scope!("", "Process background result", flow: &flow);
                later();
            });
        });
        expected.require(&trace);
    }
}

#[test]
fn a_counter_of_the_process_has_its_values_in_order() {
    let expected = Shown::example(include_str!("examples/08_counters.textproto"));
    let values = [34567, 67890, 12345, 12345];
    for format in FORMATS {
        let trace = record(format, |_| {
            for value in values {
                trace_counter!("", "My special counter", value, track: &Track::process());
                later();
            }
        });
        expected.require(&trace);
        let trace = record(format, |_| {
            for value in values {
                trace_counter!("", "My special counter", value);
                later();
            }
        });
        if format == Format::Fxt {
            // Without a track it is a record of its own kind, which the importer puts on a track of no
            // process.
            assert_eq!(trace.counters().replace(" = ", "\t"), expected.counters.join("\n"));
        } else {
            expected.require(&trace);
        }
    }
}

#[test]
fn a_long_name_is_written_once() {
    const NAME: &str = "A very very very long slice name which we don't want to repeat";
    let expected = Shown::example(include_str!("examples/09_interning.textproto")).below_the_process();
    for format in FORMATS {
        let trace = record(format, |_| {
            let track = Track::process().child("My special track");
            for _ in 0..2 {
                trace_begin!("", NAME, track: &track);
                later();
                trace_end!(&track);
                later();
            }
        });
        expected.require(&trace);
        // In FXT an event on such a track is a Perfetto trace of its own, with its strings. A thread's events
        // share theirs.
        assert!(format == Format::Fxt || written(&trace, NAME) == 1);
        let trace = record(format, |_| {
            for _ in 0..2 {
                trace_scope!("", NAME);
            }
        });
        assert_eq!(written(&trace, NAME), 1, "{format:?}");
    }
}

/// How often a file has this text.
fn written(trace: &Trace, text: &str) -> usize {
    let bytes = std::fs::read(trace.path()).expect("the trace");
    bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count()
}
