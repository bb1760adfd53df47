//! What the judge sees of items that only other formats have: as packets they mean the same.

use hairline_convert::{
    Categories, Event, EventKind, FlowStep, Item, Text, TraceFormat, Track, TrackId, TrackKind, create,
};
use hairline_tests::judge::load_bytes;

const PROCESS: TrackId = TrackId(0);
const THREAD: TrackId = TrackId(1);
const LANE: TrackId = TrackId(2);

fn track(id: TrackId, kind: TrackKind, name: &str) -> Item<'static> {
    Item::Track(Track {
        parent: (id != PROCESS).then_some(PROCESS),
        name: name.into(),
        ..Track::new(id, kind)
    })
}

fn event(time: i64, track: TrackId, kind: EventKind, name: &'static str) -> Item<'static> {
    let categories = Categories::One(Text::from("c"));
    Item::Event(Event { name: name.into(), categories, ..Event::new(time, track, kind) })
}

/// The rows of a query, of a trace without a complaint.
#[track_caller]
fn rows(events: &[Item<'_>], sql: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut writer = create(TraceFormat::TrackEvent, &mut out);
    for item in [
        track(PROCESS, TrackKind::process(7), "process"),
        track(THREAD, TrackKind::Thread { pid: 7, tid: 9 }, "thread"),
        track(LANE, TrackKind::Async { id: 5, scope: "c".into() }, ""),
    ] {
        writer.write(&item).expect("memory");
    }
    events.iter().for_each(|event| writer.write(event).expect("memory"));
    writer.finish().expect("memory");
    assert!(writer.report().is_empty(), "{:?}", writer.report());
    drop(writer);
    let verdict = load_bytes(&out, &[sql]);
    verdict.require_clean();
    verdict.results[0].text().lines().map(str::to_owned).collect()
}

const SLICES: &str = "select ts, dur, depth, name from slice order by ts, depth";

fn complete(time: i64, duration: i64, name: &'static str) -> Item<'static> {
    event(time, THREAD, EventKind::Complete { duration }, name)
}

#[test]
fn slices_that_are_over_nest_whatever_their_lengths() {
    let events = [
        complete(1_000, 9_000, "whole microseconds"),
        complete(2_000, 1_234, "not"),
        complete(2_100, 1_000, "inside"),
        complete(4_000, 0, "empty"),
        complete(5_001, 1_999, "odd"),
        complete(7_000, 777, "after it"),
        complete(20_000, 5, "last"),
    ];
    let expected = [
        "1000\t9000\t0\twhole microseconds",
        "2000\t1234\t1\tnot",
        "2100\t1000\t2\tinside",
        "4000\t0\t1\tempty",
        "5001\t1999\t1\todd",
        "7000\t777\t1\tafter it",
        "20000\t5\t0\tlast",
    ];
    assert_eq!(rows(&events, SLICES), expected);
}

#[test]
fn slices_may_come_in_the_order_of_their_ends() {
    let events =
        [complete(2_003, 1_001, "inner"), complete(1_001, 5_005, "outer"), complete(9_009, 1, "later")];
    let expected = ["1001\t5005\t0\touter", "2003\t1001\t1\tinner", "9009\t1\t0\tlater"];
    assert_eq!(rows(&events, SLICES), expected);
}

#[test]
fn steps_of_flows_bind_to_the_slices_that_are_open_or_to_the_next() {
    let step = |time, step, to_next| {
        event(time, THREAD, EventKind::Flow { id: 77, step, to_next, lasts: false }, "flow")
    };
    let slice = |time, name| {
        [event(time, THREAD, EventKind::Begin, name), event(time + 50, THREAD, EventKind::End, "")]
    };
    let [begin_a, end_a] = slice(100, "a");
    let [begin_b, end_b] = slice(200, "b");
    let [begin_c, end_c] = slice(300, "c");
    let events = [
        begin_a,
        step(110, FlowStep::Begin, false),
        end_a,
        begin_b,
        step(210, FlowStep::Step, false),
        end_b,
        step(260, FlowStep::End, true),
        begin_c,
        end_c,
    ];
    let sql = "select a.name || ' to ' || b.name from flow join slice a on a.id = slice_out join slice b on b.id = slice_in order by a.ts";
    assert_eq!(rows(&events, sql), ["a to b", "b to c"]);
}

#[test]
fn async_intervals_are_named_by_their_events() {
    let events = [
        event(10, LANE, EventKind::Begin, "request"),
        event(15, LANE, EventKind::Begin, "parse"),
        event(17, LANE, EventKind::Instant, "retry"),
        event(20, LANE, EventKind::End, "parse"),
        event(30, LANE, EventKind::End, "request"),
    ];
    let sql = "select s.ts, s.dur, s.depth, s.name, t.name, p.pid from slice s join process_track t on s.track_id = t.id \
         join process p using (upid) order by s.ts";
    let expected =
        ["10\t20\t0\trequest\trequest\t7", "15\t5\t1\tparse\trequest\t7", "17\t0\t2\tretry\trequest\t7"];
    assert_eq!(rows(&events, sql), expected);
}

#[test]
fn times_may_go_backwards_from_track_to_track() {
    let events = [
        event(500, THREAD, EventKind::Instant, "late"),
        event(100, LANE, EventKind::Instant, "early"),
        event(600, THREAD, EventKind::Instant, "later"),
    ];
    assert_eq!(
        rows(&events, "select ts, name from slice order by ts"),
        ["100\tearly", "500\tlate", "600\tlater"]
    );
}
