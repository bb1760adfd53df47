//! The state that a trace carries over when it is split into parts, so that each part can be read alone.
//!
//! ```text
//! part 1  [head] records records records              look(records), for all of them
//! part 2  [head] [put()] records records              the recording continues
//! ```
//!
//! Records rely on earlier ones: strings, threads and their names, and the begins of slices and intervals
//! that are still open. [`Carry::put`] writes these again, with their original times. A flow that began in
//! part 1 must also begin in part 2, so its first record there becomes a begin.

use std::collections::HashMap;

use crate::fxt::blob::blob;
use crate::fxt::event::EventRecord;
use crate::fxt::header::records;
use crate::fxt::layout::{BLOB_PERFETTO, EventKind, KERNEL_OBJECT_THREAD, event};
use crate::fxt::record::{Record, parse};
use crate::fxt::refs::{StringRef, ThreadRef};
use crate::fxt::tables::thread_record;
use crate::track_event;

/// The most flows that are remembered. Above it, flows of earlier parts are forgotten and count as new.
const MAX_FLOWS: usize = 1 << 20;

/// The most bytes of packets in one blob, unless a single packet is larger.
const BLOB: usize = 16 << 10;

/// The koids of a process and a thread.
type Thread = (u64, u64);

/// Follows the records of a trace and writes its state at the beginning of each further part.
///
/// Memory: the strings, the threads, the flows, and the open slices and intervals.
///
/// ```
/// use hairline_formats::fxt::{self, Carry, EventKind, StringRef, ThreadRef};
///
/// let mut first = Vec::new();
/// fxt::string_record(&mut first, 1, "request");
/// fxt::event(&mut first, &fxt::Event {
///     kind: EventKind::DurationBegin,
///     timestamp: 10,
///     thread: ThreadRef::Inline { process: 1, thread: 2 },
///     category: StringRef::Empty,
///     name: StringRef::Index(1),
///     args: &[],
///     payload: None,
/// });
/// let mut carry = Carry::new();
/// assert!(carry.look(&first).is_empty()); // no header must be replaced
///
/// let mut second = Vec::new();
/// carry.put(&mut second);
/// assert_eq!(second, first); // the string, and the begin of the slice that is still open
/// ```
#[derive(Debug, Default)]
pub struct Carry {
    /// The String records, by index.
    strings: Vec<Vec<u8>>,
    /// The threads, by index.
    threads: Vec<Thread>,
    /// The records that name threads, by the thread's koid.
    names: HashMap<u64, Vec<u8>>,
    /// The open slices of each thread, the outermost first.
    slices: HashMap<Thread, Vec<Open>>,
    /// The open intervals, by their id.
    intervals: HashMap<u64, Vec<Open>>,
    /// The number of begins so far.
    begins: u64,
    /// The last part that has a begin of the flow, by the flow's id.
    flows: HashMap<u64, u32>,
    part: u32,
    /// The state of the TrackEvent packets in blobs.
    packets: track_event::Carry,
}

#[derive(Debug)]
struct Open {
    /// The number of its begin in the trace, from 1.
    order: u64,
    thread: Thread,
    time: u64,
    /// The begin, followed by the flow records that belong to it.
    records: Vec<u8>,
}

/// A record's header that the caller must replace.
///
/// ```
/// use hairline_formats::fxt::{self, Carry, EventKind, StringRef, ThreadRef};
///
/// let flow = |kind| {
///     let mut record = Vec::new();
///     let (thread, category, name) = (ThreadRef::Index(1), StringRef::Empty, StringRef::Empty);
///     let event = fxt::Event { kind, timestamp: 1, thread, category, name, args: &[], payload: Some(7) };
///     fxt::event(&mut record, &event);
///     record
/// };
/// let mut carry = Carry::new();
/// assert!(carry.look(&flow(EventKind::FlowBegin)).is_empty());
/// carry.put(&mut Vec::new()); // the next part begins
///
/// let mut step = flow(EventKind::FlowStep);
/// for patch in carry.look(&step) {
///     step[patch.at..patch.at + 8].copy_from_slice(&patch.header.to_le_bytes());
/// }
/// assert_eq!(step, flow(EventKind::FlowBegin)); // each part is a trace of its own
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patch {
    /// The header's position in the bytes passed to [`Carry::look`].
    pub at: usize,
    /// The new header.
    pub header: u64,
}

impl Carry {
    /// Creates the state of a trace without records.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes the state in `bytes`, which are whole records. Malformed records are ignored.
    ///
    /// Returns the headers that must be replaced, in their order: the first records in this part of flows
    /// that began in an earlier one.
    pub fn look(&mut self, bytes: &[u8]) -> Vec<Patch> {
        let mut patches = Vec::new();
        for record in records(bytes) {
            let Ok(known) = parse(record.bytes, 0) else { continue };
            if let Some(header) = self.record(&known, record.bytes) {
                patches.push(Patch { at: record.at, header });
            }
        }
        patches
    }

    /// Forgets the name and the open slices of a thread that has ended.
    ///
    /// ```
    /// use hairline_formats::fxt::{self, Carry, EventKind, StringRef, ThreadRef};
    ///
    /// let mut records = Vec::new();
    /// fxt::event(&mut records, &fxt::Event {
    ///     kind: EventKind::DurationBegin,
    ///     timestamp: 10,
    ///     thread: ThreadRef::Inline { process: 1, thread: 2 },
    ///     category: StringRef::Empty,
    ///     name: StringRef::Empty,
    ///     args: &[],
    ///     payload: None,
    /// });
    /// let (mut carry, mut next) = (Carry::new(), Vec::new());
    /// carry.look(&records);
    /// carry.ended(2);
    /// carry.put(&mut next);
    /// assert!(next.is_empty()); // the open slice is not repeated
    /// ```
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

    /// Notes a flow record. Returns its new header if it must become a begin.
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

    /// Begins the next part: writes the state that its records rely on. Call it after the head is written.
    pub fn put(&mut self, out: &mut Vec<u8>) {
        self.part += 1;
        self.strings.iter().for_each(|string| out.extend_from_slice(string));
        self.names.values().for_each(|name| out.extend_from_slice(name));
        self.slices.retain(|_, open| !open.is_empty());
        let mut open: Vec<&Open> = self.slices.values().chain(self.intervals.values()).flatten().collect();
        open.sort_unstable_by_key(|open| open.order);
        // Each begin may need another thread at its index. The loop at the end restores the thread table.
        for Open { thread: (process, thread), records: of_begin, .. } in open {
            for record in records(of_begin) {
                if let Ok(Record::Event(event)) = parse(record.bytes, 0) {
                    if let ThreadRef::Index(index) = event.thread {
                        thread_record(out, index, *process, *thread);
                    }
                    put_begin(out, &event, record.bytes, &mut self.flows, self.part);
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

/// Writes a begin unchanged, and a flow record as begin or step, whichever it is in this part.
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

/// Returns the header of an event record with another kind.
fn with_kind(record: &[u8], kind: EventKind) -> Option<u64> {
    let header = u64::from_le_bytes(*record.first_chunk()?);
    Some(header - event::KIND.set(event::KIND.get(header)) + event::KIND.set(kind as u64))
}

/// Sets the value at `index`. Index 0 does not exist.
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
