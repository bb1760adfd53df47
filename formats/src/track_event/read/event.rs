//! Reads events.

use crate::DecodeError;
use crate::proto::{FieldValue, Fields};
use crate::track_event::event::{Callstack, Correlation, CounterValue, Location, LogMessage};
use crate::track_event::fields::{
    EventType, Priority, inline_callstack, inline_frame, log_message, track_event,
};
use crate::track_event::ids::TrackUuid;
use crate::track_event::legacy::LegacyEvent;
use crate::track_event::read::annotation::Annotations;
use crate::track_event::read::interned;
use crate::track_event::read::repeated::{Integers, Numbers, Texts, TrackUuids};
use crate::track_event::sequence::{Name, SourceLocation};

/// An event that was read: `TrackEvent`. Names are interned on the sequence, or inline.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::track_event::{Event, EventType, Name, PacketData, PacketReader, SequenceId, event};
///
/// let mut trace = Vec::new();
/// event(&mut trace, &Event {
///     name: Some(Name::Text("read")),
///     categories: &[Name::Iid(1), Name::Text("net")],
///     flow_ids: &[7, 8],
///     extra_counters: &[512],
///     annotations: &[(Name::Text("bytes"), Value::U64(64))],
///     ..Event::new(SequenceId(1), EventType::SliceBegin, 1_000)
/// });
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Event(event)) = packet.data else { panic!() };
/// assert_eq!((event.kind, event.name), (Some(EventType::SliceBegin), Some("read")));
/// assert_eq!(event.category_iids().collect::<Result<Vec<_>, _>>()?, [1]);
/// assert_eq!(event.categories().collect::<Result<Vec<_>, _>>()?, ["net"]);
/// assert_eq!(event.flow_ids().collect::<Result<Vec<_>, _>>()?, [7, 8]);
/// assert_eq!(event.extra_counters().collect::<Result<Vec<_>, _>>()?, [512]);
/// assert_eq!(event.annotations().next().unwrap()?.name, Some("bytes"));
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct TrackEvent<'a> {
    /// The type of the event; `None` for a type that this crate does not know.
    pub kind: Option<EventType>,
    /// The id of an interned name.
    pub name_iid: Option<u64>,
    /// The name, if it is not interned.
    pub name: Option<&'a str>,
    /// The track, unless it is the sequence's default.
    pub track_uuid: Option<TrackUuid>,
    /// The sample, of a counter event.
    pub counter: Option<CounterValue>,
    /// The correlation id.
    pub correlation: Option<Correlation<'a>>,
    /// The source location.
    pub location: Option<Location<'a>>,
    /// The log message.
    pub log: Option<LogMessage>,
    /// The call stack.
    pub callstack: Option<Callstack<InlineFrames<'a>>>,
    /// What the call stack counts for in sums.
    pub callstack_weight: Option<f64>,
    /// The time, in an event of an older tracer.
    pub old_time: Option<OldTime>,
    /// The number of unknown fields, including those of the location and the log message.
    pub skipped: u32,
    /// The bytes of the legacy event and their offset in the input.
    legacy: Option<(&'a [u8], u64)>,
    message: Fields<'a>,
    /// The repeated fields that are present, as a bit for each field number. Absent ones need no search.
    present: u64,
}

/// The time of an event as Chrome wrote it before 2020, on `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldTime {
    /// Microseconds since the previous event of this form on the sequence, or since the
    /// [reference time](crate::track_event::ThreadDescriptor::reference_time_us) of its thread.
    SincePrevious {
        /// The difference.
        us: i64,
    },
    /// Microseconds.
    Absolute {
        /// The time.
        us: i64,
    },
}

impl<'a> TrackEvent<'a> {
    pub(super) fn decode(message: Fields<'a>) -> Result<Self, DecodeError> {
        let mut event = Self {
            kind: Some(EventType::Unspecified),
            name_iid: None,
            name: None,
            track_uuid: None,
            counter: None,
            correlation: None,
            location: None,
            log: None,
            callstack: None,
            callstack_weight: None,
            old_time: None,
            skipped: 0,
            legacy: None,
            message: message.clone(),
            present: 0,
        };
        for field in message {
            let field = field?;
            event.add(field.number, field.value)?;
        }
        Ok(event)
    }

    fn add(&mut self, number: u32, value: FieldValue<'a>) -> Result<(), DecodeError> {
        use FieldValue::{Bytes, Fixed64, Varint};
        match (number, value) {
            (track_event::TYPE, Varint(v)) => self.kind = EventType::from_number(v),
            (track_event::NAME_IID, Varint(v)) => self.name_iid = Some(v),
            (track_event::NAME, value @ Bytes { .. }) => self.name = value.text(),
            (track_event::TRACK_UUID, Varint(v)) => self.track_uuid = Some(TrackUuid(v)),
            (track_event::COUNTER_VALUE, Varint(v)) => {
                self.counter = Some(CounterValue::Int(v.cast_signed()));
            }
            (track_event::DOUBLE_COUNTER_VALUE, Fixed64(v)) => {
                self.counter = Some(CounterValue::Double(f64::from_bits(v)));
            }
            (track_event::CORRELATION_ID, Varint(v)) => self.correlation = Some(Correlation::Id(v)),
            (track_event::CORRELATION_ID_STR, value @ Bytes { .. }) => {
                self.correlation = value.text().map(|text| Correlation::Name(Name::Text(text)));
            }
            (track_event::CORRELATION_ID_STR_IID, Varint(v)) => {
                self.correlation = Some(Correlation::Name(Name::Iid(v)));
            }
            (track_event::SOURCE_LOCATION_IID, Varint(v)) => self.location = Some(Location::Iid(v)),
            (track_event::SOURCE_LOCATION, Bytes { bytes, offset }) => {
                let (_, at) = interned::location(Fields::new(bytes, offset), &mut self.skipped)?;
                self.location = Some(Location::At(at));
            }
            (track_event::LOG_MESSAGE, Bytes { bytes, offset }) => {
                self.log = Some(log(Fields::new(bytes, offset), &mut self.skipped)?);
            }
            (track_event::LEGACY_EVENT, Bytes { bytes, offset }) => {
                self.legacy = Some((bytes, offset));
            }
            // Iids are from 1. Importers take 0 for none.
            (track_event::CALLSTACK_IID, Varint(v)) => {
                self.callstack = (v != 0).then_some(Callstack::Iid(v));
            }
            (track_event::CALLSTACK, Bytes { bytes, offset }) => {
                self.callstack = Some(Callstack::Inline(InlineFrames::new(bytes, offset)));
            }
            (track_event::CALLSTACK_WEIGHT, Fixed64(v)) => {
                self.callstack_weight = Some(f64::from_bits(v));
            }
            (track_event::TIMESTAMP_DELTA_US, Varint(v)) => {
                self.old_time = Some(OldTime::SincePrevious { us: v.cast_signed() });
            }
            (track_event::TIMESTAMP_ABSOLUTE_US, Varint(v)) if self.old_time.is_none() => {
                self.old_time = Some(OldTime::Absolute { us: v.cast_signed() });
            }
            // These are read on demand.
            (
                track_event::CATEGORY_IIDS
                | track_event::CATEGORIES
                | track_event::DEBUG_ANNOTATIONS
                | track_event::EXTRA_COUNTER_VALUES
                | track_event::EXTRA_COUNTER_TRACK_UUIDS
                | track_event::EXTRA_DOUBLE_COUNTER_VALUES
                | track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS
                | track_event::FLOW_IDS
                | track_event::TERMINATING_FLOW_IDS
                | track_event::FLOW_IDS_OLD
                | track_event::TERMINATING_FLOW_IDS_OLD,
                _,
            ) => self.present |= 1 << number,
            _ => self.skipped += 1,
        }
        Ok(())
    }

    /// Returns the whole event, from which [`Annotations::of_event`] can read the arguments later.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.message.rest()
    }

    /// Returns the legacy event, if there is one. Adds the number of its unknown fields to `skipped`.
    ///
    /// # Errors
    /// The legacy event is malformed.
    pub fn legacy(&self, skipped: &mut u32) -> Result<Option<LegacyEvent<'a>>, DecodeError> {
        let decode = |(bytes, offset)| LegacyEvent::decode(Fields::new(bytes, offset), skipped);
        self.legacy.map(decode).transpose()
    }

    /// Whether the event has arguments.
    #[must_use]
    pub fn has_annotations(&self) -> bool {
        self.present & 1 << track_event::DEBUG_ANNOTATIONS != 0
    }

    /// The event's fields; none if `field` is not among them.
    fn having(&self, field: u32) -> Fields<'a> {
        if self.present & 1 << field == 0 { Fields::none() } else { self.message.clone() }
    }

    fn varints(&self, field: u32) -> Numbers<'a> {
        Numbers::varints(self.having(field), field)
    }

    fn fixed64(&self, field: u32) -> Numbers<'a> {
        Numbers::fixed64(self.having(field), field)
    }

    fn uuids(&self, field: u32) -> TrackUuids<'a> {
        TrackUuids::new(self.having(field), field)
    }

    /// Returns the ids of the interned categories.
    #[must_use]
    pub fn category_iids(&self) -> Numbers<'a> {
        self.varints(track_event::CATEGORY_IIDS)
    }

    /// Returns the categories that are not interned.
    #[must_use]
    pub fn categories(&self) -> Texts<'a> {
        Texts::new(self.having(track_event::CATEGORIES), track_event::CATEGORIES)
    }

    /// Returns the arguments.
    #[must_use]
    pub fn annotations(&self) -> Annotations<'a> {
        Annotations::new(self.having(track_event::DEBUG_ANNOTATIONS), track_event::DEBUG_ANNOTATIONS)
    }

    /// Returns the samples of the extra counters, in the order of their tracks.
    #[must_use]
    pub fn extra_counters(&self) -> Integers<'a> {
        Integers::new(self.having(track_event::EXTRA_COUNTER_VALUES), track_event::EXTRA_COUNTER_VALUES)
    }

    /// Returns the tracks of the extra counters; none if they are the sequence's
    /// [default](crate::track_event::PacketDefaults::extra_counter_track_uuids).
    #[must_use]
    pub fn extra_counter_track_uuids(&self) -> TrackUuids<'a> {
        self.uuids(track_event::EXTRA_COUNTER_TRACK_UUIDS)
    }

    /// Returns the samples of the extra counters that are floating point numbers.
    pub fn extra_doubles(&self) -> impl Iterator<Item = Result<f64, DecodeError>> + use<'a> {
        self.fixed64(track_event::EXTRA_DOUBLE_COUNTER_VALUES).map(|bits| bits.map(f64::from_bits))
    }

    /// Returns the tracks of the [`extra_doubles`](Self::extra_doubles).
    #[must_use]
    pub fn extra_double_track_uuids(&self) -> TrackUuids<'a> {
        self.uuids(track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS)
    }

    /// Returns the flows that pass through the event.
    #[must_use]
    pub fn flow_ids(&self) -> Numbers<'a> {
        self.fixed64(track_event::FLOW_IDS)
    }

    /// Returns the flows of both kinds in their older form: those that pass through the event, and those that
    /// end there.
    #[must_use]
    pub fn old_flow_ids(&self) -> [Numbers<'a>; 2] {
        [track_event::FLOW_IDS_OLD, track_event::TERMINATING_FLOW_IDS_OLD].map(|field| self.varints(field))
    }

    /// Returns the flows that end at the event.
    #[must_use]
    pub fn terminating_flow_ids(&self) -> Numbers<'a> {
        self.fixed64(track_event::TERMINATING_FLOW_IDS)
    }
}

/// `TrackEvent.InlineCallstack`: iterates over the frames of an event's call stack, the root first.
#[derive(Clone, Debug)]
pub struct InlineFrames<'a>(Fields<'a>);

impl<'a> InlineFrames<'a> {
    /// Reads the message with these bytes. `offset` is that of the first one in the input, for errors.
    #[must_use]
    pub fn new(message: &'a [u8], offset: u64) -> Self {
        Self(Fields::new(message, offset))
    }

    /// Returns the bytes of the message, from which [`new`](Self::new) can read the frames later.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.0.rest()
    }
}

impl<'a> Iterator for InlineFrames<'a> {
    type Item = Result<SourceLocation<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next_message(inline_callstack::FRAMES)?.and_then(frame))
    }
}

fn frame(message: Fields<'_>) -> Result<SourceLocation<'_>, DecodeError> {
    let mut at = SourceLocation::default();
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (inline_frame::FUNCTION_NAME, value) => at.function = value.text().unwrap_or(""),
            (inline_frame::SOURCE_FILE, value) => at.file = value.text().unwrap_or(""),
            (inline_frame::LINE_NUMBER, FieldValue::Varint(v)) => at.line = v as u32,
            _ => {}
        }
    }
    Ok(at)
}

/// Reads `LogMessage`. An unknown priority counts as an unknown field.
fn log(message: Fields<'_>, skipped: &mut u32) -> Result<LogMessage, DecodeError> {
    let mut log = LogMessage { body_iid: 0, priority: Priority::Unspecified, source_location_iid: 0 };
    for field in message {
        let field = field?;
        match (field.number, field.value) {
            (log_message::BODY_IID, FieldValue::Varint(v)) => log.body_iid = v,
            (log_message::SOURCE_LOCATION_IID, FieldValue::Varint(v)) => log.source_location_iid = v,
            (log_message::PRIO, FieldValue::Varint(v)) => match Priority::from_number(v) {
                Some(priority) => log.priority = priority,
                None => *skipped += 1,
            },
            _ => *skipped += 1,
        }
    }
    Ok(log)
}
