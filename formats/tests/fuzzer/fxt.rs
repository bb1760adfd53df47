//! FXT: valid records, damage to their headers, and a walk through them.

use std::io::Read;

use hairline_formats::Value;
use hairline_formats::fxt::layout::{Field, argument, bits, event, large, record};
use hairline_formats::fxt::{
    self, Arguments, Backtrace, ContextSwitch, Event, EventKind, LargeBlob, LargeBlobMetadata,
    LegacyContextSwitch, MAX_STRING, MAX_STRING_INDEX, Mmap, Module, ProcessRef, Record, RecordReader,
    RecordType, StringRef, ThreadRef, ThreadState, ThreadWakeup,
};

use super::random::Random;
use super::walk::Walk;
use super::{Format, Units};

/// [`fxt::RecordReader`].
#[derive(Debug)]
pub(crate) struct Fxt;

impl Format for Fxt {
    const NAME: &'static str = "fxt";
    const MIN_ITEM: usize = 8;
    const UNITS: &'static [fn(Units<'_>)] = &[tables, objects, events, kernel, foreign];

    fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
        let records = records(bytes);
        if records.is_empty() {
            return;
        }
        let (at, size) = *random.pick(&records);
        match random.below(8) {
            0 => set_field(bytes, at, &[record::TYPE, record::SIZE, event::KIND, event::ARGS], random),
            1 => set_field(bytes, at, &[event::THREAD, event::CATEGORY, event::NAME, bits(16, 31)], random),
            2 => set_field(bytes, at, &[large::SIZE, large::KIND, bits(32, 46), bits(52, 59)], random),
            // Any word may be an argument's header.
            3 | 4 => {
                let word = at + random.below(size / 8) * 8;
                let fields =
                    [argument::TYPE, argument::SIZE, argument::NAME, argument::STRING, argument::INTEGER];
                set_field(bytes, word, &fields, random);
            }
            5 => resize(bytes, at, size, random),
            6 => {
                let word = at + random.below(size / 8) * 8;
                bytes[word..word + 8].reverse();
            }
            _ => {
                let copy = bytes[at..at + size].to_vec();
                let (to, _) = *random.pick(&records);
                bytes.splice(to..to, copy);
            }
        }
    }

    fn walk(reader: impl Read, walk: &mut Walk) -> Result<(), String> {
        let mut reader = RecordReader::new(reader);
        loop {
            match reader.next() {
                Ok(Some((offset, record))) => {
                    walk.item(offset, &record)?;
                    match record {
                        Record::Event(event) => arguments(event.args(), walk)?,
                        Record::KernelObject { args, .. } | Record::UserspaceObject { args, .. } => {
                            arguments(args, walk)?;
                        }
                        Record::ContextSwitch(switch) => arguments(switch.args, walk)?,
                        Record::ThreadWakeup(wakeup) => arguments(wakeup.args, walk)?,
                        Record::LargeBlob(LargeBlob { metadata: Some(about), .. }) => {
                            arguments(about.args, walk)?;
                        }
                        Record::Backtrace(backtrace) => {
                            for frame in backtrace.frames {
                                walk.part(Ok(frame))?;
                            }
                        }
                        _ => {}
                    }
                }
                Ok(None) => break,
                Err(e) => walk.failed(&e)?,
            }
        }
        match reader.next() {
            Ok(None) => Ok(()),
            other => Err(format!("after the end: {other:?}")),
        }
    }
}

fn arguments(mut args: Arguments<'_>, walk: &mut Walk) -> Result<(), String> {
    for arg in args.by_ref() {
        walk.part(arg)?;
    }
    walk.show(&args.skipped());
    Ok(())
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The begin and size of the records, up to the first record that is malformed.
fn records(bytes: &[u8]) -> Vec<(usize, usize)> {
    let (mut records, mut at) = (Vec::new(), 0);
    while let Some(header) = word_at(bytes, at) {
        let is_large = record::TYPE.get(header) == RecordType::Large as u64;
        let words = if is_large { large::SIZE.get(header) } else { record::SIZE.get(header) };
        let size = words as usize * 8;
        if size == 0 || size > bytes.len() - at {
            break;
        }
        records.push((at, size));
        at += size;
    }
    records
}

/// Changes one field of the word: by a little, or to an unusual value.
fn set_field(bytes: &mut [u8], at: usize, fields: &[Field], random: &mut Random) {
    let (Some(word), field) = (word_at(bytes, at), *random.pick(fields)) else { return };
    let value = match random.below(4) {
        0 => field.get(word).wrapping_add(1),
        1 => field.get(word).wrapping_sub(1),
        2 => field.max() - random.below(2) as u64,
        _ => random.number(),
    };
    let word = word & !field.set(u64::MAX) | field.set(value);
    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
}

/// Inserts words into a record or removes some, and corrects its size.
fn resize(bytes: &mut Vec<u8>, at: usize, size: usize, random: &mut Random) {
    let place = at + 8 * (1 + random.below(size / 8));
    let len = if random.one_in(2) {
        let words = random.below(4);
        let new = random.bytes(words * 8);
        bytes.splice(place..place, new);
        size + words * 8
    } else {
        let end = (place + 8 * random.below(4)).min(at + size);
        bytes.drain(place..end);
        size - (end - place)
    };
    if let Some(word) = word_at(bytes, at) {
        let word = word & !record::SIZE.set(u64::MAX) | record::SIZE.set(len as u64 / 8);
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
}

fn tables(unit: Units<'_>) {
    unit(&|out| fxt::magic(out));
    unit(&|out| fxt::initialization(out, 1_000_000_000));
    unit(&|out| fxt::provider_section(out, 7));
    unit(&|out| fxt::provider_event(out, 7, fxt::PROVIDER_EVENT_BUFFER_FULL));
    for len in [0, 7, 8, 255] {
        unit(&|out| fxt::provider_info(out, 7, &"p".repeat(len)));
    }
    for (index, text) in [(1, ""), (1, "net"), (2, "12345678"), (MAX_STRING_INDEX, "é€𝄞\0")] {
        unit(&|out| fxt::string_record(out, index, text));
    }
    unit(&|out| fxt::string_record(out, 3, &"x".repeat(MAX_STRING)));
    unit(&|out| fxt::thread_record(out, 1, 70, 71));
    unit(&|out| fxt::thread_record(out, 255, u64::MAX, 0));
}

fn objects(unit: Units<'_>) {
    let process = [(StringRef::Inline("process"), Value::Koid(70))];
    unit(&|out| fxt::kernel_object(out, fxt::KERNEL_OBJECT_PROCESS, 70, StringRef::Index(1), &[]));
    unit(&|out| {
        fxt::kernel_object(out, fxt::KERNEL_OBJECT_THREAD, 71, StringRef::Inline("main"), &process);
    });
    for (name, len) in [(StringRef::Empty, 0), (StringRef::Index(1), 10), (StringRef::Inline("blob"), 300)] {
        unit(&|out| fxt::blob(out, name, fxt::BLOB_DATA, &vec![7; len]));
    }
}

fn events(unit: Units<'_>) {
    let values = [
        Value::Null,
        Value::Bool(true),
        Value::I64(-5),
        Value::I64(i64::MIN),
        Value::U64(5),
        Value::U64(u64::MAX),
        Value::F64(0.25),
        Value::Str(""),
        Value::Str("some text"),
        Value::Pointer(0xdead_beef),
        Value::Koid(70),
        Value::Blob(b"\x00\xff"),
    ];
    let args: Vec<_> = values.iter().map(|value| (StringRef::Inline("argument"), *value)).collect();
    let plain = Event {
        kind: EventKind::Instant,
        timestamp: 5,
        thread: ThreadRef::Index(1),
        category: StringRef::Index(1),
        name: StringRef::Index(2),
        args: &[],
        payload: None,
    };
    let inline = ThreadRef::Inline { process: 70, thread: 71 };
    for kind in (0..=10).filter_map(EventKind::from_number) {
        unit(&|out| fxt::event(out, &Event { kind, ..plain }));
        let name = StringRef::Inline("a name");
        unit(&|out| fxt::event(out, &Event { kind, name, args: &args[9..], payload: Some(9), ..plain }));
    }
    for arg in &args {
        let arg = [(StringRef::Index(3), arg.1), *arg];
        unit(&|out| fxt::event(out, &Event { args: &arg, ..plain }));
    }
    unit(&|out| fxt::event(out, &Event { thread: inline, args: &args, ..plain }));
    let names = Event { category: StringRef::Inline("c"), name: StringRef::Empty, ..plain };
    unit(&|out| fxt::event(out, &Event { thread: inline, ..names }));
}

fn kernel(unit: Units<'_>) {
    let args =
        &[(StringRef::Inline("a"), Value::U64(u64::MAX)), (StringRef::Index(1), Value::Str("some text"))];
    let state = ThreadState::from_number(3).unwrap();
    let (inline, index) = (ThreadRef::Inline { process: 70, thread: 71 }, ThreadRef::Index(1));
    for process in [ProcessRef::Index(1), ProcessRef::Inline(70)] {
        unit(&|out| fxt::userspace_object(out, 0xdead_beef, process, StringRef::Inline("object"), args));
    }
    unit(&|out| {
        fxt::context_switch(
            out,
            &ContextSwitch { timestamp: 5, cpu: 1, outgoing: 71, outgoing_state: state, incoming: 72, args },
        );
    });
    unit(&|out| fxt::thread_wakeup(out, &ThreadWakeup { timestamp: 5, cpu: 1, thread: 71, args }));
    for thread in [inline, index] {
        unit(&|out| {
            let (outgoing_priority, incoming_priority) = (1, 2);
            fxt::legacy_context_switch(
                out,
                &LegacyContextSwitch {
                    timestamp: 5,
                    cpu: 1,
                    outgoing: thread,
                    outgoing_state: state,
                    outgoing_priority,
                    incoming: inline,
                    incoming_priority,
                },
            );
        });
        unit(&|out| fxt::log(out, 5, thread, "a message"));
        unit(&|out| {
            fxt::module(
                out,
                &Module { timestamp: 5, thread, id: 1, name: "libc.so", build_id: b"0123456789" },
            );
        });
        unit(&|out| {
            fxt::mmap(
                out,
                &Mmap {
                    timestamp: 5,
                    thread,
                    module_id: 1,
                    flags: 5,
                    start: 0x1000,
                    range: 0x2000,
                    vaddr: 0,
                },
            );
        });
        unit(&|out| fxt::backtrace(out, &Backtrace { timestamp: 5, thread, frames: &[1, 2, 3] }));
        let (category, name) = (StringRef::Index(1), StringRef::Inline("large"));
        let metadata = Some(LargeBlobMetadata { timestamp: 5, thread, args: &args[..] });
        unit(&|out| fxt::large_blob(out, &LargeBlob { category, name, metadata, bytes: &[7; 100] }));
    }
}

/// Records that this crate's writers do not write: those of the document, and those that it leaves undefined.
fn foreign(unit: Units<'_>) {
    let name = StringRef::Inline("a name").bits();
    let text = u64::from_le_bytes(*b"a name\0\0");
    let of = |kind: RecordType, words: u64| record::TYPE.set(kind as u64) | record::SIZE.set(words);
    words(unit, &[of(RecordType::UserspaceObject, 4) | bits(24, 39).set(name), 0xdead_beef, 70, text]);
    // A legacy context switch, a context switch and a wakeup.
    words(unit, &[of(RecordType::Scheduling, 7), 5, 70, 71, 70, 72, 0]);
    words(unit, &[of(RecordType::Scheduling, 4) | 1 << 60 | bits(36, 39).set(3), 5, 71, 72]);
    words(unit, &[of(RecordType::Scheduling, 3) | 2 << 60, 5, 71]);
    words(unit, &[of(RecordType::Log, 5) | bits(16, 30).set(6), 5, 70, 71, text]);
    // Large blobs without and with metadata.
    let large = |words: u64| record::TYPE.set(RecordType::Large as u64) | large::SIZE.set(words);
    for len in [0, 3, 5000_u64] {
        let data = vec![7; len as usize];
        words(unit, &[&[large(4 + len) | 1 << 40, 1 | name << 16, text, len * 8], &data[..]].concat());
        words(unit, &[&[large(6 + len), 1 | 2 << 16, 5, 70, 71, len * 8], &data[..]].concat());
    }
    // Types and kinds that do not exist.
    words(unit, &[large(1) | large::KIND.set(15)]);
    let event = of(RecordType::Event, 2) | event::KIND.set(15);
    for header in [record::TYPE.set(12), record::TYPE.set(14), event, of(RecordType::Metadata, 2) | 15 << 16]
    {
        words(unit, &[header & !record::SIZE.set(u64::MAX) | record::SIZE.set(3), 1, 2]);
    }
}

fn words(unit: Units<'_>, words: &[u64]) {
    unit(&|out| words.iter().for_each(|word| fxt::PutWords::word(out, *word)));
}
