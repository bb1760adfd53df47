//! The state that a trace carries over when it is split into parts, so that each part can be read alone.
//!
//! ```text
//! part 1  [head] packets packets packets              look(packets), for all of them
//! part 2  [head] [put()] packets packets              the recording continues
//! ```
//!
//! Packets rely on earlier ones: the state of their sequences (clock, default track, strings), track
//! descriptors, and the begins of slices that are still open. [`Carry::put`] writes these again, the begins
//! with their original times. Events of slices that one thread begins and another ends move from part 1 to
//! part 2 if their partners may be missing in part 1.

use std::collections::BTreeSet;

use crate::proto::{FieldValue, Fields, put_bytes, put_field, put_uint, put_varint};
use crate::track_event::event::{CounterValue, Event, event};
use crate::track_event::fields::{
    EventType, InternedKind, clock, clock_reading, clock_snapshot, counter_descriptor, sequence_flags, trace,
    trace_packet, trace_packet_defaults, track_descriptor, track_event, track_event_defaults,
};
use crate::track_event::ids::{SequenceId, TrackUuid};
use crate::track_event::sequence::{self, SequenceStart, sequence_start};
use crate::unended::{ById, Unended};

/// Follows the packets of a trace and writes its state at the beginning of each further part.
///
/// Memory: the strings, the tracks, and the open slices.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     Carry, Interned, InternedKind, PacketReader, SequenceId, SequenceStart, TrackUuid, interned,
///     sequence_start,
/// };
///
/// let (sequence, track_uuid, timestamp_ns) = (SequenceId(1), TrackUuid(71), 1_000);
/// let mut first = Vec::new();
/// let start = SequenceStart {
///     sequence, track_uuid, timestamp_ns, first: true, dropped: false, extra_counters: &[]
/// };
/// sequence_start(&mut first, &start);
/// let kind = InternedKind::EventName;
/// interned(&mut first, sequence, &[Interned::Text { kind, iid: 1, name: "request" }]);
///
/// let (mut carry, mut second) = (Carry::new(), Vec::new());
/// carry.look(&first);
/// carry.put(|packet| second.extend_from_slice(packet));
///
/// let (mut reader, mut names) = (PacketReader::new(&second[..]), 0);
/// while let Some((_, packet)) = reader.next()? {
///     names += packet.interned().count();
/// }
/// assert_eq!(names, 1); // events of the second part can refer to the name
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Debug, Default)]
pub struct Carry {
    sequences: ById<SequenceId, Sequence>,
    /// The open slices of each track.
    slices: Unended<TrackUuid, Slice>,
    /// The number of begins and ends so far.
    events: u64,
    /// The time from which [`look_apart`](Self::look_apart) takes events apart, and those so far.
    apart: Option<(u64, Apart)>,
}

/// Events that are written apart from the packets around them: see [`Carry::look_apart`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// The bytes to overwrite in the packets that were looked at.
    pub erasures: Vec<Erasure>,
    /// The packets of the events, to be written after the others.
    pub packets: Vec<u8>,
}

#[derive(Debug, Default)]
struct Sequence {
    /// The state at its begin; `None` for packets that rely on no state.
    start: Option<Start>,
    /// The interned strings: the fields of InternedData.
    interned: Vec<u8>,
    /// The packets of track descriptors, by the track's uuid.
    tracks: ById<TrackUuid, Vec<u8>>,
    /// The sums of incremental counters, by their track.
    sums: ById<TrackUuid, i64>,
    has_ended: bool,
}

#[derive(Debug, Default)]
struct Start {
    track_uuid: TrackUuid,
    extra_counters: Vec<TrackUuid>,
    /// The time of the last packet on the sequence's clock.
    time: u64,
}

/// The begin of a slice, or an end.
#[derive(Debug)]
struct Slice {
    /// The number of the event in the trace.
    order: u64,
    sequence: SequenceId,
    time: u64,
    /// The fields of the packet.
    packet: Box<[u8]>,
    /// The place of the event in the packet as it was written, and the bytes that make readers ignore it.
    /// Empty if the packet is on the own track of its sequence.
    erasure: (u64, Box<[u8]>),
}

/// Bytes to overwrite in the file of an earlier part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// Their position in the file.
    pub at: u64,
    /// The new bytes.
    pub bytes: Vec<u8>,
}

/// The fields of a packet that concern the state.
#[derive(Debug, Default)]
struct Packet<'a> {
    sequence: SequenceId,
    flags: u32,
    timestamp: Option<u64>,
    clock_id: Option<u32>,
    defaults: Option<&'a [u8]>,
    clocks: Option<&'a [u8]>,
    interned: Option<&'a [u8]>,
    track: Option<&'a [u8]>,
    event: Option<&'a [u8]>,
}

impl<'a> Packet<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        use FieldValue::{Bytes, Varint};
        let mut packet = Self::default();
        for field in fields(bytes) {
            match field {
                (trace_packet::TRUSTED_PACKET_SEQUENCE_ID, Varint(v)) => {
                    packet.sequence = SequenceId(v as u32);
                }
                (trace_packet::SEQUENCE_FLAGS, Varint(v)) => packet.flags = v as u32,
                (trace_packet::TIMESTAMP, Varint(v)) => packet.timestamp = Some(v),
                (trace_packet::TIMESTAMP_CLOCK_ID, Varint(v)) => packet.clock_id = Some(v as u32),
                (trace_packet::TRACE_PACKET_DEFAULTS, Bytes { bytes, .. }) => packet.defaults = Some(bytes),
                (trace_packet::CLOCK_SNAPSHOT, Bytes { bytes, .. }) => packet.clocks = Some(bytes),
                (trace_packet::INTERNED_DATA, Bytes { bytes, .. }) => packet.interned = Some(bytes),
                (trace_packet::TRACK_DESCRIPTOR, Bytes { bytes, .. }) => packet.track = Some(bytes),
                (trace_packet::TRACK_EVENT, Bytes { bytes, .. }) => packet.event = Some(bytes),
                _ => {}
            }
        }
        packet
    }
}

impl Carry {
    /// Creates the state of a trace without packets.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes the state in whole packets, in the form in which this crate writes them. Other bytes are
    /// ignored.
    pub fn look(&mut self, packets: &[u8]) {
        self.look_at(packets, None);
    }

    /// Like [`look`](Self::look), for packets that are written at position `at` of the part's file.
    /// [`moved`](Self::moved) needs that position.
    pub fn look_at(&mut self, packets: &[u8], at: Option<u64>) {
        for (number, value) in fields(packets) {
            if let (trace::PACKET, FieldValue::Bytes { bytes, offset }) = (number, value) {
                self.packet(bytes, at.map(|at| at + offset));
            }
        }
    }

    /// Like [`look`](Self::look), for packets that will be compressed, so that [`moved`](Self::moved) cannot
    /// erase events in them. Returns the events that may move: those later than `began`, the begin of the
    /// pass, on tracks that are not their thread's. The caller erases these in the packets, and calls
    /// [`look_at`](Self::look_at) for them.
    pub fn look_apart(&mut self, packets: &[u8], began: u64) -> Apart {
        self.apart = Some((began, Apart::default()));
        self.look_at(packets, Some(0));
        self.apart.take().map(|(_, apart)| apart).unwrap_or_default()
    }

    /// Notes the end of a pass: all events from before the time `began` have been looked at. Later ones may
    /// be missing.
    pub fn pass_ended(&mut self, began: u64) {
        self.slices.pass_ended(began);
    }

    /// Returns whether the next part may begin. It waits for the end of the pass if the pass has events of
    /// slices that one thread may begin and another one end.
    #[must_use]
    pub fn may_split(&self) -> bool {
        self.slices.may_split()
    }

    /// Forgets a sequence that has ended: its state and the open slices of its own track.
    pub fn ended(&mut self, sequence: SequenceId) {
        if let Some(state) = self.sequences.get_mut(&sequence) {
            state.has_ended = true;
            if let Some(start) = &state.start {
                self.slices.remove(start.track_uuid);
            }
        }
    }

    fn packet(&mut self, bytes: &[u8], at: Option<u64>) {
        let packet = Packet::of(bytes);
        let sequence = self.sequences.entry(packet.sequence).or_default();
        if packet.flags & sequence_flags::CLEARED != 0 {
            sequence.interned.clear();
            sequence.sums.clear();
            sequence.start = packet.defaults.map(Start::of);
        }
        if let (Some(start), Some(clocks)) = (&mut sequence.start, packet.clocks) {
            start.time = incremental_reading(clocks).unwrap_or(start.time);
        }
        if let Some(interned) = packet.interned {
            // Only the event right after it refers to a log message's text.
            let lasting = fields(interned).filter(|(number, _)| *number != InternedKind::LogBody as u32);
            for (number, value) in lasting {
                if let FieldValue::Bytes { bytes, .. } = value {
                    put_bytes(&mut sequence.interned, number, bytes);
                }
            }
        }
        if let Some(uuid) = packet.track.and_then(|track| varint(track, track_descriptor::UUID)) {
            sequence.tracks.insert(TrackUuid(uuid), bytes.to_vec());
        }
        let time = match (packet.timestamp, packet.clock_id, &mut sequence.start) {
            (Some(delta), None, Some(start)) => {
                start.time = start.time.wrapping_add(delta);
                start.time
            }
            (Some(time), ..) => time,
            (None, ..) => 0,
        };
        if let Some(event) = packet.event {
            self.event((packet.sequence, time), event, bytes, at);
        }
    }

    fn event(&mut self, (number, time): (SequenceId, u64), event: &[u8], packet: &[u8], at: Option<u64>) {
        let sequence = self.sequences.entry(number).or_default();
        let (mut kind, mut track, mut value) = (0, None, None);
        for field in fields(event) {
            match field {
                (track_event::TYPE, FieldValue::Varint(v)) => kind = v,
                (track_event::TRACK_UUID, FieldValue::Varint(v)) => track = Some(TrackUuid(v)),
                (track_event::COUNTER_VALUE, FieldValue::Varint(v)) => value = Some(v.cast_signed()),
                _ => {}
            }
        }
        let own_track = sequence.start.as_ref().map(|start| start.track_uuid);
        let Some(track) = track.or(own_track) else { return };
        let is_own = Some(track) == own_track;
        let at = at.filter(|_| !is_own); // it is not erased
        let kind = EventType::from_number(kind);
        if let Some((began, apart)) = &mut self.apart
            && matches!(kind, Some(EventType::SliceBegin | EventType::SliceEnd))
            && let Some(at) = at.filter(|_| time > *began)
        {
            let (place, bytes) = erasure(packet);
            apart.erasures.push(Erasure { at: at + place, bytes: bytes.into() });
            put_apart(&mut apart.packets, packet, time);
            return;
        }
        let at = at.filter(|_| self.apart.is_none());
        self.events += 1;
        let slice = || Slice {
            order: self.events,
            sequence: number,
            time,
            packet: packet.into(),
            erasure: if is_own { Default::default() } else { erasure(packet) },
        };
        match kind {
            Some(EventType::SliceBegin) => self.slices.begin(track, time, is_own, at, slice()),
            Some(EventType::SliceEnd) => self.slices.end(track, time, is_own, at, slice),
            Some(EventType::Counter) => {
                let is_incremental = |packet: &Vec<u8>| is_incremental(packet);
                if let Some(value) = value
                    && sequence.tracks.get(&track).is_some_and(is_incremental)
                {
                    let sum = sequence.sums.entry(track).or_default();
                    *sum = sum.wrapping_add(value);
                }
            }
            _ => {}
        }
    }

    /// Begins the next part: passes the packets with the state that it relies on to `put`, one packet a call,
    /// and the events that move there.
    ///
    /// Write them after the head of the part.
    pub fn put(&mut self, mut put: impl FnMut(&[u8])) {
        self.put_by(&mut |packet| {
            put(packet);
            None
        });
    }

    /// Passes the packets with the state alone to `put`, one packet a call, for a reader that knows the open
    /// slices.
    pub fn put_state(&mut self, mut put: impl FnMut(&[u8])) {
        self.put_sequences(&mut |packet| {
            put(packet);
            None
        });
    }

    /// Like [`put`](Self::put), with a `put` that returns the position of the packet in the part's file.
    pub fn put_at(&mut self, mut put: impl FnMut(&[u8]) -> u64) {
        self.put_by(&mut |packet| Some(put(packet)));
    }

    /// Notes that the part that [`put_at`](Self::put_at) has begun is the present one. Returns the bytes to
    /// erase in the part before it: events that are in the present part instead.
    pub fn moved(&mut self) -> Vec<Erasure> {
        let erasure = |(at, slice): (u64, &mut Slice)| {
            let (place, bytes) = std::mem::take(&mut slice.erasure);
            // The packet in the present part has its time at its end.
            slice.erasure = erasure(&without_time(&slice.packet));
            Erasure { at: at + place, bytes: bytes.into() }
        };
        self.slices.moved().map(erasure).collect()
    }

    /// As [`put`](Self::put), compiled in this crate alone.
    fn put_by(&mut self, put: &mut dyn FnMut(&[u8]) -> Option<u64>) {
        self.put_sequences(put);
        let mut out = Vec::new();
        let mut carried: Vec<_> = self.slices.carried().collect();
        carried.sort_unstable_by_key(|event| event.of.order);
        for event in carried {
            let header = with_time(&mut out, &event.of.packet, event.of.time);
            // Positions are those of a packet's fields.
            let at = put(&out).map(|at| at + header);
            event.next_at = event.next_at.and(at);
        }
    }

    fn put_sequences(&mut self, put: &mut dyn FnMut(&[u8]) -> Option<u64>) {
        let in_use: BTreeSet<SequenceId> = self.slices.carried().map(|event| event.of.sequence).collect();
        self.sequences.retain(|number, sequence| !sequence.has_ended || in_use.contains(number));
        let mut numbers: Vec<SequenceId> = self.sequences.keys().copied().collect();
        numbers.sort_unstable();
        let mut described = BTreeSet::new();
        let mut out = Vec::new();
        for (number, sequence) in
            numbers.iter().filter_map(|number| Some((*number, self.sequences.get(number)?)))
        {
            sequence.put(number, &mut described, &mut out);
            packets(&out).for_each(|packet| _ = put(packet));
            out.clear();
        }
    }
}

impl Sequence {
    fn put(&self, number: SequenceId, described: &mut BTreeSet<TrackUuid>, out: &mut Vec<u8>) {
        if let Some(Start { track_uuid, extra_counters, time }) = &self.start {
            let start = SequenceStart {
                sequence: number,
                first: true,
                dropped: false,
                track_uuid: *track_uuid,
                extra_counters,
                timestamp_ns: *time,
            };
            sequence_start(out, &start);
            if !self.interned.is_empty() {
                sequence::packet(out, number, |packet| {
                    put_uint(packet, trace_packet::SEQUENCE_FLAGS, u64::from(sequence_flags::NEEDS));
                    put_bytes(packet, trace_packet::INTERNED_DATA, &self.interned);
                });
            }
        }
        for (uuid, packet) in &self.tracks {
            if described.insert(*uuid) {
                put_bytes(out, trace::PACKET, packet);
            }
        }
        // The next difference of an incremental counter is relative to the sum.
        for (track, sum) in &self.sums {
            let counter = Event {
                clock_id: Some(clock::BOOTTIME),
                track_uuid: Some(*track),
                counter: Some(CounterValue::Int(*sum)),
                ..Event::new(number, EventType::Counter, self.start.as_ref().map_or(0, |start| start.time))
            };
            event(out, &counter);
        }
    }
}

impl Start {
    fn of(defaults: &[u8]) -> Self {
        let mut start = Self::default();
        let of_events =
            fields(defaults).filter(|(number, _)| *number == trace_packet_defaults::TRACK_EVENT_DEFAULTS);
        for (_, value) in of_events {
            let FieldValue::Bytes { bytes, .. } = value else { continue };
            for field in fields(bytes) {
                match field {
                    (track_event_defaults::TRACK_UUID, FieldValue::Varint(v)) => {
                        start.track_uuid = TrackUuid(v);
                    }
                    (track_event_defaults::EXTRA_COUNTER_TRACK_UUIDS, FieldValue::Varint(v)) => {
                        start.extra_counters.push(TrackUuid(v));
                    }
                    _ => {}
                }
            }
        }
        start
    }
}

/// Returns the reading of the incremental clock in a snapshot.
fn incremental_reading(snapshot: &[u8]) -> Option<u64> {
    fields(snapshot).filter(|(number, _)| *number == clock_snapshot::CLOCKS).find_map(
        |(_, value)| match value {
            FieldValue::Bytes { bytes, .. } if varint(bytes, clock_reading::IS_INCREMENTAL) == Some(1) => {
                varint(bytes, clock_reading::TIMESTAMP)
            }
            _ => None,
        },
    )
}

/// Whether the packet describes an incremental counter.
fn is_incremental(packet: &[u8]) -> bool {
    let inside = |message, number| {
        fields(message).find_map(move |field| match field {
            (n, FieldValue::Bytes { bytes, .. }) if n == number => Some(bytes),
            _ => None,
        })
    };
    inside(packet, trace_packet::TRACK_DESCRIPTOR)
        .and_then(|track| inside(track, track_descriptor::COUNTER))
        .is_some_and(|counter| varint(counter, counter_descriptor::IS_INCREMENTAL) == Some(1))
}

fn without_time(packet: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(packet.len());
    for field in Fields::new(packet, 0).map_while(Result::ok) {
        if !matches!(field.number, trace_packet::TIMESTAMP | trace_packet::TIMESTAMP_CLOCK_ID) {
            put_field(&mut out, &field);
        }
    }
    out
}

/// Replaces `out` by a packet with these fields, but for its time, and an absolute time. Returns the length
/// of its header.
fn with_time(out: &mut Vec<u8>, packet: &[u8], time: u64) -> u64 {
    let mut whole = without_time(packet);
    put_uint(&mut whole, trace_packet::TIMESTAMP, time);
    put_uint(&mut whole, trace_packet::TIMESTAMP_CLOCK_ID, u64::from(clock::BOOTTIME));
    out.clear();
    put_bytes(out, trace::PACKET, &whole);
    (out.len() - whole.len()) as u64
}

/// Writes the event of a packet as a packet with an absolute time.
fn put_apart(out: &mut Vec<u8>, packet: &[u8], time: u64) {
    let mut event = Vec::with_capacity(packet.len());
    for field in Fields::new(packet, 0).map_while(Result::ok) {
        if let trace_packet::TRUSTED_PACKET_SEQUENCE_ID
        | trace_packet::SEQUENCE_FLAGS
        | trace_packet::TRACK_EVENT = field.number
        {
            put_field(&mut event, &field);
        }
    }
    let mut whole = Vec::new();
    with_time(&mut whole, &event, time);
    out.extend_from_slice(&whole);
}

/// The number of a field that no reader knows. Its tag has two bytes.
const IGNORED: u32 = 2047;

/// Returns the place of the event in a packet, and bytes for that place: then the event is in the field
/// [`IGNORED`]. The packet keeps its length and its time, to which the next packet's time is relative.
fn erasure(packet: &[u8]) -> (u64, Box<[u8]>) {
    let event = Fields::new(packet, 0).map_while(Result::ok).find_map(|field| match field.value {
        FieldValue::Bytes { bytes, offset } if field.number == trace_packet::TRACK_EVENT => {
            Some((field.offset, offset, bytes.len()))
        }
        _ => None,
    });
    let Some((at, content, len)) = event.filter(|(.., len)| *len > 0) else { return (0, Box::default()) };
    let mut bytes = Vec::new();
    put_varint(&mut bytes, u64::from(IGNORED) << 3 | 2);
    // The tag takes a byte of the event. The length keeps the number of its bytes.
    let length_bytes = (content - at) as usize - 1;
    let mut rest = len as u64 - 1;
    for place in 1..=length_bytes {
        let more = if place < length_bytes { 0x80 } else { 0 };
        bytes.push((rest & 0x7f) as u8 | more);
        rest >>= 7;
    }
    (at, bytes.into())
}

/// Splits bytes into whole packets, tags and lengths included.
fn packets(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut all = Fields::new(bytes, 0).map_while(Result::ok).peekable();
    std::iter::from_fn(move || {
        let from = usize::try_from(all.next()?.offset).ok()?;
        let to = all.peek().and_then(|next| usize::try_from(next.offset).ok()).unwrap_or(bytes.len());
        bytes.get(from..to)
    })
}

fn varint(message: &[u8], number: u32) -> Option<u64> {
    fields(message).find_map(|field| match field {
        (n, FieldValue::Varint(v)) if n == number => Some(v),
        _ => None,
    })
}

fn fields(message: &[u8]) -> impl Iterator<Item = (u32, FieldValue<'_>)> {
    Fields::new(message, 0).map_while(Result::ok).map(|field| (field.number, field.value))
}
