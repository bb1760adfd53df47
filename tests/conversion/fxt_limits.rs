//! What FXT has no place for, and what its importers ask for: items that come from other formats, written as
//! FXT.

use hairline_convert::{
    Categories, CounterTrack, Event, EventDetails, EventKind, FlowStep, FxtWriter, Item, Log, Loss, Report,
    Text, TraceWriter, Track, TrackId, TrackKind,
};
use hairline_formats::track_event::{CounterValue, Priority, SourceLocation, Unit};
use hairline_formats::{Entries, Value};
use hairline_tests::judge::load_bytes;

const PROCESS: TrackId = TrackId(0);
const MAIN: TrackId = TrackId(1);
const OTHER: TrackId = TrackId(2);

/// A trace of a process with two threads, and what the writer has to say about it.
fn written(items: &[Item<'_>]) -> (Vec<u8>, Report) {
    let thread = |id, tid, name: &str| {
        let track = Track::new(id, TrackKind::Thread { pid: 7, tid });
        Item::Track(Track { parent: Some(PROCESS), name: name.into(), ..track })
    };
    let process = Track::new(PROCESS, TrackKind::process(7));
    let tracks = [
        Item::Track(Track { name: "app".into(), ..process }),
        thread(MAIN, 8, "main"),
        thread(OTHER, 9, "other"),
    ];
    let mut out = Vec::new();
    let mut writer = FxtWriter::new(&mut out);
    tracks.iter().chain(items).for_each(|item| writer.write(item).expect("memory"));
    writer.finish().expect("memory");
    let report = writer.report().clone();
    drop(writer);
    (out, report)
}

#[track_caller]
fn rows(items: &[Item<'_>], sql: &str) -> (Vec<String>, Vec<String>) {
    let (trace, report) = written(items);
    let verdict = load_bytes(&trace, &[sql]);
    verdict.require_clean();
    let report = report.iter().map(|(what, count)| format!("{count} {what}")).collect();
    (verdict.results[0].text().lines().map(str::to_owned).collect(), report)
}

fn named(time: i64, track: TrackId, kind: EventKind, name: &str) -> Event<'_> {
    Event { name: name.into(), ..Event::new(time, track, kind) }
}

const SLICES: &str = "select ts, dur, depth, ifnull(category, ''), name from slice order by ts, depth";
const FLOWS: &str = "select a.name, b.name from flow join slice a on a.id = slice_out join slice b on b.id = slice_in \
     order by a.ts, b.ts";
const ARGS: &str = "select key, display_value from args join slice using (arg_set_id) order by args.id";

#[test]
fn flows_begin_at_the_earliest_event_whichever_is_told_first() {
    let at = |time, track, name, details| {
        let event = named(time, track, EventKind::Complete { duration: 5 }, name);
        Item::Event(Event { details: Some(details), ..event })
    };
    let through = EventDetails { flows: &[77], ..EventDetails::default() };
    let ending = EventDetails { ending_flows: &[77], ..EventDetails::default() };
    let items = [
        at(50, OTHER, "third", &through),
        at(90, OTHER, "last", &ending),
        at(30, MAIN, "second", &through),
        at(10, MAIN, "first", &through),
    ];
    let (flows, report) = rows(&items, FLOWS);
    assert_eq!(flows, ["first\tsecond", "second\tthird", "third\tlast"]);
    assert_eq!(report, [""; 0]);
}

#[test]
fn instants_begins_and_ends_have_their_flows() {
    let [begin, moment, end] =
        [&[1][..], &[1, 2], &[2]].map(|flows| EventDetails { flows, ..EventDetails::default() });
    let part = |event, details| Item::Event(Event { details: Some(details), ..event });
    let items = [
        part(named(10, MAIN, EventKind::Begin, "begin"), &begin),
        part(named(20, MAIN, EventKind::Instant, "moment"), &moment),
        part(Event::new(30, MAIN, EventKind::End), &end),
    ];
    let (flows, report) = rows(&items, FLOWS);
    // An arrow is shown from the slice that began first.
    assert_eq!(flows, ["begin\tmoment", "begin\tmoment"]);
    assert_eq!(report, [""; 0]);
    let (slices, _) = rows(&items, SLICES);
    assert_eq!(slices, ["10\t20\t0\t\tbegin", "20\t0\t1\t\tmoment"]);
}

#[test]
fn a_flow_waits_for_the_slice_that_begins_next() {
    let flow = |time, step, to_next| {
        Item::Event(Event::new(time, MAIN, EventKind::Flow { id: 5, step, to_next, lasts: false }))
    };
    let slice = |time, name| Item::Event(named(time, MAIN, EventKind::Complete { duration: 5 }, name));
    let items = [
        slice(10, "from"),
        flow(12, FlowStep::Begin, false),
        flow(17, FlowStep::End, true),
        slice(20, "to"),
        flow(30, FlowStep::End, true),
    ];
    let (flows, report) = rows(&items, FLOWS);
    assert_eq!(
        (flows, report),
        (vec!["from\tto".into()], vec!["1 flows to slices that never came left out".into()])
    );
}

struct Nested;
impl Entries for Nested {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("a", Value::I64(1));
        show("b", Value::Str("two"));
    }
}

#[test]
fn nested_values_places_and_correlations_become_arguments() {
    let args: &[(Text<'_>, Value<'_>)] =
        &[("map".into(), Value::Dict(&Nested)), ("list".into(), Value::Array(&Nested))];
    let details = EventDetails {
        correlation: Some("request 3"),
        location: Some(SourceLocation { file: "main.rs", function: "main", line: 7 }),
        log: Some(Log { body: "a message", priority: Priority::Warn, tag: None }),
        ..EventDetails::default()
    };
    let event = Event { args: &args, details: Some(&details), ..named(10, MAIN, EventKind::Instant, "all") };
    let (args, report) = rows(&[Item::Event(event)], ARGS);
    let expected = [
        "map.a\t1",
        "map.b\ttwo",
        "list[0]\t1",
        "list[1]\ttwo",
        "correlation_id\trequest 3",
        "source\tmain.rs:7",
        "level\twarn",
        "message\ta message",
    ];
    assert_eq!(args, expected);
    assert_eq!(report, ["1 functions of source locations left out"]);
}

#[test]
fn what_is_too_much_for_a_record_is_left_out_and_counted() {
    let long = "x".repeat(40_000);
    let names: Vec<String> = (0..20).map(|n| format!("a{n}")).collect();
    let many: Vec<(Text<'_>, Value<'_>)> =
        names.iter().map(|name| (name.as_str().into(), Value::I64(1))).collect();
    let texts = [("first".into(), Value::Str(&long)), ("second".into(), Value::Str(&long))];
    let (many, texts): (&[_], &[_]) = (&many, &texts);
    let items = [
        Item::Event(Event { args: &many, ..named(10, MAIN, EventKind::Instant, "many") }),
        Item::Event(Event { args: &texts, ..named(20, MAIN, EventKind::Instant, "long") }),
        Item::Event(named(30, MAIN, EventKind::Instant, &long)),
    ];
    let sql = "select s.ts, length(s.name), count(a.id), sum(length(a.display_value)) from slice s \
         left join args a using (arg_set_id) group by s.id order by s.ts";
    let (slices, report) = rows(&items, sql);
    assert_eq!(slices, ["10\t4\t15\t15", "20\t4\t1\t32000", "30\t32000\t0\tNULL"]);
    let expected =
        ["6 arguments beyond the 15 of a record, or its 32 KiB, left out", "3 texts cut at 32000 bytes"];
    assert_eq!(report, expected);
}

#[test]
fn several_categories_are_one_text() {
    let categories: &[Text<'_>] = &["net".into(), "db".into()];
    let event = named(10, MAIN, EventKind::Complete { duration: 3 }, "both");
    let items = [Item::Event(Event { categories: Categories::Many(&categories), ..event })];
    assert_eq!(rows(&items, SLICES).0, ["10\t3\t0\tnet,db\tboth"]);
}

#[test]
fn async_intervals_of_two_processes_are_two() {
    let interval = |id, parent| {
        let kind = TrackKind::Async { id: 1, scope: "jobs".into() };
        Item::Track(Track { parent: Some(parent), ..Track::new(id, kind) })
    };
    let (one, two, second) = (TrackId(3), TrackId(4), TrackId(5));
    let items = [
        Item::Track(Track::new(second, TrackKind::process(17))),
        interval(one, PROCESS),
        interval(two, second),
        Item::Event(named(10, one, EventKind::Begin, "job")),
        Item::Event(named(20, two, EventKind::Begin, "job")),
        Item::Event(Event::new(30, one, EventKind::End)),
        Item::Event(Event::new(50, two, EventKind::End)),
    ];
    let (slices, report) = rows(&items, SLICES);
    assert_eq!(slices, ["10\t20\t0\t\tjob", "20\t30\t0\t\tjob"]);
    assert_eq!(report, [""; 0]);
}

#[test]
fn counters_of_every_place_have_their_values() {
    let counter = |id, parent, name: &str, unit| {
        let kind = TrackKind::Counter(Box::new(CounterTrack { unit, ..CounterTrack::default() }));
        Item::Track(Track { parent, name: name.into(), ..Track::new(id, kind) })
    };
    let value = |time, track, value| Item::Event(Event::new(time, track, EventKind::Counter(value)));
    let tracks: Vec<_> = (3..7).map(TrackId).collect();
    let extra = [(tracks[2], CounterValue::Int(4))];
    let items = [
        counter(tracks[0], Some(PROCESS), "plain", Unit::Unspecified),
        counter(tracks[1], Some(PROCESS), "sent", Unit::SizeBytes),
        counter(tracks[2], Some(MAIN), "of a thread", Unit::Unspecified),
        counter(tracks[3], None, "of all", Unit::Unspecified),
        value(10, tracks[0], CounterValue::Int(1)),
        value(20, tracks[1], CounterValue::Int(2)),
        value(30, tracks[2], CounterValue::Int(3)),
        Item::Event(Event { extra_counters: &extra, ..named(40, MAIN, EventKind::Instant, "sampled") }),
        value(50, tracks[3], CounterValue::Double(0.5)),
    ];
    let sql = "select c.ts, t.name, c.value, ifnull(t.unit, '') from counter c join counter_track t on t.id = track_id order by c.ts";
    let (counters, report) = rows(&items, sql);
    let expected = [
        "10\tplain:value:0\t1.0\t",
        "20\tsent\t2.0\tbytes",
        "30\tof a thread\t3.0\t",
        "40\tof a thread\t4.0\t",
        "50\tof all\t0.5\t",
    ];
    assert_eq!(counters, expected);
    assert_eq!(report, [""; 0]);
}

#[test]
fn a_loss_is_shown() {
    let loss = Loss { track: Some(OTHER), time: Some(15), events: 3 };
    let (slices, report) = rows(&[Item::Loss(loss)], SLICES);
    assert_eq!((slices, report), (vec!["15\t0\t0\thairline\tevents lost".into()], vec![]));
}
