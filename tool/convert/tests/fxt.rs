//! FXT that is damaged, and FXT of anything that can be said in it.

use hairline_convert::{
    Arguments, Categories, Context, Event, EventKind, FlowStep, FxtReader, FxtWriter, Item, Text,
    TraceReader, TraceWriter, Track, TrackId, TrackKind,
};
use hairline_formats::Value;
use hairline_formats::fxt as format;
use proptest::prelude::*;

/// All items of a trace in short, up to where it is damaged.
fn items(trace: &[u8]) -> Vec<String> {
    let (mut reader, mut context, mut all) = (FxtReader::new(trace), Context::new(), Vec::new());
    while let Ok(Some(item)) = reader.next(&mut context) {
        match item {
            // By its number it is told apart in one trace only.
            Item::Track(Track { kind, name, .. }) => all.push(format!("{kind:?} {name:?}")),
            Item::Event(event) => all.push(short(&event)),
            Item::Loss(loss) => all.push(format!("{loss:?}")),
            Item::Foreign { what, bytes, .. } => all.push(format!("{what} {bytes:?}")),
            _ => {}
        }
    }
    all
}

fn short(event: &Event<'_>) -> String {
    let mut out = format!("{} {:?} {:?} {:?}", event.time, event.track, event.kind, event.name.text);
    event.categories.each(&mut |category| out += &format!(" [{}]", category.text));
    event.args.each(&mut |name, value| {
        let value = if let Value::Interned { text, .. } = value { Value::Str(text) } else { value };
        out += &format!(" {}={value:?}", name.text);
    });
    out + &format!(" {:?}", event.log().map(|log| log.body))
}

fn again(trace: &[u8]) -> Vec<u8> {
    let (mut out, mut context) = (Vec::new(), Context::new());
    let (mut reader, mut writer) = (FxtReader::new(trace), FxtWriter::new(&mut out));
    while let Ok(Some(item)) = reader.next(&mut context) {
        writer.write(&item).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    out
}

/// A trace of what a strategy gave.
fn trace(events: &[Told]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = FxtWriter::new(&mut out);
    let process = Track { name: "app".into(), ..Track::new(TrackId(0), TrackKind::process(7)) };
    writer.write(&Item::Track(process)).unwrap();
    for thread in 0..THREADS {
        let kind = TrackKind::Thread { pid: 7, tid: u64::from(thread) };
        let track = Track {
            parent: Some(TrackId(0)),
            name: "thread".into(),
            ..Track::new(TrackId(1 + thread), kind)
        };
        writer.write(&Item::Track(track)).unwrap();
    }
    let mut context = Context::new();
    for told in events {
        let name = Text {
            text: &told.name,
            id: told.numbered.then(|| context.strings.number(&told.name)).flatten(),
        };
        let args: Vec<(Text<'_>, Value<'_>)> =
            told.args.iter().map(|(k, v)| (k.as_str().into(), v.value())).collect();
        let args: &[_] = &args;
        writer
            .write(&Item::Event(Event {
                name,
                categories: if told.name.len() > 3 {
                    Categories::One("net".into())
                } else {
                    Categories::None
                },
                args: &args as &dyn Arguments,
                ..Event::new(told.time, TrackId(1 + told.thread), told.kind)
            }))
            .unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    out
}

const THREADS: u32 = 300; // more than indices

#[derive(Clone, Debug)]
struct Told {
    time: i64,
    thread: u32,
    kind: EventKind,
    name: String,
    numbered: bool,
    args: Vec<(String, Scalar)>,
}

#[derive(Clone, Debug)]
enum Scalar {
    Null,
    Bool(bool),
    I64(i64),
    U64(u64),
    Text(String),
    Blob(Vec<u8>),
    Pointer(u64),
    Koid(u64),
}

impl Scalar {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(v) => Value::Bool(*v),
            Self::I64(v) => Value::I64(*v),
            Self::U64(v) => Value::U64(*v),
            Self::Text(v) => Value::Str(v),
            Self::Blob(v) => Value::Blob(v),
            Self::Pointer(v) => Value::Pointer(*v),
            Self::Koid(v) => Value::Koid(*v),
        }
    }
}

fn scalar() -> impl Strategy<Value = Scalar> {
    prop_oneof![
        Just(Scalar::Null),
        any::<bool>().prop_map(Scalar::Bool),
        any::<i64>().prop_map(Scalar::I64),
        any::<u64>().prop_map(Scalar::U64),
        "\\PC{0,40}".prop_map(Scalar::Text),
        proptest::collection::vec(any::<u8>(), 0..40).prop_map(Scalar::Blob),
        any::<u64>().prop_map(Scalar::Pointer),
        any::<u64>().prop_map(Scalar::Koid),
    ]
}

fn told() -> impl Strategy<Value = Told> {
    let step = prop_oneof![Just(FlowStep::Begin), Just(FlowStep::Step), Just(FlowStep::End)];
    let kind = prop_oneof![
        Just(EventKind::Begin),
        Just(EventKind::End),
        Just(EventKind::Instant),
        (0..1_000_i64).prop_map(|duration| EventKind::Complete { duration }), // slices that overlap have other tracks
        (any::<u64>(), step).prop_map(|(id, step)| EventKind::Flow {
            id,
            step,
            to_next: false,
            lasts: false
        }),
    ];
    let args = proptest::collection::vec(("[a-z]{1,9}", scalar()), 0..format::MAX_ARGS);
    (0..1_i64 << 60, 0..THREADS, kind, "\\PC{0,20}", any::<bool>(), args).prop_map(
        |(time, thread, kind, name, numbered, args)| {
            // An end with a name may close no slice, or several.
            let name = if kind == EventKind::End { String::new() } else { name };
            Told { time, thread, kind, name, numbered, args }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read(events in proptest::collection::vec(told(), 0..400)) {
        let written = trace(&events);
        let read: Vec<_> = items(&written).into_iter().filter(|item| item.starts_with(|c: char| c.is_ascii_digit())).collect();
        prop_assert_eq!(read.len(), events.len());
        for (told, read) in events.iter().zip(&read) {
            let name = if told.kind == EventKind::End { "" } else { &told.name };
            prop_assert!(read.contains(&format!("{:?} {name:?}", told.kind)), "{told:?}: {read}");
            for (name, value) in &told.args {
                // A number has the narrowest type that holds it, and is the same.
                let value = value.value();
                prop_assert!(read.contains(&format!(" {name}={value:?}")), "{told:?}: {read}");
            }
        }
        prop_assert_eq!(items(&again(&written)), items(&written));
    }

    #[test]
    fn a_cut_trace_is_good_up_to_there(events in proptest::collection::vec(told(), 0..40), at in any::<prop::sample::Index>()) {
        let written = trace(&events);
        let (cut, whole) = (items(&written[..at.index(written.len())]), items(&written));
        prop_assert_eq!(&whole[..cut.len()], &cut[..]);
    }

    #[test]
    fn a_damaged_trace_harms_nobody(
        events in proptest::collection::vec(told(), 0..40),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
    ) {
        let mut written = trace(&events);
        for (at, byte) in damage {
            let at = 8.max(at.index(written.len())).min(written.len() - 1);
            written[at] = byte;
        }
        // Each item gives itself and its track. The head of the trace may be lost.
        let (before, after) = (items(&written).len(), items(&again(&written)).len());
        prop_assert!(after <= 2 * before + 3, "{before} items became {after}");
    }

    #[test]
    fn garbage_after_the_magic_number_harms_nobody(words in proptest::collection::vec(any::<u64>(), 0..400), kinds in any::<u64>()) {
        let mut trace = Vec::new();
        format::magic(&mut trace);
        for (n, word) in words.into_iter().enumerate() {
            // A type and a size that may be, so that records follow each other.
            let (kind, size) = ((kinds >> (n % 16 * 4)) & 0xf, 1 + word % 12);
            trace.extend_from_slice(&(word & !0xffff | size << 4 | kind).to_le_bytes());
            (1..size).for_each(|n| trace.extend_from_slice(&word.rotate_left(n as u32 * 8).to_le_bytes()));
        }
        again(&trace);
    }
}

/// There are 32,767 string indices, so each is reused several times, also for a name beside an old argument.
#[test]
fn texts_stay_what_they_are_however_many_there_are() {
    let (mut out, mut context) = (Vec::new(), Context::new());
    let mut writer = FxtWriter::new(&mut out);
    writer.write(&Item::Track(Track::new(TrackId(0), TrackKind::Thread { pid: 7, tid: 8 }))).unwrap();
    for time in 0..100_000 {
        let name = format!("{}", time / 2);
        let [argument, name] =
            ["argument", &name].map(|text| Text { text, id: context.strings.number(text) });
        let args: &[_] = &[(argument, Value::I64(time))];
        let event = Event::new(time, TrackId(0), EventKind::Instant);
        writer.write(&Item::Event(Event { name, args: &args as &dyn Arguments, ..event })).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    let read = items(&out).into_iter().filter(|item| item.starts_with(|c: char| c.is_ascii_digit()));
    let mut times = 0..100_000;
    for (read, time) in read.zip(&mut times) {
        assert!(read.contains(&format!("{:?} argument=I64({time})", (time / 2).to_string())), "{read}");
    }
    assert_eq!(times.next(), None);
}

#[test]
fn what_is_no_trace_is_an_error() {
    for garbage in [&b""[..], b"hello", b"[{\"ph\":\"X\"}]     ", &[0xff; 64], &[0; 64]] {
        let (mut reader, mut context) = (FxtReader::new(garbage), Context::new());
        assert_eq!(reader.next(&mut context).is_ok(), garbage.is_empty(), "{garbage:?}");
    }
}
