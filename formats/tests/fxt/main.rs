//! FXT: written records are read back, and any input is read without harm.

#[path = "../common/mod.rs"]
mod common;
mod large;
mod limits;
mod log;
mod malformed;
mod objects;
mod odd;
mod profiler;
mod reading;
mod scheduling;
mod words;

use common::{Broken, LENGTHS, Owned, Slow, damaged, text, unsigned, value};
use hairline_formats::fxt::{
    self, ArgumentValue, Backtrace, ContextSwitch, Event, EventKind, LargeBlob, LargeBlobMetadata,
    LegacyContextSwitch, MAX_ARGS, MAX_RECORD_WORDS, MAX_STRING, Mmap, Module, ProcessRef, Record,
    RecordReader, StringRef, ThreadRef, ThreadState, ThreadWakeup,
};
use hairline_formats::{DecodeError, DecodeErrorKind, Value};
use proptest::prelude::*;

type Args<'a> = Vec<(StringRef<'a>, ArgumentValue<'a>)>;

/// Reads a whole trace into text.
fn read(trace: impl std::io::Read) -> Vec<Result<(u64, String), DecodeError>> {
    let mut reader = RecordReader::new(trace);
    let mut all = Vec::new();
    loop {
        match reader.next() {
            Ok(Some((offset, record))) => all.push(Ok((offset, describe(&record)))),
            Ok(None) => return all,
            Err(e) => all.push(Err(e)),
        }
    }
}

fn describe(record: &Record<'_>) -> String {
    match record {
        Record::Event(event) => format!("{event:?} {:?}", event.args().collect::<Vec<_>>()),
        Record::UserspaceObject { args, .. } | Record::KernelObject { args, .. } => {
            format!("{record:?} {:?}", args.clone().collect::<Vec<_>>())
        }
        Record::ContextSwitch(switch) => format!("{switch:?} {:?}", switch.args.clone().collect::<Vec<_>>()),
        Record::ThreadWakeup(wakeup) => format!("{wakeup:?} {:?}", wakeup.args.clone().collect::<Vec<_>>()),
        Record::LargeBlob(blob) => {
            let args = blob.metadata.iter().flat_map(|metadata| metadata.args.clone());
            format!("{blob:?} {:?}", args.collect::<Vec<_>>())
        }
        other => format!("{other:?}"),
    }
}

/// Reads the one event of a trace and passes it to `check`.
fn with_event(trace: &[u8], check: impl FnOnce(&fxt::EventRecord<'_>, Args<'_>)) {
    let mut reader = RecordReader::new(trace);
    let Some((0, Record::Event(event))) = reader.next().unwrap() else { panic!("not an event") };
    check(&event, event.args().map(Result::unwrap).collect());
    assert!(reader.next().unwrap().is_none());
}

fn instant<'a>(args: &'a [(StringRef<'a>, Value<'a>)]) -> Event<'a> {
    Event {
        kind: EventKind::Instant,
        timestamp: 5,
        thread: ThreadRef::Index(1),
        category: StringRef::Index(1),
        name: StringRef::Index(2),
        args,
        payload: None,
    }
}

fn switch(args: fxt::ArgumentSlice<'_>) -> ContextSwitch<fxt::ArgumentSlice<'_>> {
    let outgoing_state = ThreadState::Blocked;
    ContextSwitch { timestamp: 5, cpu: 3, outgoing: 71, outgoing_state, incoming: 72, args }
}

fn legacy_switch() -> LegacyContextSwitch {
    LegacyContextSwitch {
        timestamp: 7,
        cpu: 2,
        outgoing: ThreadRef::Inline { process: 70, thread: 71 },
        outgoing_state: ThreadState::Dead,
        outgoing_priority: 0x10,
        incoming: ThreadRef::Index(9),
        incoming_priority: 0x1f,
    }
}

fn loaded() -> Module<'static> {
    let thread = ThreadRef::Inline { process: 70, thread: 0 };
    Module { timestamp: 5, thread, id: 0xabcd, name: "libc.so", build_id: &[1, 2, 3, 4, 5, 6, 7, 8, 9] }
}

fn mapped() -> Mmap {
    let Module { thread, id, .. } = loaded();
    let (start, range, vaddr) = (0x7f00_0000, 0x1000, 0x2000);
    Mmap { timestamp: 6, thread, module_id: id, flags: 5, start, range, vaddr }
}

fn large_blob(args: fxt::ArgumentSlice<'_>) -> LargeBlob<'_, fxt::ArgumentSlice<'_>> {
    let thread = ThreadRef::Inline { process: 70, thread: 71 };
    let metadata = Some(LargeBlobMetadata { timestamp: 5, thread, args });
    let (category, name) = (StringRef::Inline("a category"), StringRef::Inline("a name"));
    LargeBlob { category, name, metadata, bytes: b"0123456789" }
}

/// One of each record.
fn everything() -> Vec<u8> {
    let mut out = Vec::new();
    fxt::magic(&mut out);
    fxt::provider_info(&mut out, 7, "program");
    fxt::provider_section(&mut out, 7);
    fxt::provider_event(&mut out, 7, fxt::PROVIDER_EVENT_BUFFER_FULL);
    fxt::initialization(&mut out, 1_000_000_000);
    fxt::string_record(&mut out, 1, "net");
    fxt::thread_record(&mut out, 1, 70, 71);
    let process = (StringRef::Inline("process"), Value::Koid(70));
    fxt::kernel_object(&mut out, fxt::KERNEL_OBJECT_THREAD, 71, StringRef::Inline("main"), &[process]);
    let object = [(StringRef::Inline("size"), Value::U64(4096))];
    fxt::userspace_object(&mut out, 0x1000, ProcessRef::Inline(70), StringRef::Inline("heap"), &object);
    let args = [
        (StringRef::Index(3), Value::Null),
        (StringRef::Inline("flag"), Value::Bool(true)),
        (StringRef::Inline("text"), Value::Str("some text")),
        (StringRef::Inline("blob"), Value::Blob(b"\x00\xff")),
        (StringRef::Inline("wide"), Value::U64(u64::MAX)),
    ];
    let inline = ThreadRef::Inline { process: 70, thread: 72 };
    let event = Event { thread: inline, name: StringRef::Inline("a name"), ..instant(&args) };
    fxt::event(&mut out, &event);
    fxt::event(&mut out, &Event { kind: EventKind::Counter, payload: Some(9), ..instant(&[]) });
    fxt::blob(&mut out, StringRef::Inline("blob"), fxt::BLOB_DATA, b"0123456789");
    let weight = &[(StringRef::Inline("weight"), Value::I64(7))][..];
    fxt::thread_wakeup(&mut out, &ThreadWakeup { timestamp: 5, cpu: 1, thread: 71, args: weight });
    fxt::context_switch(&mut out, &switch(weight));
    fxt::legacy_context_switch(&mut out, &legacy_switch());
    fxt::log(&mut out, 5, inline, "a message");
    fxt::module(&mut out, &loaded());
    fxt::mmap(&mut out, &mapped());
    fxt::backtrace(&mut out, &Backtrace { timestamp: 5, thread: inline, frames: &[0x1000, 0x2000][..] });
    fxt::large_blob(&mut out, &large_blob(weight));
    fxt::large_blob(&mut out, &LargeBlob { metadata: None, ..large_blob(&[]) });
    out
}

#[derive(Clone, Debug)]
enum Name {
    Index(u16),
    Inline(String),
}

impl Name {
    fn reference(&self) -> StringRef<'_> {
        match self {
            Self::Index(0) => StringRef::Empty,
            Self::Index(index) => StringRef::Index(*index),
            Self::Inline(text) if text.is_empty() => StringRef::Empty,
            Self::Inline(text) => StringRef::Inline(text),
        }
    }
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![(0..=fxt::MAX_STRING_INDEX).prop_map(Name::Index), text().prop_map(Name::Inline)]
}

fn owned_arguments() -> impl Strategy<Value = Vec<(Name, Owned)>> {
    prop::collection::vec((name(), value()), 0..=MAX_ARGS)
}

fn borrowed(owned: &[(Name, Owned)]) -> Vec<(StringRef<'_>, Value<'_>)> {
    owned.iter().map(|(name, value)| (name.reference(), value.value())).collect()
}

fn require_arguments(read: fxt::Arguments<'_>, written: &[(StringRef<'_>, Value<'_>)]) {
    let read: Args<'_> = read.map(Result::unwrap).collect();
    let written: Args<'_> =
        written.iter().map(|(name, value)| (*name, ArgumentValue::Value(*value))).collect();
    assert_eq!(read, written);
}

/// Checks that `written` is these words, little-endian.
fn require_words(written: &[u8], words: &[u64]) {
    let read: Vec<_> = written.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!(read, words, "{read:#018x?}");
}

fn thread() -> impl Strategy<Value = ThreadRef> {
    prop_oneof![
        (1..=u8::MAX).prop_map(ThreadRef::Index),
        (unsigned(), unsigned()).prop_map(|(process, thread)| ThreadRef::Inline { process, thread }),
    ]
}

fn kind() -> impl Strategy<Value = EventKind> {
    (0..=10_u64).prop_map(|number| EventKind::from_number(number).unwrap())
}

proptest! {
    #[test]
    fn an_event_is_read_back(
        kind in kind(),
        timestamp in unsigned(),
        thread in thread(),
        category in name(),
        name in name(),
        payload in unsigned(),
        owned in owned_arguments(),
    ) {
        let args = borrowed(&owned);
        let event = Event {
            kind, timestamp, thread, category: category.reference(), name: name.reference(), args: &args,
            payload: kind.has_payload().then_some(payload),
        };
        let mut out = Vec::new();
        fxt::event(&mut out, &event);
        prop_assert_eq!(out.len(), fxt::event_words(&event) * 8);
        with_event(&out, |read, _| {
            assert_eq!((read.kind, read.timestamp, read.thread), (kind, timestamp, thread));
            assert_eq!((read.category, read.name, read.payload), (event.category, event.name, event.payload));
            require_arguments(read.args(), &args);
        });
    }

    #[test]
    fn an_argument_has_the_announced_words(name in name(), value in value()) {
        let mut out = Vec::new();
        fxt::put_argument(&mut out, name.reference(), &value.value());
        prop_assert_eq!(out.len(), fxt::argument_words(name.reference(), &value.value()) * 8);
    }

    #[test]
    fn tables_and_objects_are_read_back(
        index in 1..=fxt::MAX_STRING_INDEX, text in text(), thread_index in 1..=u8::MAX,
        ids in (unsigned(), unsigned()), object_type: u8, bytes in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut out = Vec::new();
        fxt::string_record(&mut out, index, &text);
        prop_assert_eq!(out.len(), fxt::string_record_words(&text) * 8);
        fxt::thread_record(&mut out, thread_index, ids.0, ids.1);
        fxt::kernel_object(&mut out, object_type, ids.0, StringRef::Index(index), &[]);
        fxt::blob(&mut out, StringRef::Index(index), object_type, &bytes);
        let mut reader = RecordReader::new(&out[..]);
        match reader.next().unwrap() {
            Some((0, Record::String { index: i, value })) => assert_eq!((i, value), (index, text.as_bytes())),
            other => panic!("{other:?}"),
        }
        match reader.next().unwrap() {
            Some((_, Record::Thread { index, process, thread })) => {
                assert_eq!((index, process, thread), (thread_index, ids.0, ids.1));
            }
            other => panic!("{other:?}"),
        }
        match reader.next().unwrap() {
            Some((_, Record::KernelObject { object_type: t, koid, name, args })) => {
                assert_eq!((t, koid, name, args.count()), (object_type, ids.0, StringRef::Index(index), 0));
            }
            other => panic!("{other:?}"),
        }
        match reader.next().unwrap() {
            Some((_, Record::Blob { name, kind, bytes: b })) => {
                assert_eq!((name, kind, b), (StringRef::Index(index), object_type, &bytes[..]));
            }
            other => panic!("{other:?}"),
        }
        prop_assert!(reader.next().unwrap().is_none());
    }

    #[test]
    fn random_bytes_are_read_to_their_end(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        require_sane(&bytes);
    }

    #[test]
    fn a_damaged_trace_is_read_to_its_end(bytes in damaged(everything())) {
        require_sane(&bytes);
    }
}

/// Reads without a panic and without endless errors, and every error has an offset in the input.
fn require_sane(bytes: &[u8]) {
    let all = read(bytes);
    assert!(all.len() <= bytes.len() / 8 + 1);
    for error in all.into_iter().filter_map(Result::err) {
        assert!(error.offset <= bytes.len() as u64, "{error}");
    }
}
