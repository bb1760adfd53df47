//! What a trace must say again where it is cut in two, so that its second part can be read alone.
//!
//! ```text
//! part 1  [head] records records records              look(records), for all of them
//! part 2  [head] [put()] records records              goes on as if nothing had happened
//! ```
//!
//! The records that follow mean what was said before them: strings, threads and their names, the begins of slices and of intervals
//! that are still open. Those are told again, at their own time. A flow that began in part 1 must begin in part 2 as well: its first
//! record there is no step.

use std::collections::HashMap;

use super::cursor::Cursor;
use super::layout::{BLOB_PERFETTO, EventKind, KERNEL_OBJECT_THREAD, RecordType, event, large, record};
use super::record::{EventRecord, Record, parse};
use super::refs::{StringRef, ThreadRef};
use super::write::{blob, thread_record};
use crate::track_event;

/// Flows that are remembered; beyond, those that were not seen for longest are taken for new ones.
const MAX_FLOWS: usize = 1 << 20;

/// Bytes of packets that share a blob.
const BLOB: usize = 16 << 10;

/// Process and thread.
type Thread = (u64, u64);

/// Follows a trace from its head on. Memory: the strings, the threads, the flows, and what is open.
#[derive(Debug, Default)]
pub struct Carry {
    /// The records of strings, by index.
    strings: Vec<Vec<u8>>,
    /// The threads, by index.
    threads: Vec<Thread>,
    /// The records that name threads.
    names: HashMap<u64, Vec<u8>>,
    /// The slices that are open, the outermost first.
    slices: HashMap<Thread, Vec<Open>>,
    /// The same of intervals, by their id.
    intervals: HashMap<u64, Vec<Open>>,
    begins: u64,
    /// The part of the trace in which a flow was last begun.
    flows: HashMap<u64, u32>,
    part: u32,
    /// Of the packets in blobs.
    packets: track_event::Carry,
}

#[derive(Debug)]
struct Open {
    /// The how manieth begin of the trace it is.
    order: u64,
    thread: Thread,
    time: u64,
    /// The begin, and the flows through it, which follow it.
    records: Vec<u8>,
}

/// A record's header that is to be another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Where it stands among the bytes that were looked at.
    pub at: usize,
    /// What should stand there.
    pub header: u64,
}

impl Carry {
    /// Nothing was said yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes note of whole records; gives those that must be changed, in their order: the first ones of flows that began in an earlier
    /// part. What is no record is passed over.
    pub fn look(&mut self, records: &[u8]) -> Vec<Patch> {
        let mut patches = Vec::new();
        for (at, bytes) in each(records) {
            // Records that are not known or damaged are nobody's state.
            let Ok(known) = parse(bytes, 0) else { continue };
            if let Some(header) = self.record(&known, bytes) {
                patches.push(Patch { at, header });
            }
        }
        patches
    }

    /// A thread has ended: nothing follows that needs its name, and its slices will not end.
    pub fn ended(&mut self, thread: u64) {
        self.names.remove(&thread);
        self.slices.retain(|(_, t), _| *t != thread);
    }

    fn record(&mut self, known: &Record<'_>, bytes: &[u8]) -> Option<u64> {
        match known {
            Record::String { index, .. } => keep(&mut self.strings, *index, bytes.to_vec()),
            Record::Thread { index, process, thread } => {
                keep(&mut self.threads, u16::from(*index), (*process, *thread));
            }
            Record::KernelObject { object_type: KERNEL_OBJECT_THREAD, koid, .. } => {
                self.names.insert(*koid, bytes.to_vec());
            }
            Record::Blob { kind: BLOB_PERFETTO, bytes, .. } => self.packets.look(bytes),
            Record::Event(event) => return self.event(event, bytes),
            _ => {}
        }
        None
    }

    fn thread(&self, thread: ThreadRef) -> Thread {
        match thread {
            ThreadRef::Inline { process, thread } => (process, thread),
            ThreadRef::Index(index) => self.threads.get(usize::from(index)).copied().unwrap_or_default(),
        }
    }

    fn event(&mut self, event: &EventRecord<'_>, bytes: &[u8]) -> Option<u64> {
        let thread = self.thread(event.thread);
        let id = event.payload.unwrap_or(0);
        let mut open = || {
            self.begins += 1;
            Open { order: self.begins, thread, time: event.timestamp, records: bytes.to_vec() }
        };
        match event.kind {
            EventKind::DurationBegin => {
                let open = open();
                self.slices.entry(thread).or_default().push(open);
            }
            EventKind::DurationEnd => {
                self.slices.get_mut(&thread).and_then(Vec::pop);
            }
            EventKind::AsyncBegin => {
                let open = open();
                self.intervals.entry(id).or_default().push(open);
            }
            EventKind::AsyncEnd => {
                if let Some(open) = self.intervals.get_mut(&id) {
                    open.pop();
                    if open.is_empty() {
                        self.intervals.remove(&id);
                    }
                }
            }
            EventKind::FlowBegin | EventKind::FlowStep | EventKind::FlowEnd => {
                let innermost = self.slices.get_mut(&thread).and_then(|open| open.last_mut());
                if let Some(open) = innermost.filter(|open| open.time == event.timestamp) {
                    open.records.extend_from_slice(bytes);
                }
                return self.flow(event.kind, id, bytes);
            }
            _ => {}
        }
        None
    }

    /// What should stand in place of the record's header.
    fn flow(&mut self, kind: EventKind, id: u64, bytes: &[u8]) -> Option<u64> {
        let begun = self.flows.get(&id).copied();
        let begins_here = kind != EventKind::FlowBegin && begun.is_some_and(|part| part < self.part);
        if kind == EventKind::FlowEnd {
            self.flows.remove(&id);
        } else if kind == EventKind::FlowBegin || begun.is_some() {
            if self.flows.len() >= MAX_FLOWS && begun.is_none() {
                let part = self.part;
                self.flows.retain(|_, in_part| *in_part == part);
                if self.flows.len() >= MAX_FLOWS {
                    self.flows.clear();
                }
            }
            self.flows.insert(id, self.part);
        }
        begins_here.then(|| with_kind(bytes, EventKind::FlowBegin)).flatten()
    }

    /// Writes what the next part begins with, after its head.
    pub fn put(&mut self, out: &mut Vec<u8>) {
        self.part += 1;
        self.strings.iter().for_each(|string| out.extend_from_slice(string));
        self.names.values().for_each(|name| out.extend_from_slice(name));
        self.slices.retain(|_, open| !open.is_empty());
        let mut open: Vec<&Open> = self.slices.values().chain(self.intervals.values()).flatten().collect();
        open.sort_unstable_by_key(|open| open.order);
        // An index that no record of these may rely on; after them it means what it did.
        for Open { thread: (process, thread), records, .. } in open {
            for (_, bytes) in each(records) {
                if let Ok(Record::Event(event)) = parse(bytes, 0) {
                    if let ThreadRef::Index(index) = event.thread {
                        thread_record(out, index, *process, *thread);
                    }
                    put_begin(out, &event, bytes, &mut self.flows, self.part);
                }
            }
        }
        let mut packets = Vec::new();
        self.packets.put(|packet| {
            if packets.len() + packet.len() > BLOB && !packets.is_empty() {
                blob(out, StringRef::Empty, BLOB_PERFETTO, &packets);
                packets.clear();
            }
            packets.extend_from_slice(packet);
        });
        if !packets.is_empty() {
            blob(out, StringRef::Empty, BLOB_PERFETTO, &packets);
        }
        for (index, (process, thread)) in self.threads.iter().enumerate() {
            if let (Ok(index @ 1..), true) = (u8::try_from(index), *thread != 0) {
                thread_record(out, index, *process, *thread);
            }
        }
    }
}

/// A begin as it was; of a flow through it, what it is in this part.
fn put_begin(
    out: &mut Vec<u8>,
    event: &EventRecord<'_>,
    bytes: &[u8],
    flows: &mut HashMap<u64, u32>,
    part: u32,
) {
    let Some(id) = event.payload.filter(|_| event.kind as u64 >= EventKind::FlowBegin as u64) else {
        return out.extend_from_slice(bytes);
    };
    let is_first = flows.insert(id, part) != Some(part);
    let kind = if is_first { EventKind::FlowBegin } else { EventKind::FlowStep };
    let header = with_kind(bytes, kind).unwrap_or_default();
    out.extend_from_slice(&header.to_le_bytes());
    out.extend_from_slice(bytes.get(8..).unwrap_or_default());
}

/// The header of an event's record, of another kind.
fn with_kind(record: &[u8], kind: EventKind) -> Option<u64> {
    let header = u64::from_le_bytes(*record.first_chunk()?);
    Some(header - event::KIND.set(event::KIND.get(header)) + event::KIND.set(kind as u64))
}

/// Puts a value at an index, from 1.
fn keep<T: Default>(table: &mut Vec<T>, index: u16, value: T) {
    let index = usize::from(index);
    if index == 0 {
        return;
    }
    if table.len() <= index {
        table.resize_with(index + 1, T::default);
    }
    table[index] = value;
}

/// Whole records, and where each stands.
fn each(records: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let header = Cursor::new(records.get(at..)?, 0).word("a header").ok()?;
        let is_large = record::TYPE.get(header) == RecordType::Large as u64;
        let words = if is_large { large::SIZE.get(header) } else { record::SIZE.get(header) };
        let len = usize::try_from(words).ok()?.max(1).checked_mul(8)?;
        let bytes = records.get(at..at.checked_add(len)?)?;
        let here = at;
        at += len;
        Some((here, bytes))
    })
}
