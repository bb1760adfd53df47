//! Writes an event: the packet that the traced program waits for.

use crate::Value;
use crate::proto::{put_double, put_fixed64, put_message, put_sint64, put_str, put_uint};
use crate::track_event::annotation::put_named;
use crate::track_event::fields::{
    EventType, Priority, log_message, sequence_flags, trace_packet as packet_fields,
    track_event as event_fields,
};
use crate::track_event::sequence::{Name, SourceLocation, packet};

/// What a counter showed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CounterValue {
    /// A whole number.
    Int(i64),
    /// Any other.
    Double(f64),
}

/// Where in the source an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Location<'a> {
    /// By the number that an [`Interned`](crate::track_event::Interned) gave it.
    Iid(u64),
    /// In full.
    At(SourceLocation<'a>),
}

/// What events that belong together share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correlation<'a> {
    /// A number.
    Id(u64),
    /// A string.
    Name(Name<'a>),
}

/// A message to be read by people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogMessage {
    /// The number of its text, a [`LogBody`](crate::track_event::Interned::LogBody).
    pub body_iid: u64,
    /// How much it matters.
    pub priority: Priority,
    /// The number of its source location; 0 is none.
    pub source_location_iid: u64,
}

/// Something that happened on a track.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// The sequence's number.
    pub sequence: u32,
    /// When, on the event's clock; by default ns since the event before it on the sequence.
    pub timestamp: u64,
    /// The timestamp's [clock](crate::track_event::fields::clock), if it is not the sequence's default.
    pub clock_id: Option<u32>,
    /// Whether it relies on what the sequence said: its clock, its track, its strings.
    pub needs_state: bool,
    /// What happened.
    pub kind: EventType,
    /// Its categories.
    pub categories: &'a [Name<'a>],
    /// Its name.
    pub name: Option<Name<'a>>,
    /// Its track, if not the sequence's own.
    pub track_uuid: Option<u64>,
    /// The sample, of a counter event.
    pub counter: Option<CounterValue>,
    /// Samples of the extra counters that the sequence's start named.
    pub extra_counters: &'a [i64],
    /// Flows that go through it.
    pub flow_ids: &'a [u64],
    /// Flows that end at it.
    pub terminating_flow_ids: &'a [u64],
    /// What it shares with others.
    pub correlation: Option<Correlation<'a>>,
    /// Where in the source it is.
    pub location: Option<Location<'a>>,
    /// What it says to people.
    pub log: Option<LogMessage>,
    /// Names and values. [`Value::Null`] is left out.
    pub annotations: &'a [(Name<'a>, Value<'a>)],
}

impl<'a> Event<'a> {
    /// An event that says nothing but what happened when.
    #[must_use]
    pub const fn new(sequence: u32, kind: EventType, timestamp: u64) -> Self {
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
            annotations: &[],
        }
    }
}

/// One event: the plain encoder that a faster one must equal byte for byte.
///
/// ```text
/// 0a LEN | 50 <sequence> | 68 02 | 5a LEN <event> | 40 <timestamp> | d0 03 <clock>
///                                         event: 48 <type> | 18 <category> ... | 50 <name> | 58 <track>
///                                              | f0 01 <int counter> or e1 02 <8 bytes> | 60 <extra counter> ...
///                                              | f9 02 <flow> ... | 81 03 <flow that ends> ...
///                                              | a0 03 <correlation> | 90 02 <source location> | aa 01 LEN <log>
///                                              | 22 LEN <annotation> ...
/// ```
///
/// What is not said is not there. Every varint is as short as it can be.
pub fn event(out: &mut Vec<u8>, event: &Event<'_>) {
    event_with(out, event, |_| {});
}

/// As [`event`], with what `more` appends to its fields.
pub fn event_with(out: &mut Vec<u8>, event: &Event<'_>, more: impl FnOnce(&mut Vec<u8>)) {
    packet(out, event.sequence, |p| {
        if event.needs_state {
            put_uint(p, packet_fields::SEQUENCE_FLAGS, u64::from(sequence_flags::NEEDS));
        }
        put_message(p, packet_fields::TRACK_EVENT, |e| {
            put_event_fields(e, event);
            more(e);
        });
        put_uint(p, packet_fields::TIMESTAMP, event.timestamp);
        if let Some(clock_id) = event.clock_id {
            put_uint(p, packet_fields::TIMESTAMP_CLOCK_ID, u64::from(clock_id));
        }
    });
}

#[inline]
fn put_event_fields(out: &mut Vec<u8>, event: &Event<'_>) {
    put_uint(out, event_fields::TYPE, event.kind as u64);
    for category in event.categories {
        put_name(out, event_fields::CATEGORY_IIDS, event_fields::CATEGORIES, *category);
    }
    if let Some(name) = event.name {
        put_name(out, event_fields::NAME_IID, event_fields::NAME, name);
    }
    if let Some(uuid) = event.track_uuid {
        put_uint(out, event_fields::TRACK_UUID, uuid);
    }
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
            if log.source_location_iid != 0 {
                put_uint(l, log_message::SOURCE_LOCATION_IID, log.source_location_iid);
            }
            put_uint(l, log_message::BODY_IID, log.body_iid);
            put_uint(l, log_message::PRIO, log.priority as u64);
        });
    }
    for (name, value) in event.annotations.iter().filter(|(_, value)| *value != Value::Null) {
        put_named(out, *name, value);
    }
}

#[inline]
fn put_name(out: &mut Vec<u8>, iid_field: u32, text_field: u32, name: Name<'_>) {
    match name {
        Name::Iid(iid) => put_uint(out, iid_field, iid),
        Name::Text(text) => put_str(out, text_field, text),
    }
}
