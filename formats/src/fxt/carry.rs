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

use crate::fxt::blob::blob;
use crate::fxt::event::EventRecord;
use crate::fxt::header::{header, records};
use crate::fxt::layout::{BLOB_PERFETTO, EventKind, KERNEL_OBJECT_THREAD, RecordType, event, record, string};
use crate::fxt::record::{Record, parse};
use crate::fxt::refs::{StringRef, ThreadRef};
use crate::fxt::tables::thread_record;
use crate::track_event;
use crate::track_event::Erasure;
use crate::unended::{ById, Unended};

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
    names: ById<u64, Vec<u8>>,
    /// The open slices of each thread.
    slices: Unended<Thread, Slice>,
    /// The open intervals, by their id.
    intervals: Unended<u64, Slice>,
    /// The number of begins and ends so far.
    events: u64,
    /// The last part that has a begin of the flow, by the flow's id.
    flows: ById<u64, u32>,
    part: u32,
    /// The state of the TrackEvent packets in blobs.
    packets: track_event::Carry,
}

/// The begin of a slice, or an end.
#[derive(Debug)]
struct Slice {
    /// The number of the event in the trace.
    order: u64,
    thread: Thread,
    /// The record, and the flow records that belong to a begin.
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
        self.look_at(bytes, None)
    }

    /// Like [`look`](Self::look), for bytes that are written at position `at` of the part's file.
    /// [`moved`](Self::moved) needs that position.
    pub fn look_at(&mut self, bytes: &[u8], at: Option<u64>) -> Vec<Patch> {
        let mut patches = Vec::new();
        for record in records(bytes) {
            let Ok(known) = parse(record.bytes, 0) else { continue };
            let at = at.map(|at| at + record.at as u64);
            if let Some(header) = self.record(&known, record.bytes, at) {
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
        self.slices.retain(|(_, t)| *t != thread);
    }

    /// Notes the end of a pass: all events from before the time `began` have been looked at. Later ones may be
    /// missing.
    pub fn pass_ended(&mut self, began: u64) {
        self.slices.pass_ended(began);
        self.intervals.pass_ended(began);
        self.packets.pass_ended(began);
    }

    /// Returns whether the next part may begin. It waits for the end of the pass if the pass has events of
    /// slices that one thread may begin and another one end.
    #[must_use]
    pub fn may_split(&self) -> bool {
        self.slices.may_split() && self.intervals.may_split() && self.packets.may_split()
    }

    fn record(&mut self, known: &Record<'_>, bytes: &[u8], at: Option<u64>) -> Option<u64> {
        match known {
            Record::String { index, .. } => keep(&mut self.strings, *index, bytes.to_vec()),
            Record::Thread { index, process, thread } => {
                keep(&mut self.threads, u16::from(*index), (*process, *thread));
            }
            Record::KernelObject { object_type: KERNEL_OBJECT_THREAD, koid, .. } => {
                self.names.insert(*koid, bytes.to_vec());
            }
            Record::Blob { kind: BLOB_PERFETTO, bytes: packets, name } => {
                self.packets.look_at(packets, at.map(|at| at + 8 * (1 + name.words() as u64)));
            }
            Record::Event(event) => return self.event(event, bytes, at),
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

    fn event(&mut self, event: &EventRecord<'_>, bytes: &[u8], at: Option<u64>) -> Option<u64> {
        let thread = self.thread(event.thread);
        let id = event.payload.unwrap_or(0);
        let time = event.timestamp;
        // Another thread than that of the track refers to it inline.
        let is_own = matches!(event.thread, ThreadRef::Index(_));
        self.events += 1;
        let slice = || Slice { order: self.events, thread, records: bytes.to_vec() };
        match event.kind {
            EventKind::DurationBegin => self.slices.begin(thread, time, is_own, at, slice()),
            EventKind::DurationEnd => self.slices.end(thread, time, is_own, at, slice),
            EventKind::AsyncBegin => self.intervals.begin(id, time, false, at, slice()),
            EventKind::AsyncEnd => self.intervals.end(id, time, false, at, slice),
            EventKind::FlowBegin | EventKind::FlowStep | EventKind::FlowEnd => {
                let innermost = self.slices.innermost(thread);
                if let Some((_, open)) = innermost.filter(|(begun, _)| *begun == time) {
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

    /// Begins the next part: writes the state that its records rely on, and the events that move there. `out`
    /// is the part's file so far: its head.
    pub fn put(&mut self, out: &mut Vec<u8>) {
        self.part += 1;
        self.strings.iter().for_each(|string| out.extend_from_slice(string));
        self.names.values().for_each(|name| out.extend_from_slice(name));
        let mut carried: Vec<_> = self.slices.carried().chain(self.intervals.carried()).collect();
        carried.sort_unstable_by_key(|event| event.of.order);
        // Each event may need another thread at its index. The loop at the end restores the thread table.
        for event in carried {
            let Slice { thread: (process, thread), records: of_event, .. } = &event.of;
            for record in records(of_event) {
                let Ok(Record::Event(known)) = parse(record.bytes, 0) else { continue };
                if let ThreadRef::Index(index) = known.thread {
                    thread_record(out, index, *process, *thread);
                }
                if record.at == 0 {
                    event.next_at = event.next_at.map(|_| out.len() as u64);
                }
                put_begin(out, &known, record.bytes, &mut self.flows, self.part);
            }
        }
        let mut packets = Vec::new();
        self.packets.put_at(|packet| {
            if packets.len() + packet.len() > BLOB && !packets.is_empty() {
                blob(out, StringRef::Empty, BLOB_PERFETTO, &packets);
                packets.clear();
            }
            packets.extend_from_slice(packet);
            (out.len() + 8 + packets.len() - packet.len()) as u64 // after the header of the blob
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

impl Carry {
    /// Notes that the part that [`put`](Self::put) has begun is the present one. Returns the bytes to erase
    /// in the part before it: events that are in the present part instead.
    ///
    /// ```
    /// use hairline_formats::fxt::{self, Carry, EventKind, StringRef, ThreadRef};
    ///
    /// let record = |kind, timestamp| {
    ///     let thread = ThreadRef::Inline { process: 1, thread: 2 };
    ///     let (category, name) = (StringRef::Empty, StringRef::Inline("job"));
    ///     let mut record = Vec::new();
    ///     let event = fxt::Event { kind, timestamp, thread, category, name, args: &[], payload: Some(7) };
    ///     fxt::event(&mut record, &event);
    ///     record
    /// };
    /// let (begin, end) = (record(EventKind::AsyncBegin, 10), record(EventKind::AsyncEnd, 20));
    /// let mut carry = Carry::new();
    /// carry.look_at(&end, Some(16)); // the thread that ends the job was read first
    /// assert!(!carry.may_split());
    /// carry.pass_ended(5); // the pass began at the time 5
    ///
    /// let mut second = Vec::new();
    /// carry.put(&mut second);
    /// assert!(second.starts_with(&end));
    /// let erased = carry.moved();
    /// assert_eq!(erased[0].at, 16); // the first part has nothing of the job
    ///
    /// carry.look_at(&begin, Some(second.len() as u64));
    /// carry.pass_ended(30);
    /// let mut third = Vec::new();
    /// carry.put(&mut third);
    /// assert!(third.is_empty()); // the job has ended
    /// ```
    pub fn moved(&mut self) -> Vec<Erasure> {
        let events = self.slices.moved().chain(self.intervals.moved());
        let mut erasures: Vec<Erasure> =
            events.map(|(at, slice)| Erasure { at, bytes: ignored(&slice.records) }).collect();
        erasures.append(&mut self.packets.moved());
        erasures
    }
}

/// Returns the header that makes readers ignore the first one of `records`: a String record with index 0.
fn ignored(records: &[u8]) -> Vec<u8> {
    let header_before = records.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let words = record::SIZE.get(header_before);
    let length = words.saturating_sub(1) * 8;
    (header(RecordType::String, words as usize) | string::LENGTH.set(length)).to_le_bytes().to_vec()
}

/// Writes a begin unchanged, and a flow record as begin or step, whichever it is in this part.
fn put_begin(
    out: &mut Vec<u8>,
    event: &EventRecord<'_>,
    bytes: &[u8],
    flows: &mut ById<u64, u32>,
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
