//! Writes events. The traced program waits for these packets.

use crate::Value;
use crate::proto::{
    Growing, put_double, put_fixed64, put_message, put_nonempty, put_nonzero, put_sint64, put_some, put_str,
    put_uint,
};
use crate::track_event::annotation::put_named;
use crate::track_event::fields::{
    EventType, Priority, inline_callstack, inline_frame, log_message, sequence_flags,
    trace_packet as packet_fields, track_event as event_fields,
};
use crate::track_event::ids::{SequenceId, TrackUuid};
use crate::track_event::sequence::{Name, SourceLocation, packet};

/// A sample of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterValue {
    /// An integer.
    Int(i64),
    /// A floating point number.
    Double(f64),
}

/// The source location of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location<'a> {
    /// The id of an [`Interned::Location`](crate::track_event::Interned::Location).
    Iid(u64),
    /// The location itself.
    At(SourceLocation<'a>),
}

/// The call stack of an event. `F` is the type of lists of frames: a slice to write,
/// [`InlineFrames`](crate::track_event::InlineFrames) when read.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     Callstack, Event, EventType, PacketData, PacketReader, SequenceId, SourceLocation, event,
/// };
///
/// let frames = [
///     SourceLocation { function: "main", ..SourceLocation::default() }, // the root first
///     SourceLocation { file: "net.rs", function: "send", line: 7 },
/// ];
/// let instant = Event::new(SequenceId(1), EventType::Instant, 1_000);
/// let mut trace = Vec::new();
/// event(&mut trace, &Event { callstack: Some(Callstack::Inline(&frames)), ..instant });
///
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Event(event)) = packet.data else { panic!() };
/// let Some(Callstack::Inline(read)) = event.callstack else { panic!() };
/// assert_eq!(read.collect::<Result<Vec<_>, _>>()?, frames);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Callstack<F> {
    /// The id of an [`InternedStack::Callstack`](crate::track_event::InternedStack::Callstack), from 1.
    Iid(u64),
    /// The frames, the root first. They have no module and no address.
    Inline(F),
}

/// A correlation id, the same for events that belong together.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     Correlation, Event, EventType, Location, Name, PacketData, PacketReader, SequenceId, SourceLocation,
///     event,
/// };
///
/// let correlation = Some(Correlation::Name(Name::Text("request 7")));
/// let location = Some(Location::At(SourceLocation { file: "net.rs", function: "send", line: 7 }));
/// let mut trace = Vec::new();
/// let instant = Event::new(SequenceId(1), EventType::Instant, 1_000);
/// event(&mut trace, &Event { correlation, location, ..instant });
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Event(event)) = packet.data else { panic!() };
/// assert_eq!((event.correlation, event.location), (correlation, location));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correlation<'a> {
    /// A number.
    Id(u64),
    /// A string.
    Name(Name<'a>),
}

/// A log message.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     Event, EventType, Interned, InternedKind, LogMessage, PacketData, PacketReader, Priority, SequenceId,
///     event, interned,
/// };
///
/// let mut trace = Vec::new();
/// let kind = InternedKind::LogBody;
/// interned(&mut trace, SequenceId(1), &[Interned::Text { kind, iid: 1, name: "cache is full" }]);
/// let log = LogMessage { body_iid: 1, priority: Priority::Warn, source_location_iid: 0 };
/// event(&mut trace, &Event { log: Some(log), ..Event::new(SequenceId(1), EventType::Instant, 1_000) });
///
/// let mut reader = PacketReader::new(&trace[..]);
/// assert_eq!(reader.next()?.unwrap().1.interned().count(), 1);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Event(event)) = packet.data else { panic!() };
/// assert_eq!(event.log, Some(log));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMessage {
    /// The id of the text, an [`InternedKind::LogBody`](crate::track_event::InternedKind::LogBody).
    pub body_iid: u64,
    /// The priority.
    pub priority: Priority,
    /// The id of the source location; 0 is none.
    pub source_location_iid: u64,
}

/// An event to be written.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::Value;
/// use hairline_formats::track_event::{
///     CounterValue, Event, EventType, Name, PacketData, PacketReader, SequenceId, TrackUuid, event,
/// };
///
/// let mut trace = Vec::new();
/// event(&mut trace, &Event {
///     name: Some(Name::Text("retry")),
///     track_uuid: Some(TrackUuid(71)),
///     needs_state: false, // nothing is interned
///     annotations: &[(Name::Text("attempt"), Value::I64(3))],
///     ..Event::new(SequenceId(1), EventType::Instant, 1_000)
/// });
/// event(&mut trace, &Event {
///     track_uuid: Some(TrackUuid(72)),
///     needs_state: false,
///     counter: Some(CounterValue::Int(512)),
///     ..Event::new(SequenceId(1), EventType::Counter, 2_000)
/// });
///
/// let (mut reader, mut kinds) = (PacketReader::new(&trace[..]), Vec::new());
/// while let Some((_, packet)) = reader.next()? {
///     let Some(PacketData::Event(event)) = packet.data else { panic!() };
///     kinds.extend(event.kind);
/// }
/// assert_eq!(kinds, [EventType::Instant, EventType::Counter]);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// The sequence's id.
    pub sequence: SequenceId,
    /// The time on the event's clock. By default, ns since the previous event of the sequence.
    pub timestamp: u64,
    /// The number of the timestamp's [clock](crate::track_event::fields::clock), unless it is the sequence's
    /// default.
    pub clock_id: Option<u32>,
    /// Whether the event relies on the sequence's state: its clock, its default track or its strings.
    pub needs_state: bool,
    /// The type of the event.
    pub kind: EventType,
    /// The categories.
    pub categories: &'a [Name<'a>],
    /// The name.
    pub name: Option<Name<'a>>,
    /// The track, unless it is the sequence's default.
    pub track_uuid: Option<TrackUuid>,
    /// The sample, of a counter event.
    pub counter: Option<CounterValue>,
    /// Samples of the extra counters of [`SequenceStart`](crate::track_event::SequenceStart), in their order.
    pub extra_counters: &'a [i64],
    /// The flows that pass through the event.
    pub flow_ids: &'a [u64],
    /// The flows that end at the event.
    pub terminating_flow_ids: &'a [u64],
    /// The correlation id.
    pub correlation: Option<Correlation<'a>>,
    /// The source location.
    pub location: Option<Location<'a>>,
    /// The log message.
    pub log: Option<LogMessage>,
    /// The call stack.
    pub callstack: Option<Callstack<&'a [SourceLocation<'a>]>>,
    /// What the call stack counts for in sums, for example bytes; `None` if each counts the same.
    pub callstack_weight: Option<f64>,
    /// The arguments: names and values. A [`Value::Null`] is not written.
    pub annotations: &'a [(Name<'a>, Value<'a>)],
}

impl<'a> Event<'a> {
    /// Creates an event with a type and a time only.
    #[must_use]
    pub const fn new(sequence: SequenceId, kind: EventType, timestamp: u64) -> Self {
        Self {
            sequence,
            timestamp,
            clock_id: None,
            needs_state: true,
            kind,
            categories: &[],
            name: None,
            track_uuid: None,
            counter: None,
            extra_counters: &[],
            flow_ids: &[],
            terminating_flow_ids: &[],
            correlation: None,
            location: None,
            log: None,
            callstack: None,
            callstack_weight: None,
            annotations: &[],
        }
    }
}

/// Writes one event. A faster encoder must write the same bytes.
///
/// ```text
/// 0a LEN | 50 <sequence> | 68 02 | 5a LEN <event> | 40 <timestamp> | d0 03 <clock>
///
/// event: 48 <type> | 18 <category> ... | 50 <name> | 58 <track>
///      | f0 01 <int counter> or e1 02 <8 bytes> | 60 <extra counter> ...
///      | f9 02 <flow> ... | 81 03 <flow that ends> ...
///      | a0 03 <correlation> | 90 02 <source location> | aa 01 LEN <log>
///      | c0 03 <call stack> or ba 03 LEN <frame> ... | c9 03 <8 bytes: weight> | 22 LEN <annotation> ...
/// ```
///
/// Absent fields are not written. Every varint has its shortest form.
///
/// ```
/// use hairline_formats::track_event::{Event, EventType, Name, SequenceId, event};
///
/// let begin = Event { name: Some(Name::Iid(3)), ..Event::new(SequenceId(1), EventType::SliceBegin, 5) };
/// let mut out = Vec::new();
/// event(&mut out, &begin);
/// assert_eq!(out, [0x0a, 12, 0x50, 1, 0x68, 2, 0x5a, 4, 0x48, 1, 0x50, 3, 0x40, 5]);
/// ```
pub fn event(out: &mut impl Growing, event: &Event<'_>) {
    event_with(out, event, |_| {});
}

/// Writes one event as [`event`] does. `more` appends further fields to it.
///
/// ```
/// use hairline_formats::proto::put_str;
/// use hairline_formats::track_event::fields::track_event;
/// use hairline_formats::track_event::{Event, EventType, SequenceId, event, event_with};
///
/// let instant = Event::new(SequenceId(1), EventType::Instant, 1_000);
/// let (mut bare, mut named) = (Vec::new(), Vec::new());
/// event(&mut bare, &instant);
/// event_with(&mut named, &instant, |out| put_str(out, track_event::NAME, "retry"));
/// assert_eq!(named.len(), bare.len() + 8); // two bytes of tag, one of length, five of text
/// ```
pub fn event_with<O: Growing>(out: &mut O, event: &Event<'_>, more: impl FnOnce(&mut O)) {
    packet(out, event.sequence, |p| {
        if event.needs_state {
            put_uint(p, packet_fields::SEQUENCE_FLAGS, u64::from(sequence_flags::NEEDS));
        }
        put_message(p, packet_fields::TRACK_EVENT, |e| {
            put_event_fields(e, event);
            more(e);
        });
        put_uint(p, packet_fields::TIMESTAMP, event.timestamp);
        put_some(p, packet_fields::TIMESTAMP_CLOCK_ID, event.clock_id.map(u64::from));
    });
}

#[inline]
fn put_event_fields(out: &mut impl Growing, event: &Event<'_>) {
    put_uint(out, event_fields::TYPE, event.kind as u64);
    for category in event.categories {
        put_name(out, event_fields::CATEGORY_IIDS, event_fields::CATEGORIES, *category);
    }
    if let Some(name) = event.name {
        put_name(out, event_fields::NAME_IID, event_fields::NAME, name);
    }
    put_some(out, event_fields::TRACK_UUID, event.track_uuid.map(|uuid| uuid.0));
    match event.counter {
        Some(CounterValue::Int(v)) => put_sint64(out, event_fields::COUNTER_VALUE, v),
        Some(CounterValue::Double(v)) => put_double(out, event_fields::DOUBLE_COUNTER_VALUE, v),
        None => {}
    }
    for value in event.extra_counters {
        put_sint64(out, event_fields::EXTRA_COUNTER_VALUES, *value);
    }
    for id in event.flow_ids {
        put_fixed64(out, event_fields::FLOW_IDS, *id);
    }
    for id in event.terminating_flow_ids {
        put_fixed64(out, event_fields::TERMINATING_FLOW_IDS, *id);
    }
    match event.correlation {
        Some(Correlation::Id(id)) => put_uint(out, event_fields::CORRELATION_ID, id),
        Some(Correlation::Name(name)) => {
            put_name(out, event_fields::CORRELATION_ID_STR_IID, event_fields::CORRELATION_ID_STR, name);
        }
        None => {}
    }
    match event.location {
        Some(Location::Iid(iid)) => put_uint(out, event_fields::SOURCE_LOCATION_IID, iid),
        Some(Location::At(at)) => put_message(out, event_fields::SOURCE_LOCATION, |l| at.put(l)),
        None => {}
    }
    if let Some(log) = event.log {
        put_message(out, event_fields::LOG_MESSAGE, |l| {
            put_nonzero(l, log_message::SOURCE_LOCATION_IID, log.source_location_iid);
            put_uint(l, log_message::BODY_IID, log.body_iid);
            put_uint(l, log_message::PRIO, log.priority as u64);
        });
    }
    match event.callstack {
        Some(Callstack::Iid(iid)) => put_uint(out, event_fields::CALLSTACK_IID, iid),
        Some(Callstack::Inline(frames)) => {
            put_message(out, event_fields::CALLSTACK, |c| {
                frames.iter().for_each(|frame| put_inline_frame(c, frame));
            });
        }
        None => {}
    }
    if let Some(weight) = event.callstack_weight {
        put_double(out, event_fields::CALLSTACK_WEIGHT, weight);
    }
    for (name, value) in event.annotations.iter().filter(|(_, value)| *value != Value::Null) {
        put_named(out, *name, value);
    }
}

/// Appends a frame to the message [`CALLSTACK`](crate::track_event::fields::track_event::CALLSTACK) of an
/// event, as [`event`] does for [`Callstack::Inline`].
///
/// ```
/// use hairline_formats::track_event::{InlineFrames, SourceLocation, put_inline_frame};
///
/// let frame = SourceLocation { file: "net.rs", function: "send", line: 7 };
/// let mut message = Vec::new();
/// put_inline_frame(&mut message, &frame);
/// # #[cfg(feature = "read")]
/// assert_eq!(InlineFrames::new(&message, 0).collect::<Result<Vec<_>, _>>()?, [frame]);
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn put_inline_frame(out: &mut impl Growing, at: &SourceLocation<'_>) {
    put_message(out, inline_callstack::FRAMES, |f| {
        put_str(f, inline_frame::FUNCTION_NAME, at.function);
        put_nonempty(f, inline_frame::SOURCE_FILE, at.file);
        put_nonzero(f, inline_frame::LINE_NUMBER, u64::from(at.line));
    });
}

#[inline]
fn put_name(out: &mut impl Growing, iid_field: u32, text_field: u32, name: Name<'_>) {
    match name {
        Name::Iid(iid) => put_uint(out, iid_field, iid),
        Name::Text(text) => put_str(out, text_field, text),
    }
}
