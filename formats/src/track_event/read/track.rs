//! A track's description, as it is read.

use crate::DecodeError;
use crate::proto::FieldValue::{self, Bytes};
use crate::proto::Fields;
use crate::track_event::fields::{
    ChildOrdering, CounterType, SiblingMerge, Unit, counter_descriptor, process_descriptor,
    thread_descriptor, track_descriptor,
};
use crate::track_event::read::repeated::Texts;

/// `TrackDescriptor`.
#[derive(Clone, Debug, Default)]
pub struct TrackDescriptor<'a> {
    /// The track's number.
    pub uuid: Option<u64>,
    /// The track above it.
    pub parent_uuid: Option<u64>,
    /// Its name.
    pub name: Option<&'a str>,
    /// What it is about.
    pub description: Option<&'a str>,
    /// How the tracks below it are shown; None for an order that this crate does not know.
    pub child_ordering: Option<ChildOrdering>,
    /// Its place among its siblings, where their order is [`ChildOrdering::Explicit`].
    pub rank: Option<i32>,
    /// Which of its siblings are shown in one row with it; None for a way that this crate does not know.
    pub merge: Option<SiblingMerge>,
    /// The key of its row, for [`SiblingMerge::ByKey`].
    pub merge_key: Option<&'a str>,
    /// The process that it is.
    pub process: Option<ProcessDescriptor<'a>>,
    /// The thread that it is.
    pub thread: Option<ThreadDescriptor<'a>>,
    /// The counter that it is.
    pub counter: Option<CounterDescriptor<'a>>,
    /// Fields that were passed over, inside the descriptors above too.
    pub skipped: u32,
}

/// `ProcessDescriptor`.
#[derive(Clone, Debug)]
pub struct ProcessDescriptor<'a> {
    /// The process id.
    pub pid: Option<i32>,
    /// What to show.
    pub name: Option<&'a str>,
    message: Fields<'a>,
}

/// `ThreadDescriptor`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadDescriptor<'a> {
    /// The process id.
    pub pid: Option<i32>,
    /// The thread id.
    pub tid: Option<i64>,
    /// What to show.
    pub name: Option<&'a str>,
}

/// `CounterDescriptor`.
#[derive(Clone, Debug)]
pub struct CounterDescriptor<'a> {
    /// What it is, if it is one that importers know; None for one that this crate does not.
    pub builtin: Option<CounterType>,
    /// What its numbers count; None for a unit that this crate does not know.
    pub unit: Option<Unit>,
    /// The same in a word.
    pub unit_name: Option<&'a str>,
    /// What a number is to be multiplied with.
    pub unit_multiplier: Option<i64>,
    /// Whether its numbers are differences.
    pub is_incremental: bool,
    /// The key of its scale, which counters with the same key share.
    pub y_axis_share_key: Option<&'a str>,
    message: Fields<'a>,
}

impl<'a> TrackDescriptor<'a> {
    pub(super) fn decode(message: Fields<'a>) -> Result<Self, DecodeError> {
        let mut track = Self {
            child_ordering: Some(ChildOrdering::Unspecified),
            merge: Some(SiblingMerge::Unspecified),
            ..Self::default()
        };
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (track_descriptor::UUID, FieldValue::Varint(v)) => track.uuid = Some(v),
                (track_descriptor::PARENT_UUID, FieldValue::Varint(v)) => track.parent_uuid = Some(v),
                (track_descriptor::NAME | track_descriptor::STATIC_NAME, value @ Bytes { .. }) => {
                    track.name = value.text();
                }
                (track_descriptor::DESCRIPTION, value @ Bytes { .. }) => track.description = value.text(),
                (track_descriptor::CHILD_ORDERING, FieldValue::Varint(v)) => {
                    track.child_ordering = ChildOrdering::from_number(v);
                }
                (track_descriptor::SIBLING_ORDER_RANK, FieldValue::Varint(v)) => track.rank = Some(v as i32),
                (track_descriptor::SIBLING_MERGE_BEHAVIOR, FieldValue::Varint(v)) => {
                    track.merge = SiblingMerge::from_number(v);
                }
                (track_descriptor::SIBLING_MERGE_KEY, value @ Bytes { .. }) => track.merge_key = value.text(),
                (track_descriptor::PROCESS, FieldValue::Bytes { bytes, offset }) => {
                    track.process =
                        Some(ProcessDescriptor::decode(&Fields::new(bytes, offset), &mut track.skipped)?);
                }
                (track_descriptor::THREAD, FieldValue::Bytes { bytes, offset }) => {
                    track.thread =
                        Some(ThreadDescriptor::decode(Fields::new(bytes, offset), &mut track.skipped)?);
                }
                (track_descriptor::COUNTER, FieldValue::Bytes { bytes, offset }) => {
                    track.counter =
                        Some(CounterDescriptor::decode(Fields::new(bytes, offset), &mut track.skipped)?);
                }
                _ => track.skipped += 1,
            }
        }
        Ok(track)
    }
}

impl<'a> ProcessDescriptor<'a> {
    fn decode(message: &Fields<'a>, skipped: &mut u32) -> Result<Self, DecodeError> {
        let mut process = Self { pid: None, name: None, message: message.clone() };
        for field in message.clone() {
            let field = field?;
            match (field.number, field.value) {
                (process_descriptor::PID, FieldValue::Varint(v)) => process.pid = Some(v as i32),
                (process_descriptor::PROCESS_NAME, value @ Bytes { .. }) => process.name = value.text(),
                (process_descriptor::CMDLINE, _) => {}
                _ => *skipped += 1,
            }
        }
        Ok(process)
    }

    /// Program and arguments.
    #[must_use]
    pub fn cmdline(&self) -> Texts<'a> {
        Texts::new(self.message.clone(), process_descriptor::CMDLINE)
    }
}

impl<'a> ThreadDescriptor<'a> {
    fn decode(message: Fields<'a>, skipped: &mut u32) -> Result<Self, DecodeError> {
        let mut thread = Self::default();
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (thread_descriptor::PID, FieldValue::Varint(v)) => thread.pid = Some(v as i32),
                (thread_descriptor::TID, FieldValue::Varint(v)) => thread.tid = Some(v.cast_signed()),
                (thread_descriptor::THREAD_NAME, value @ Bytes { .. }) => thread.name = value.text(),
                _ => *skipped += 1,
            }
        }
        Ok(thread)
    }
}

impl<'a> CounterDescriptor<'a> {
    fn decode(message: Fields<'a>, skipped: &mut u32) -> Result<Self, DecodeError> {
        let mut counter = Self {
            builtin: Some(CounterType::Unspecified),
            unit: Some(Unit::Unspecified),
            unit_name: None,
            unit_multiplier: None,
            is_incremental: false,
            y_axis_share_key: None,
            message: message.clone(),
        };
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (counter_descriptor::TYPE, FieldValue::Varint(v)) => {
                    counter.builtin = CounterType::from_number(v);
                }
                (counter_descriptor::Y_AXIS_SHARE_KEY, value @ Bytes { .. }) => {
                    counter.y_axis_share_key = value.text();
                }
                (counter_descriptor::UNIT, FieldValue::Varint(v)) => counter.unit = Unit::from_number(v),
                (counter_descriptor::UNIT_NAME, value @ Bytes { .. }) => counter.unit_name = value.text(),
                (counter_descriptor::UNIT_MULTIPLIER, FieldValue::Varint(v)) => {
                    counter.unit_multiplier = Some(v.cast_signed());
                }
                (counter_descriptor::IS_INCREMENTAL, FieldValue::Varint(v)) => {
                    counter.is_incremental = v != 0;
                }
                (counter_descriptor::CATEGORIES, Bytes { .. }) => {} // read where they stand, on demand
                _ => *skipped += 1,
            }
        }
        Ok(counter)
    }

    /// Its categories.
    #[must_use]
    pub fn categories(&self) -> Texts<'a> {
        Texts::new(self.message.clone(), counter_descriptor::CATEGORIES)
    }
}
