//! An event, as it is read.

use crate::DecodeError;
use crate::proto::{FieldValue, Fields};
use crate::track_event::event::{Correlation, CounterValue, Location, LogMessage};
use crate::track_event::fields::{EventType, Priority, log_message, track_event};
use crate::track_event::legacy::LegacyEvent;
use crate::track_event::read::annotation::Annotations;
use crate::track_event::read::interned;
use crate::track_event::read::repeated::{Integers, Numbers, Texts};
use crate::track_event::sequence::Name;

/// `TrackEvent`. Names come as numbers of the sequence's strings, or in full.
#[derive(Clone, Debug)]
pub struct TrackEvent<'a> {
    /// What happened; None for a type that this crate does not know.
    pub kind: Option<EventType>,
    /// The number of its name.
    pub name_iid: Option<u64>,
    /// Its name.
    pub name: Option<&'a str>,
    /// Its track, if it is not the sequence's default.
    pub track_uuid: Option<u64>,
    /// The sample, of a counter event.
    pub counter: Option<CounterValue>,
    /// What it shares with others.
    pub correlation: Option<Correlation<'a>>,
    /// Where in the source it is.
    pub location: Option<Location<'a>>,
    /// What it says to people.
    pub log: Option<LogMessage>,
    /// Fields that were passed over, inside its location and its log message too.
    pub skipped: u32,
    /// The bytes of the legacy event and their place in the input.
    legacy: Option<(&'a [u8], u64)>,
    message: Fields<'a>,
    /// Which repeated fields there are, a bit each by their numbers, so that the others need not be looked for.
    present: u64,
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
            (track_event::TRACK_UUID, Varint(v)) => self.track_uuid = Some(v),
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
            // These are read where they stand, on demand.
            (
                track_event::CATEGORY_IIDS
                | track_event::CATEGORIES
                | track_event::DEBUG_ANNOTATIONS
                | track_event::EXTRA_COUNTER_VALUES
                | track_event::EXTRA_COUNTER_TRACK_UUIDS
                | track_event::EXTRA_DOUBLE_COUNTER_VALUES
                | track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS
                | track_event::FLOW_IDS
                | track_event::TERMINATING_FLOW_IDS,
                _,
            ) => self.present |= 1 << number,
            _ => self.skipped += 1,
        }
        Ok(())
    }

    /// All of the event: what an [`Annotations::of_event`] is to be read from later.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.message.rest()
    }

    /// What happened, as Trace Event JSON has it; what of it was passed over is counted by `skipped`.
    ///
    /// # Errors
    /// Where it contradicts itself.
    pub fn legacy(&self, skipped: &mut u32) -> Result<Option<LegacyEvent<'a>>, DecodeError> {
        let decode = |(bytes, offset)| LegacyEvent::decode(Fields::new(bytes, offset), skipped);
        self.legacy.map(decode).transpose()
    }

    /// Whether it has arguments.
    #[must_use]
    pub fn has_annotations(&self) -> bool {
        self.present & 1 << track_event::DEBUG_ANNOTATIONS != 0
    }

    /// The event's fields, or none if `field` is not among them.
    fn having(&self, field: u32) -> Fields<'a> {
        if self.present & 1 << field == 0 { Fields::none() } else { self.message.clone() }
    }

    /// The numbers of its categories.
    #[must_use]
    pub fn category_iids(&self) -> Numbers<'a> {
        Numbers::varints(self.having(track_event::CATEGORY_IIDS), track_event::CATEGORY_IIDS)
    }

    /// Its categories in full.
    #[must_use]
    pub fn categories(&self) -> Texts<'a> {
        Texts::new(self.having(track_event::CATEGORIES), track_event::CATEGORIES)
    }

    /// Its arguments.
    #[must_use]
    pub fn annotations(&self) -> Annotations<'a> {
        Annotations::new(self.having(track_event::DEBUG_ANNOTATIONS), track_event::DEBUG_ANNOTATIONS)
    }

    /// The samples of its extra counters, in the order of their tracks.
    #[must_use]
    pub fn extra_counters(&self) -> Integers<'a> {
        Integers::new(self.having(track_event::EXTRA_COUNTER_VALUES), track_event::EXTRA_COUNTER_VALUES)
    }

    /// The tracks of its extra counters; none if they are its sequence's
    /// [default](crate::track_event::read::Defaults::extra_counter_track_uuids).
    #[must_use]
    pub fn extra_counter_track_uuids(&self) -> Numbers<'a> {
        Numbers::varints(
            self.having(track_event::EXTRA_COUNTER_TRACK_UUIDS),
            track_event::EXTRA_COUNTER_TRACK_UUIDS,
        )
    }

    /// The samples of its extra counters that are floating point numbers.
    pub fn extra_doubles(&self) -> impl Iterator<Item = Result<f64, DecodeError>> + use<'a> {
        let field = track_event::EXTRA_DOUBLE_COUNTER_VALUES;
        Numbers::fixed64(self.having(field), field).map(|bits| bits.map(f64::from_bits))
    }

    /// The tracks of those.
    #[must_use]
    pub fn extra_double_track_uuids(&self) -> Numbers<'a> {
        let field = track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS;
        Numbers::varints(self.having(field), field)
    }

    /// The flows that go through it.
    #[must_use]
    pub fn flow_ids(&self) -> Numbers<'a> {
        Numbers::fixed64(self.having(track_event::FLOW_IDS), track_event::FLOW_IDS)
    }

    /// The flows that end at it.
    #[must_use]
    pub fn terminating_flow_ids(&self) -> Numbers<'a> {
        Numbers::fixed64(self.having(track_event::TERMINATING_FLOW_IDS), track_event::TERMINATING_FLOW_IDS)
    }
}

/// `LogMessage`. A priority that this crate does not know is passed over.
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
