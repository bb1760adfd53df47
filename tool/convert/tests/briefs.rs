//! Events in brief say what the items say: of whole traces, and of damaged ones.

use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{
    BriefUse, Context, Event, Item, MOST_BRIEF, TraceFormat, TraceReader, TrackId, create, open,
};
use hairline_formats::Value;
use hairline_formats::fxt::{self, EventKind, StringRef, ThreadRef};
use hairline_formats::track_event::{
    self as te, CustomTrack, EventType, SequenceId, TrackUuid, custom_descriptor,
};

/// Pseudorandom numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A trace of three threads with slices, arguments, instants, counters, flows and intervals.
fn records(seed: u64, events: u64) -> Vec<u8> {
    let (mut out, mut random, mut time) = (Vec::new(), Random(seed), 1_000);
    fxt::magic(&mut out);
    fxt::provider_info(&mut out, 1, "briefs");
    fxt::initialization(&mut out, if seed.is_multiple_of(2) { 1_000_000_000 } else { 19_200_000 });
    for index in 1..=40_u16 {
        fxt::string_record(&mut out, index, &format!("name {}", index % 37));
    }
    for n in 0..events {
        if n % 16 == 0 {
            fxt::thread_record(&mut out, 1, 77, 100 + random.below(3));
        }
        time += random.below(3) * random.below(500);
        let kind = match random.below(20) {
            0..8 => EventKind::DurationBegin,
            8..15 => EventKind::DurationEnd,
            15 => EventKind::Instant,
            16 => EventKind::Counter,
            17 => EventKind::DurationComplete,
            18 => EventKind::FlowBegin,
            _ => EventKind::AsyncBegin,
        };
        let text = |random: &mut Random| match random.below(30) {
            0 => StringRef::Inline("inline"),
            1 => StringRef::Empty,
            2 => StringRef::Index(random.below(50) as u16 + 1), // beyond 40 undefined
            _ => StringRef::Index(random.below(40) as u16 + 1),
        };
        let (category, name) = (text(&mut random), text(&mut random));
        let args = [(StringRef::Index(1), Value::I64(n.cast_signed())), (name, Value::Str("text"))];
        let count = if kind == EventKind::Counter { 1 } else { random.below(8).saturating_sub(5) as usize };
        let payload = match kind {
            EventKind::DurationComplete => Some(time + random.below(300)),
            EventKind::Counter | EventKind::FlowBegin | EventKind::AsyncBegin => Some(random.below(4)),
            _ => None,
        };
        let (thread, args) = (ThreadRef::Index(1), &args[..count]);
        fxt::event(&mut out, &fxt::Event { kind, timestamp: time, thread, category, name, args, payload });
    }
    out
}

fn converted(trace: &[u8], to: TraceFormat) -> Vec<u8> {
    let (mut out, mut context) = (Vec::new(), Context::new());
    let (mut reader, mut writer) = (open(trace, None).unwrap(), create(to, &mut out));
    while let Some(item) = reader.next(&mut context).unwrap() {
        writer.write(&item).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    out
}

/// The converted trace and what the reports say, with events in brief where that is possible, or all as
/// items. Ends where the reader finds an error.
fn written(trace: &[u8], to: TraceFormat, in_brief: bool) -> (Vec<u8>, Vec<String>) {
    let (mut out, mut context, mut briefs) = (Vec::new(), Context::new(), Vec::new());
    let Ok(mut reader) = open(trace, None) else { return (out, Vec::new()) };
    let mut writer = create(to, &mut out);
    loop {
        if in_brief {
            reader.briefs(BriefUse::Writing, &mut context, &mut briefs);
            writer.write_briefs(&briefs, &context.strings).unwrap();
        }
        let Ok(Some(item)) = reader.next(&mut context) else { break };
        writer.write(&item).unwrap();
    }
    writer.finish().unwrap();
    let report: Vec<_> = [reader.report(), writer.report()]
        .into_iter()
        .flat_map(|report| report.iter().map(|(what, n)| format!("{n} {what}")))
        .collect();
    drop(writer);
    (out, report)
}

fn assert_equal_bytes(trace: &[u8], what: &str) {
    for to in [TraceFormat::Fxt, TraceFormat::TrackEvent, TraceFormat::Json] {
        let (items, briefs) = (written(trace, to, false), written(trace, to, true));
        assert!(items.0 == briefs.0, "{what} to {to:?}: other bytes");
        assert_eq!(items.1, briefs.1, "{what} to {to:?}");
    }
}

/// What a reading says: its events, or its slices, then its report, its error, and where it ended.
#[derive(Debug, Default, PartialEq)]
struct Told(Vec<String>);

impl Told {
    fn event(&mut self, event: &Event<'_>) {
        let mut categories = Vec::new();
        event.categories.each(&mut |text| categories.push((text.text.to_owned(), text.id)));
        let about = (event.time, event.track, event.kind, event.name, categories);
        self.0.push(format!("{about:?} {}", event.args.is_empty()));
    }

    fn ends(&mut self, reader: &dyn TraceReader, error: Option<String>) {
        self.0.extend(reader.report().iter().map(|(what, n)| format!("{n} {what}")));
        self.0.push(format!("{error:?} {}", reader.position()));
    }
}

impl SliceSink for Told {
    fn slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        self.0.push(format!("{slice:?} in {}", above.len()));
    }

    fn open_slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        self.0.push(format!("open: {slice:?}"));
    }

    fn defect(&mut self, what: Defect, track: TrackId, time: i64, name: Key) {
        self.0.push(format!("{what:?} {track:?} {time} {name:?}"));
    }
}

/// Reads a trace, with events in brief where that is possible, or all as items. Returns what is told of its
/// events or slices, and how many events came in brief.
fn told(trace: &[u8], wanted: BriefUse, in_brief: bool) -> (Told, usize) {
    let (mut told, mut context, mut slices, mut all) = (Told::default(), Context::new(), Slices::new(), 0);
    let Ok(mut reader) = open(trace, None) else { return (told, 0) };
    let (mut briefs, mut counters) = (Vec::new(), Vec::new());
    let error = loop {
        if in_brief {
            reader.briefs(wanted, &mut context, &mut briefs);
            assert!(briefs.len() <= MOST_BRIEF);
            all += briefs.len();
            match wanted {
                BriefUse::Counting => {
                    slices.briefs(&briefs, &context.strings, &mut told);
                    let values = briefs.iter().filter_map(|it| Some((it.time, it.track, it.value()?)));
                    counters.extend(values.map(|value| format!("{value:?}")));
                }
                BriefUse::Writing => briefs.iter().for_each(|brief| {
                    told.event(&brief.event(&context.strings).expect("no counter value"));
                }),
            }
        }
        match (reader.next(&mut context), wanted) {
            (Ok(None), _) => break None,
            (Err(e), _) => break Some(e.to_string()),
            (Ok(Some(item)), BriefUse::Counting) => {
                if let Item::Event(Event {
                    time,
                    track,
                    kind: hairline_convert::EventKind::Counter(value),
                    ..
                }) = item
                {
                    let value = match value {
                        te::CounterValue::Int(value) => value as f64,
                        te::CounterValue::Double(value) => value,
                    };
                    counters.push(format!("{:?}", (time, track, value)));
                }
                slices.item(&item, &mut told);
            }
            (Ok(Some(Item::Event(event))), BriefUse::Writing) => told.event(&event),
            (Ok(Some(item)), BriefUse::Writing) => told.0.push(format!("{item:?}")),
        }
    };
    slices.finish(&mut told).unwrap();
    told.0.append(&mut counters);
    told.ends(&*reader, error);
    (told, all)
}

fn assert_equal_ways(trace: &[u8], what: &str) -> usize {
    let mut all = 0;
    for wanted in [BriefUse::Counting, BriefUse::Writing] {
        let ((items, _), (briefs, count)) = (told(trace, wanted, false), told(trace, wanted, true));
        if items != briefs {
            let differs = items.0.iter().zip(&briefs.0).find(|(one, other)| one != other);
            panic!("{what}, {wanted:?}: {differs:?}, {} and {} lines", items.0.len(), briefs.0.len());
        }
        all += count;
    }
    all
}

#[test]
fn whole_traces_say_the_same_in_brief() {
    for seed in 1..20 {
        let trace = records(seed, 5_000);
        for to in [TraceFormat::Fxt, TraceFormat::TrackEvent] {
            let all = assert_equal_ways(&converted(&trace, to), &format!("{to:?} {seed}"));
            assert!(all > 4_000, "{to:?} {seed}: only {all} events of 5,000 in brief");
        }
        assert_equal_ways(&trace, &format!("{seed}"));
    }
}

#[test]
fn traces_that_are_written_in_brief_have_the_same_bytes() {
    for seed in 1..12 {
        let trace = records(seed, 5_000);
        for to in [TraceFormat::Fxt, TraceFormat::TrackEvent] {
            assert_equal_bytes(&converted(&trace, to), &format!("{to:?} {seed}"));
        }
        assert_equal_bytes(&trace, &format!("{seed}"));
    }
}

/// More names than FXT has indices, many threads, and times that go back.
#[test]
fn traces_with_too_much_of_everything_have_the_same_bytes_in_brief() {
    let (mut out, mut random) = (Vec::new(), Random(3));
    let uuid = |number: u32| TrackUuid(u64::from(number) + 1);
    te::process_descriptor(
        &mut out,
        SequenceId(1),
        &te::ProcessTrack { uuid: uuid(0), pid: 7, name: "p", cmdline: &[] },
    );
    for number in 1..=300 {
        let (parent_uuid, tid) = (uuid(0), i64::from(number));
        let thread = te::ThreadTrack { uuid: uuid(number), parent_uuid, pid: 7, tid, name: "t" };
        te::thread_descriptor(&mut out, SequenceId(1), &thread);
    }
    for n in 0..120_000_u64 {
        let text = format!("name {}", random.below(40_000));
        let kind = [EventType::SliceBegin, EventType::SliceEnd, EventType::Instant][random.below(3) as usize];
        let time = (n * 10).saturating_sub(random.below(50) / 49 * 900);
        let event = te::Event::new(SequenceId(1), kind, time);
        let track_uuid = Some(uuid(1 + (n / 40 % 300) as u32));
        let name = (kind != EventType::SliceEnd).then_some(te::Name::Text(&text));
        te::event(&mut out, &te::Event { track_uuid, name, needs_state: false, ..event });
    }
    let interned = converted(&out, TraceFormat::TrackEvent);
    assert_equal_bytes(&interned, "many of all");
    assert_equal_bytes(&converted(&interned, TraceFormat::Fxt), "many of all, in FXT");
}

#[test]
fn damaged_traces_say_the_same_in_brief() {
    let mut random = Random(7);
    for seed in 1..4 {
        let trace = records(seed, 200);
        for to in [TraceFormat::Fxt, TraceFormat::TrackEvent] {
            let sound = converted(&trace, to);
            for n in 0..700 {
                let mut damaged = sound.clone();
                for _ in 0..=random.below(3) {
                    let at = random.below(damaged.len() as u64) as usize;
                    damaged[at] = match random.below(3) {
                        0 => random.below(256) as u8,
                        1 => damaged[at] ^ 1 << random.below(8),
                        _ => damaged[at].wrapping_add(1),
                    };
                }
                damaged.truncate(damaged.len() - random.below(40) as usize);
                assert_equal_ways(&damaged, &format!("{to:?} {seed}"));
                if n % 4 == 0 {
                    assert_equal_bytes(&damaged, &format!("{to:?} {seed}"));
                }
            }
        }
    }
}

#[test]
fn events_on_named_tracks_and_of_another_layout_are_brief_too() {
    let mut trace = Vec::new();
    let uuid = TrackUuid(1 << 60);
    custom_descriptor(
        &mut trace,
        SequenceId(1),
        &CustomTrack { uuid, name: "lane", ..CustomTrack::default() },
    );
    for time in 0..1_000 {
        let kind = if time % 2 == 0 { EventType::SliceBegin } else { EventType::SliceEnd };
        let event = te::Event::new(SequenceId(1), kind, time);
        te::event(&mut trace, &te::Event { track_uuid: Some(uuid), needs_state: false, ..event });
    }
    assert!(assert_equal_ways(&trace, "a track") > 1_900);
}

#[test]
fn a_format_without_events_in_brief_gives_items() {
    let json = br#"[{"name":"read","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]"#;
    assert_eq!(assert_equal_ways(json, "JSON"), 0);
}
