//! JSON that is damaged, and JSON of anything that can be said in it.

use hairline_convert::{
    Arguments, Categories, Context, Event, EventDetails, EventKind, Item, JsonReader, JsonWriter, Loss, Text,
    TraceReader, TraceWriter, Track, TrackId, TrackKind,
};
use hairline_formats::Value;
use proptest::prelude::*;

/// All items of a trace in short. An error ends them.
fn items(trace: &[u8]) -> Vec<String> {
    let (mut reader, mut context, mut all) = (JsonReader::new(trace), Context::new(), Vec::new());
    while let Ok(Some(item)) = reader.next(&mut context) {
        all.push(match item {
            Item::Event(event) => short(&event),
            other => format!("{other:?}"),
        });
    }
    all
}

fn short(event: &Event<'_>) -> String {
    let mut out = format!("{} {:?} {:?} {:?}", event.time, event.track, event.kind, event.name.text);
    event.categories.each(&mut |category| out += &format!(" [{}]", category.text));
    event.args.each(&mut |name, value| out += &format!(" {}={value:?}", name.text));
    out + &format!(" {:?} {:?} {:?}", event.flows(), event.ending_flows(), event.extra_counters)
}

/// The trace, read and written again.
fn again(trace: &[u8]) -> Vec<u8> {
    let mut context = Context::new();
    let mut reader = JsonReader::new(trace);
    written(|put| {
        while let Ok(Some(item)) = reader.next(&mut context) {
            put(item);
        }
    })
}

/// A trace of the items that `write` writes.
fn written(write: impl FnOnce(&mut dyn FnMut(Item<'_>))) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = JsonWriter::new(&mut out);
    write(&mut |item| writer.write(&item).unwrap());
    writer.finish().unwrap();
    drop(writer);
    out
}

fn is_json(trace: &[u8]) -> bool {
    serde_json::from_slice::<serde_json::Value>(trace).is_ok()
}

const PROCESS: TrackId = TrackId(0);
const THREAD: TrackId = TrackId(1);

/// A process and a thread of it.
fn tracks(put: &mut dyn FnMut(Item<'_>)) {
    let process = TrackKind::process(7);
    put(Item::Track(Track { name: "p".into(), ..Track::new(PROCESS, process) }));
    let thread = TrackKind::Thread { pid: 7, tid: 8 };
    put(Item::Track(Track { name: "t".into(), parent: Some(PROCESS), ..Track::new(THREAD, thread) }));
}

/// An event on the thread, as it is given out.
#[derive(Clone, Debug)]
struct Happened {
    time: i64,
    kind: EventKind,
    name: String,
    category: String,
    argument: (String, Given),
}

#[derive(Clone, Debug)]
enum Given {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(String),
}

impl Happened {
    fn with<T>(&self, show: impl FnOnce(&Event<'_>) -> T) -> T {
        let value = match &self.argument.1 {
            Given::Null => Value::Null,
            Given::Bool(value) => Value::Bool(*value),
            Given::Int(value) => Value::I64(*value),
            Given::Double(value) => Value::F64(*value),
            Given::Text(value) => Value::Str(value),
        };
        let arguments = [(Text::from(self.argument.0.as_str()), value)];
        let arguments: &[_] = &arguments;
        let category = Categories::One(self.category.as_str().into());
        show(&Event {
            name: self.name.as_str().into(),
            categories: if self.category.is_empty() { Categories::None } else { category },
            args: &arguments as &dyn Arguments,
            ..Event::new(self.time, THREAD, self.kind)
        })
    }
}

fn happened() -> impl Strategy<Value = Happened> {
    let kind = prop_oneof![
        Just(EventKind::Begin),
        Just(EventKind::End),
        Just(EventKind::Instant),
        (0..i64::MAX).prop_map(|duration| EventKind::Complete { duration }),
    ];
    let value = prop_oneof![
        Just(Given::Null),
        any::<bool>().prop_map(Given::Bool),
        any::<i64>().prop_map(Given::Int),
        any::<f64>().prop_filter("JSON has no others", |value| value.is_finite()).prop_map(Given::Double),
        any::<String>().prop_map(Given::Text),
    ];
    let argument = (any::<String>(), value);
    (0..=i64::MAX, kind, any::<String>(), "[^,]{0,9}", argument)
        .prop_map(|(time, kind, name, category, argument)| Happened { time, kind, name, category, argument })
}

/// The time that the output begins at, in ns. What is earlier stands there.
fn begin(first: i64) -> i64 {
    const DAY: i64 = 86_400_000_000_000;
    const SECOND: i64 = 1_000_000_000;
    if first < 1 << 51 { 0 } else { (first - DAY) / SECOND * SECOND }
}

proptest! {
    #[test]
    fn what_was_written_is_read(all in prop::collection::vec(happened(), 1..9)) {
        let trace = written(|put| {
            tracks(put);
            all.iter().for_each(|one| one.with(|event| put(Item::Event(*event))));
        });
        prop_assert!(is_json(&trace));
        let begin = begin(all[0].time);
        let expected = all.iter().map(|one| Happened { time: one.time.max(begin), ..one.clone() });
        let mut expected: Vec<_> = expected.map(|one| one.with(short)).collect();
        let mut read: Vec<_> = items(&trace).into_iter().filter(|item| !item.starts_with("Tra")).collect();
        // Slices wait for those that they are in.
        read.sort();
        expected.sort();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn what_is_damaged_harms_nobody(at in any::<prop::sample::Index>(), byte: u8, cut in any::<prop::sample::Index>()) {
        let mut trace = include_bytes!("../../../tests/conversion/corpus/chrome.json").to_vec();
        let at = at.index(trace.len());
        trace[at] = byte;
        prop_assert!(is_json(&again(&trace)));
        trace.truncate(cut.index(trace.len()));
        let out = again(&trace);
        prop_assert!(is_json(&out) && out.len() < 3 * trace.len() + 1000);
    }
}

#[test]
fn what_was_written_once_is_written_the_same_again() {
    for trace in [
        &include_bytes!("../../../tests/conversion/corpus/chrome.json")[..],
        include_bytes!("../../../tests/conversion/corpus/viztracer.json"),
        include_bytes!("../../../tests/conversion/corpus/no_end.json"),
    ] {
        let once = again(trace);
        let lines = |trace: Vec<u8>| {
            let mut lines: Vec<_> = String::from_utf8(trace).unwrap().lines().map(str::to_owned).collect();
            lines.iter_mut().for_each(|line| *line = line.trim_end_matches(',').to_owned());
            lines.sort();
            lines
        };
        assert_eq!(lines(again(&once)), lines(once));
    }
}

#[test]
fn points_of_flows_are_told_apart_by_their_times() {
    let other = TrackId(2);
    let trace = written(|put| {
        tracks(put);
        let thread = TrackKind::Thread { pid: 7, tid: 9 };
        put(Item::Track(Track { parent: Some(PROCESS), ..Track::new(other, thread) }));
        // The later one stands first in the trace.
        let complete = EventKind::Complete { duration: 5 };
        for (time, track) in [(2_000, other), (1_000, THREAD)] {
            put(Item::Event(Event {
                details: Some(&EventDetails { flows: &[77], ..EventDetails::default() }),
                ..Event::new(time, track, complete)
            }));
        }
    });
    let all = items(&trace);
    let flows: Vec<_> = all.iter().filter(|item| item.contains("Flow")).collect();
    assert!(flows.len() == 2, "{all:#?}");
    assert!(flows[0].starts_with("1000 ") && flows[0].contains("step: Begin"), "{flows:#?}");
    assert!(flows[1].starts_with("2000 ") && flows[1].contains("step: Step"), "{flows:#?}");
}

/// Importers have no more digits for them than that.
#[test]
fn times_are_exact_though_something_is_missing_before_the_first() {
    let (time, loss) = (1_700_000_000_000_000_001, Loss { events: 3, ..Loss::default() });
    let trace = written(|put| {
        put(Item::Loss(Loss::default()));
        put(Item::Loss(loss));
        tracks(put);
        put(Item::Event(Event::new(time, THREAD, EventKind::Instant)));
    });
    let text = String::from_utf8(trace.clone()).unwrap();
    assert!(text.contains("timeOffsetNs") && text.contains("\"lostEvents\":4"), "{text}");
    let events: Vec<_> =
        items(&trace).into_iter().filter(|item| item.starts_with("1700000000000000001 ")).collect();
    assert!(events.len() == 2 && events[0].contains("events lost"), "{events:?}");
}

#[test]
fn it_is_said_that_a_flow_loses_its_name() {
    for (name, said) in [("flow", 0), ("request", 2)] {
        let point = |ph: char| format!(r#"{{"ph":"{ph}","id":1,"ts":1,"pid":1,"tid":2,"name":"{name}"}}"#);
        let trace = format!("[{},{}]", point('s'), point('t'));
        let (mut reader, mut context) = (JsonReader::new(trace.as_bytes()), Context::new());
        let mut writer = JsonWriter::new(Vec::new());
        while let Some(item) = reader.next(&mut context).unwrap() {
            writer.write(&item).unwrap();
        }
        assert_eq!(writer.report().iter().map(|(_, count)| count).sum::<u64>(), said, "{name}");
    }
}

#[test]
fn the_cpu_time_of_a_slice_is_known_at_both_its_ends() {
    let trace = r#"[{"ph":"X","ts":1,"dur":5,"tts":10,"tdur":2.5,"pid":1,"tid":2,"name":"a"}]"#;
    let all = items(trace.as_bytes());
    let last = all.last().unwrap();
    assert!(last.contains("Int(10000)") && last.contains("Int(12500)"), "{all:?}");
    let out = String::from_utf8(again(trace.as_bytes())).unwrap();
    assert!(out.contains(r#""tts":10,"tdur":2.5"#), "{out}");
}

#[test]
fn intervals_of_many_ids_share_tracks() {
    use std::fmt::Write;
    let mut trace = String::from("[");
    for n in 0..20_000 {
        for (ph, time) in [('b', 10 * n), ('e', 10 * n + 25)] {
            let _ = writeln!(trace, r#"{{"ph":"{ph}","cat":"c","name":"a","id":{n},"pid":1,"ts":{time}}},"#);
        }
    }
    let all = items(trace.as_bytes());
    let tracks = all.iter().filter(|item| item.starts_with("Tra")).count();
    assert!(all.len() > 40_000 && tracks < 5_000, "{tracks} tracks");
}

#[test]
fn an_object_that_is_wrong_is_counted_and_those_after_it_are_read() {
    let trace = br#"[{"ph":"M" "ts":1}, {"ph":"i","ts":"x"}, {"ts":1}, {"ph":"i"}, 5, {"ph":"i","ts":3,"name":"good"}]"#;
    let (mut reader, mut context) = (JsonReader::new(&trace[..]), Context::new());
    let mut events = 0;
    while let Some(item) = reader.next(&mut context).unwrap() {
        events += u32::from(matches!(item, Item::Event(Event { name: Text { text: "good", .. }, .. })));
    }
    let counted: Vec<_> = reader.report().iter().collect();
    let reasons = [
        "events that are not quite JSON, repaired",
        "events whose time is no number of microseconds",
        "events without a phase",
        "events without a time",
        "values that are no events",
    ];
    assert_eq!((events, counted), (1, reasons.map(|reason| (reason, 1)).to_vec()));
}

/// The importer of JSON reads events of one time in the order of the file. So the end is that of no slice,
/// and it depends on the other intervals of the trace when the slice ends.
#[test]
fn an_interval_whose_end_stands_before_its_begin_is_counted() {
    let counted = |events: &str| {
        let event = |(phase, time): (char, &str)| {
            format!(r#"{{"ph":"{phase}","cat":"c","name":"a","id":7,"pid":1,"tid":1,"ts":{time}}}"#)
        };
        let all: Vec<_> = events.split(' ').map(|of| event((of.chars().next().unwrap(), &of[1..]))).collect();
        let trace = format!("[{}]", all.join(","));
        let (mut reader, mut context) = (JsonReader::new(trace.as_bytes()), Context::new());
        while reader.next(&mut context).unwrap().is_some() {}
        let said = reader.report().iter();
        said.filter(|(what, _)| what.contains("end stands before")).map(|(_, count)| count).sum::<u64>()
    };
    assert_eq!(counted("e40 b40 e40 b30"), 1);
    assert_eq!(counted("e40 b40 e50 b50"), 2);
    assert_eq!(counted("e40 b40 b40 b40"), 1);
    assert_eq!(counted("e40 e40 b40 b40 b40"), 2);
    assert_eq!(counted("e40 e50 b40"), 1);
    assert_eq!(counted("e40 e50 e60 b50 b40 b60"), 3);
    for no_doubt in [
        "b40 e40",
        "b1 e2 b2 e3",
        "e1 b5 e9 b9 e10",
        "e9 b5",
        "e1 e9 b5",
        "e40 e50 b30 b40",
        "b1 b2 e2 b2 e3 e3",
    ] {
        assert_eq!(counted(no_doubt), 0, "{no_doubt}");
    }
}

#[test]
fn a_member_that_is_wrong_is_not_counted_as_an_event() {
    let trace = br#"{"traceEvents":[{"ph":"i","ts":3}],"mine":[1,x],"stackFrames":{"1":5},"yours":{"a"}}"#;
    let (mut reader, mut context) = (JsonReader::new(&trace[..]), Context::new());
    while reader.next(&mut context).unwrap().is_some() {}
    let counted: Vec<_> = reader.report().iter().collect();
    assert_eq!(counted, [("members beside the events that cannot be read", 3)]);
}

#[test]
fn a_move_of_all_times_is_reported() {
    for (time, moved) in [(0, 0), ((1 << 51) - 1, 0), (1 << 51, 1), (1_700_000_000_000_000_001, 1)] {
        let mut writer = JsonWriter::new(Vec::new());
        let kind = TrackKind::Thread { pid: 7, tid: 8 };
        writer.write(&Item::Track(Track::new(TrackId(0), kind))).unwrap();
        for later in 0..3 {
            let event = Event::new(time + later, TrackId(0), EventKind::Instant);
            writer.write(&Item::Event(event)).unwrap();
        }
        writer.finish().unwrap();
        let moves = writer.report().iter().filter(|(what, _)| what.contains("move of all times"));
        assert_eq!(moves.map(|(_, count)| count).sum::<u64>(), moved, "{time}");
    }
}

/// Slices on a track of a process, in the order of the file: times, and categories of begins.
fn on_a_track(events: impl Iterator<Item = (i64, Option<&'static str>)>) -> (Vec<String>, Vec<String>) {
    let mut out = Vec::new();
    let mut writer = JsonWriter::new(&mut out);
    writer.write(&Item::Track(Track::new(PROCESS, TrackKind::process(7)))).unwrap();
    let disk = Track { name: "disk".into(), parent: Some(PROCESS), ..Track::new(THREAD, TrackKind::Slices) };
    writer.write(&Item::Track(disk)).unwrap();
    for (time, category) in events {
        let kind = if category.is_some() { EventKind::Begin } else { EventKind::End };
        let categories = category.map_or(Categories::None, |category| Categories::One(category.into()));
        writer.write(&Item::Event(Event { categories, ..Event::new(time, THREAD, kind) })).unwrap();
    }
    writer.finish().unwrap();
    let said = writer.report().iter().map(|(what, count)| format!("{count} {what}")).collect();
    drop(writer);
    let is_end = |line: &&str| line.contains(r#""ph":"e""#);
    let ends = String::from_utf8(out).unwrap().lines().filter(is_end).map(str::to_owned).collect();
    (ends, said)
}

const NO_PLACE: &str = "1 tracks that became intervals, without their name and position";

#[test]
fn ends_long_before_their_begins_have_the_category_of_their_track() {
    const FAR: i64 = 200_000;
    let begins = (0..FAR).map(|n| (10 * n, Some("db")));
    let ends = (0..FAR).map(|n| (10 * n + 5, None));
    let (ends, said) = on_a_track(ends.chain(begins));
    let without = ends.iter().filter(|end| !end.contains(r#""cat":"db""#)).count();
    // 65,536 wait in the window and as many for the first begin.
    assert_eq!((ends.len() as i64, without as i64), (FAR, FAR - 2 * 65_536));
    let counted = format!("{without} ends of intervals without their category, which importers do not find");
    assert_eq!(said, [counted.as_str(), NO_PLACE]);
}

#[test]
fn an_end_that_no_begin_precedes_in_time_stays_alone() {
    let (ends, said) = on_a_track([(5, None), (10, Some("db")), (20, None)].into_iter());
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|end| end.contains(r#""cat":"db""#)), "{ends:?}");
    assert_eq!(said, [NO_PLACE]);
}
