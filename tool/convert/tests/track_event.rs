//! Items that are written as packets are read as they were; bytes that are no packets do no harm.

use hairline_convert::{
    Categories, Clock, Context, CounterTrack, Error, Event, EventDetails, EventKind, FlowStep, FxtReader,
    FxtWriter, Item, Log, Loss, Stack, StackFrame, Text, Trace, TraceFormat, TraceReader, TraceWriter, Track,
    TrackEventReader, TrackEventWriter, TrackId, TrackKind, create,
};
use hairline_formats::Value;
use hairline_formats::track_event::{
    ChildOrdering, CounterValue, Priority, SiblingMerge, SourceLocation, Unit,
};
use proptest::prelude::*;

const PROCESS: TrackId = TrackId(0);
const THREADS: [TrackId; 2] = [TrackId(1), TrackId(2)];
const LANE: TrackId = TrackId(3);
const COUNTER: TrackId = TrackId(4);

fn track(id: TrackId, kind: TrackKind, name: &str) -> Track {
    Track { parent: (id != PROCESS).then_some(PROCESS), name: name.into(), ..Track::new(id, kind) }
}

fn tracks(command_line: &[String]) -> [Track; 5] {
    let counter = CounterTrack {
        unit: Unit::SizeBytes,
        multiplier: 1024,
        y_axis_share_key: "memory".into(),
        ..CounterTrack::default()
    };
    let lane = Track {
        rank: Some(-3),
        child_ordering: ChildOrdering::Chronological,
        merge: SiblingMerge::ByKey,
        merge_key: "key".into(),
        description: "a lane".into(),
        ..track(LANE, TrackKind::Slices, "lane")
    };
    [
        track(
            PROCESS,
            TrackKind::Process { pid: 70, command_line: command_line.into(), parent: Some(60) },
            "process",
        ),
        track(THREADS[0], TrackKind::Thread { pid: 70, tid: 71 }, "first"),
        track(THREADS[1], TrackKind::Thread { pid: 70, tid: 72 }, "second"),
        lane,
        track(COUNTER, TrackKind::Counter(Box::new(counter)), "counter"),
    ]
}

/// A string, and whether it has a number.
type Word = (String, bool);

/// An event that owns what it says.
#[derive(Clone, Debug)]
struct Owned {
    time: i64,
    track: TrackId,
    kind: EventKind,
    name: Word,
    categories: Vec<Word>,
    args: Vec<(String, Scalar)>,
    flows: Vec<u64>,
    ending_flows: Vec<u64>,
    extra: Option<i64>,
    correlation: Option<String>,
    location: Option<(String, u32)>,
    log: Option<String>,
}

#[derive(Clone, Debug)]
enum Scalar {
    Bool(bool),
    I64(i64),
    U64(u64),
    F64(f64),
    Pointer(u64),
    Text(Word),
}

fn word() -> impl Strategy<Value = Word> {
    ("[a-zé\"]{1,6}", any::<bool>())
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        any::<bool>().prop_map(Scalar::Bool),
        any::<i64>().prop_map(Scalar::I64),
        any::<u64>().prop_map(Scalar::U64),
        any::<i32>().prop_map(|v| Scalar::F64(f64::from(v) / 8.0)),
        any::<u64>().prop_map(Scalar::Pointer),
        word().prop_map(Scalar::Text),
    ]
}

/// Slices everywhere, values on the counter, whole slices and steps of flows on threads.
fn place_and_kind() -> impl Strategy<Value = (TrackId, EventKind)> {
    let thread = || prop::sample::select(&THREADS[..]);
    let step = prop::sample::select(&[FlowStep::Begin, FlowStep::Step, FlowStep::End][..]);
    let slices = prop::sample::select(&[EventKind::Begin, EventKind::End, EventKind::Instant][..]);
    let place = prop::sample::select(&[PROCESS, THREADS[0], THREADS[1], LANE][..]);
    let value = prop_oneof![
        any::<i64>().prop_map(CounterValue::Int),
        any::<i32>().prop_map(|v| CounterValue::Double(f64::from(v) / 8.0))
    ];
    prop_oneof![
        4 => (place, slices),
        1 => value.prop_map(|value| (COUNTER, EventKind::Counter(value))),
        1 => (thread(), 0..1_000_i64).prop_map(|(at, us)| (at, EventKind::Complete { duration: us * 1000 })),
        1 => (thread(), any::<u64>(), step, any::<bool>()).prop_map(|(at, id, step, next)| {
            (at, EventKind::Flow { id, step, to_next: next && step == FlowStep::End, lasts: true })
        }),
    ]
}

fn event() -> impl Strategy<Value = Owned> {
    let lists = (prop::collection::vec(any::<u64>(), 0..3), prop::collection::vec(any::<u64>(), 0..2));
    let args = prop::collection::vec(("[a-z]{1,4}", scalar()), 0..4);
    let rare = (
        prop::option::weighted(0.2, any::<i64>()),
        prop::option::weighted(0.2, "[a-z]{1,5}"),
        prop::option::weighted(0.2, ("[a-z]{1,5}", 1..9_u32)),
        prop::option::weighted(0.2, "[a-z ]{1,9}"),
    );
    let words = (word(), prop::collection::vec(word(), 1..3));
    (0..1_i64 << 50, place_and_kind(), words, args, lists, rare).prop_map(
        |(time, (track, kind), (name, categories), args, (flows, ending_flows), rare)| {
            let (extra, correlation, location, log) = rare;
            Owned {
                time,
                track,
                kind,
                name,
                categories,
                args,
                flows,
                ending_flows,
                extra,
                correlation,
                location,
                log,
            }
        },
    )
}

fn text<'a>((text, has_number): &'a Word, context: &mut Context) -> Text<'a> {
    Text { text, id: has_number.then(|| context.strings.number(text)).flatten() }
}

impl Owned {
    /// Hands out the event.
    fn with(&self, context: &mut Context, use_it: impl FnOnce(&Event<'_>)) {
        let categories: Vec<_> = self.categories.iter().map(|category| text(category, context)).collect();
        let mut args = Vec::new();
        for (name, value) in &self.args {
            let value = match value {
                Scalar::Bool(v) => Value::Bool(*v),
                Scalar::I64(v) => Value::I64(*v),
                Scalar::U64(v) => Value::U64(*v),
                Scalar::F64(v) => Value::F64(*v),
                Scalar::Pointer(v) => Value::Pointer(*v),
                Scalar::Text(word) => match text(word, context) {
                    Text { text, id: Some(id) } => Value::Interned { iid: u64::from(id.0) + 1, text },
                    Text { text, id: None } => Value::Str(text),
                },
            };
            args.push((Text::from(&**name), value));
        }
        let extra: Vec<_> = self.extra.iter().map(|value| (COUNTER, CounterValue::Int(*value))).collect();
        let (many, args) = (&categories[..], &args[..]);
        let location = self.location.as_ref();
        let line = location.map_or(0, |(_, line)| *line);
        // Frames with a module are interned, others are in the event.
        let (module, file) = if line % 2 == 1 { ("/bin/app", "") } else { ("", "a.rs") };
        let main = StackFrame { function: "main", module, file, ..StackFrame::default() };
        let frames = [main, StackFrame { address: if module.is_empty() { 0 } else { line.into() }, ..main }];
        let stack = &frames[..];
        let details = EventDetails {
            flows: &self.flows,
            ending_flows: &self.ending_flows,
            bound: None,
            correlation: self.correlation.as_deref(),
            location: location.map(|(file, line)| SourceLocation { file, function: "f", line: *line }),
            log: self.log.as_deref().map(|body| Log {
                body,
                priority: Priority::Warn,
                tag: body.contains(' ').then_some(SourceLocation { file: "net", function: "", line: 7 }),
            }),
            stack: self.correlation.as_ref().map(|_| &stack as &dyn Stack),
            stack_weight: self.location.as_ref().map(|_| 0.5),
        };
        use_it(&Event {
            name: text(&self.name, context),
            categories: if let [one] = many { Categories::One(*one) } else { Categories::Many(&many) },
            args: &args,
            extra_counters: &extra,
            details: Some(&details),
            ..Event::new(self.time, self.track, self.kind)
        });
    }
}

/// All that an event says, with the name of its track.
fn shown(event: &Event<'_>, track: &str) -> String {
    let mut words = Vec::new();
    event.categories.each(&mut |category| words.push(category.text.to_owned()));
    event.args.each(&mut |name, value| match value {
        Value::Interned { text, .. } => words.push(format!("{}={:?}", name.text, Value::Str(text))),
        value => words.push(format!("{}={value:?}", name.text)),
    });
    let Event { time, kind, name, .. } = event;
    let EventDetails { flows, ending_flows, correlation, location, log, stack, stack_weight, .. } =
        event.details();
    // The name is a part of a flow's id in packets.
    let kind = match kind {
        EventKind::Flow { step, to_next, lasts, .. } => {
            EventKind::Flow { id: 0, step: *step, to_next: *to_next, lasts: *lasts }
        }
        kind => *kind,
    };
    let extra: Vec<_> = event.extra_counters.iter().map(|(_, value)| value).collect();
    format!(
        "{time} {track} {kind:?} {} {words:?} {flows:?} {ending_flows:?} {extra:?} {correlation:?} {location:?} {log:?} {stack:?} {stack_weight:?}",
        name.text
    )
}

/// The trace, and all that its events say.
fn write(items: &[Owned]) -> (Vec<u8>, Vec<String>) {
    let (mut out, mut said, mut context) = (Vec::new(), Vec::new(), Context::new());
    let command_line = ["process".to_owned(), "--flag".to_owned()];
    let tracks = tracks(&command_line);
    let mut writer = create(TraceFormat::TrackEvent, &mut out);
    let clocks = [Clock { id: 6, time: 5 }, Clock { id: 1, time: 1_000 }];
    let trace = Trace { uuid: Some(1 << 77), clocks: &clocks, ..Trace::default() };
    writer.write(&Item::Trace(trace)).expect("memory");
    tracks.iter().for_each(|track| writer.write(&Item::Track(track.clone())).expect("memory"));
    for item in items {
        item.with(&mut context, |event| {
            writer.write(&Item::Event(*event)).expect("memory");
            said.push(shown(event, &tracks[event.track.0 as usize].name));
        });
    }
    writer.finish().expect("memory");
    assert_eq!(writer.report().iter().collect::<Vec<_>>(), []);
    drop(writer);
    (out, said)
}

/// What the events say, and what else there is.
fn read(trace: &[u8]) -> (Vec<String>, Vec<String>, Option<Error>) {
    let (mut context, mut reader) = (Context::new(), TrackEventReader::new(trace));
    let (mut events, mut others, mut names) = (Vec::new(), Vec::new(), Vec::<String>::new());
    loop {
        match reader.next(&mut context) {
            Ok(Some(Item::Event(event))) => events.push(shown(&event, &names[event.track.0 as usize])),
            Ok(Some(Item::Track(track))) => {
                let is_known = |parent: TrackId| (parent.0 as usize) < names.len();
                assert!(track.parent.is_none_or(is_known), "its parent comes first");
                names.resize(names.len().max(track.id.0 as usize + 1), String::new());
                names[track.id.0 as usize] = track.name.to_string();
                others.push(format!("{track:?}"));
            }
            Ok(Some(other)) => others.push(format!("{other:?}")),
            Ok(None) => return (events, others, None),
            Err(e) => return (events, others, Some(e)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn items_are_read_as_they_were_written(items in prop::collection::vec(event(), 0..40)) {
        let (trace, mut said) = write(&items);
        let (mut read, _, error) = read(&trace);
        prop_assert!(error.is_none());
        // The categories of a counter's first value are those of all.
        let is_counter = |event: &String| event.contains(" Counter(");
        read.retain(|event| !is_counter(event));
        said.retain(|event| !is_counter(event));
        prop_assert_eq!(read, said);
    }

    #[test]
    fn a_cut_trace_is_good_up_to_the_cut(
        items in prop::collection::vec(event(), 1..10),
        at in any::<prop::sample::Index>(),
    ) {
        let (trace, _) = write(&items);
        let (whole, ..) = read(&trace);
        let (events, _, error) = read(&trace[..at.index(trace.len())]);
        prop_assert!(error.is_none_or(|e| e.is_truncated()));
        prop_assert_eq!(&whole[..events.len()], &events[..]);
    }

    #[test]
    fn damaged_traces_do_no_harm(
        items in prop::collection::vec(event(), 1..10),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let (mut trace, _) = write(&items);
        for (at, byte) in damage {
            let at = at.index(trace.len());
            trace[at] = byte;
        }
        read(&trace); // whatever it is, it ends
    }

    #[test]
    fn garbage_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut trace = vec![0x0a];
        trace.extend(bytes);
        read(&trace);
    }
}

/// Tracks of another writer may be below each other to any depth.
#[test]
fn a_long_chain_of_tracks_is_written() {
    let write = || {
        let (mut out, count) = (Vec::new(), 200_000);
        let mut writer = create(TraceFormat::TrackEvent, &mut out);
        for id in 0..count {
            let parent = (id > 0).then(|| TrackId(id - 1));
            let track = Track { parent, name: "t".into(), ..Track::new(TrackId(id), TrackKind::Slices) };
            writer.write(&Item::Track(track)).expect("memory");
        }
        let event = Event::new(1_000, TrackId(count - 1), EventKind::Instant);
        writer.write(&Item::Event(event)).expect("memory");
        writer.finish().expect("memory");
        drop(writer);
        out.len()
    };
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(write).expect("a thread");
    assert!(thread.join().expect("no overflow") > 1 << 20);
}

/// An event may have any number of counters: the first values are those at the begin of a slice.
#[test]
fn the_second_values_of_many_counters_are_at_the_end() {
    for count in [1, 16, 17, 1000] {
        let values = |add: i64| (0..count).map(move |n| (TrackId(n), CounterValue::Int(i64::from(n) + add)));
        let all: Vec<_> = values(0).chain(values(5000)).collect();
        let slice = Event {
            extra_counters: &all,
            ..Event::new(1_000, TrackId(7000), EventKind::Complete { duration: 30 })
        };
        let passed: Vec<_> = slice.counter_values().map(|(.., passed)| passed).collect();
        let half = count as usize;
        assert!(passed[..half].iter().all(|ns| *ns == 0) && passed[half..].iter().all(|ns| *ns == 30));
        let instant = Event { kind: EventKind::Instant, ..slice };
        assert!(instant.counter_values().all(|(.., passed)| passed == 0));
    }
}

#[test]
fn what_is_said_of_tracks_and_the_trace_is_read() {
    let command_line = ["process".to_owned(), "--flag".to_owned()];
    let (_, others, _) = read(&write(&[]).0);
    let all = others.join("\n");
    assert!(all.contains(&format!("command_line: {command_line:?}")));
    for part in [
        "Thread { pid: 70, tid: 72 }",
        "name: \"lane\", description: \"a lane\", child_ordering: Chronological, rank: Some(-3), merge: ByKey, merge_key: \"key\"",
        "unit: SizeBytes, unit_name: \"\", multiplier: 1024",
        "y_axis_share_key: \"memory\"",
        "uuid: Some(151115727451828646838272)",
        "clocks: [Clock { id: 6, time: 5 }, Clock { id: 1, time: 1000 }]",
    ] {
        assert!(all.contains(part), "{part}\n{all}");
    }
}

#[test]
fn a_loss_is_told_though_nothing_follows_it() {
    let event = |time| Item::Event(Event::new(time, THREADS[0], EventKind::Instant));
    let of_thread = Loss { track: Some(THREADS[0]), time: Some(12), events: 0 };
    for loss in [of_thread, Loss::default(), Loss { events: u64::MAX, ..Loss::default() }] {
        let mut out = Vec::new();
        let mut writer = create(TraceFormat::TrackEvent, &mut out);
        tracks(&[]).iter().for_each(|track| writer.write(&Item::Track(track.clone())).expect("memory"));
        for item in [event(10), event(11), Item::Loss(loss), Item::Loss(loss)] {
            writer.write(&item).expect("memory");
        }
        writer.finish().expect("memory");
        drop(writer);
        let (_, others, _) = read(&out);
        assert!(others.iter().any(|other| other.starts_with("Loss")), "{loss:?}: {others:?}");
    }
}

#[test]
fn a_loss_is_told_where_it_is() {
    let mut out = Vec::new();
    let mut writer = create(TraceFormat::TrackEvent, &mut out);
    tracks(&[]).iter().for_each(|track| writer.write(&Item::Track(track.clone())).expect("memory"));
    let event = |time, track, kind| Item::Event(Event::new(time, track, kind));
    for item in [
        event(10, THREADS[0], EventKind::Begin),
        event(11, THREADS[1], EventKind::Begin),
        Item::Loss(Loss { track: Some(THREADS[0]), time: Some(12), events: 3 }),
        event(20, THREADS[0], EventKind::Instant),
    ] {
        writer.write(&item).expect("memory");
    }
    writer.finish().expect("memory");
    drop(writer);
    let (_, others, _) = read(&out);
    let losses: Vec<_> = others.iter().filter(|other| other.starts_with("Loss")).collect();
    assert_eq!(losses.len(), 2);
    assert!(losses[0].contains("track: Some"), "{losses:?}");
    assert!(losses[1].contains("events: 3"), "{losses:?}");
}

/// Each thread is a packet sequence of its own.
#[test]
fn a_trace_with_more_threads_than_a_linux_of_today_allows_at_once_is_read_whole() {
    const THREADS: u32 = 300_000;
    let mut packets = Vec::new();
    let mut writer = TrackEventWriter::new(&mut packets);
    for n in 0..THREADS {
        let kind = TrackKind::Thread { pid: 1, tid: u64::from(n) + 1 };
        writer.write(&Item::Track(Track::new(TrackId(n), kind))).unwrap();
        writer.write(&Item::Event(Event::new(1, TrackId(n), EventKind::Instant))).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    let mut fxt = Vec::new();
    let mut writer = FxtWriter::new(&mut fxt);
    let (mut reader, mut context, mut events) = (TrackEventReader::new(&packets[..]), Context::new(), 0);
    while let Some(item) = &reader.next(&mut context).unwrap() {
        events += u32::from(matches!(item, Item::Event(_)));
        writer.write(item).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    let (mut reader, mut context, mut again) = (FxtReader::new(&fxt[..]), Context::new(), 0);
    while let Some(item) = &reader.next(&mut context).unwrap() {
        again += u32::from(matches!(item, Item::Event(_)));
    }
    assert_eq!((events, again, reader.report().is_empty()), (THREADS, THREADS, true));
}
