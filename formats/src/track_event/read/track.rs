//! Reads track descriptors.

use crate::DecodeError;
use crate::proto::FieldValue::{self, Bytes};
use crate::proto::Fields;
use crate::track_event::fields::{
    ChildOrdering, CounterType, SiblingMerge, Unit, counter_descriptor, process_descriptor,
    thread_descriptor, track_descriptor,
};
use crate::track_event::ids::TrackUuid;
use crate::track_event::read::chrome;
use crate::track_event::read::repeated::Texts;

/// A track: `TrackDescriptor`.
///
/// ```
/// use hairline_formats::track_event::{
///     CustomTrack, PacketData, PacketReader, SequenceId, TrackUuid, custom_descriptor,
/// };
///
/// let mut trace = Vec::new();
/// let (uuid, parent_uuid, name) = (TrackUuid(4), Some(TrackUuid(1)), "requests");
/// let requests = CustomTrack { uuid, parent_uuid, name, ..CustomTrack::default() };
/// custom_descriptor(&mut trace, SequenceId(1), &requests);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Track(track)) = packet.data else { panic!() };
/// assert_eq!((track.uuid, track.parent_uuid, track.name), (Some(uuid), parent_uuid, Some("requests")));
/// assert!(track.process.is_none() && track.thread.is_none() && track.counter.is_none());
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct TrackDescriptor<'a> {
    /// The track's uuid.
    pub uuid: Option<TrackUuid>,
    /// The parent track.
    pub parent_uuid: Option<TrackUuid>,
    /// The name.
    pub name: Option<&'a str>,
    /// The description.
    pub description: Option<&'a str>,
    /// The order of its child tracks; `None` for an order that this crate does not know.
    pub child_ordering: Option<ChildOrdering>,
    /// The rank among its siblings, if their order is [`ChildOrdering::Explicit`].
    pub rank: Option<i32>,
    /// The siblings that are shown in one row with it; `None` for a behaviour that this crate does not know.
    pub merge: Option<SiblingMerge>,
    /// The common key of those siblings, for [`SiblingMerge::ByKey`].
    pub merge_key: Option<&'a str>,
    /// The process, if the track is one.
    pub process: Option<ProcessDescriptor<'a>>,
    /// The thread, if the track is one.
    pub thread: Option<ThreadDescriptor<'a>>,
    /// The counter, if the track is one.
    pub counter: Option<CounterDescriptor<'a>>,
    /// Whether the track has [states](crate::track_event::EventType::State).
    pub has_states: bool,
    /// The number of unknown fields, including those of the three descriptors above.
    pub skipped: u32,
}

/// A process: `ProcessDescriptor`.
#[derive(Clone, Debug)]
pub struct ProcessDescriptor<'a> {
    /// The process id.
    pub pid: Option<i32>,
    /// The name that viewers show.
    pub name: Option<&'a str>,
    message: Fields<'a>,
}

/// A thread: `ThreadDescriptor`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadDescriptor<'a> {
    /// The process id.
    pub pid: Option<i32>,
    /// The thread id.
    pub tid: Option<i64>,
    /// The name that viewers show.
    pub name: Option<&'a str>,
    /// The time from which an [`OldTime`](crate::track_event::OldTime) counts, in microseconds.
    pub reference_time_us: Option<i64>,
}

/// A counter: `CounterDescriptor`.
#[derive(Clone, Debug)]
pub struct CounterDescriptor<'a> {
    /// The kind of counter, if it is one that importers know; `None` for one that this crate does not know.
    pub builtin: Option<CounterType>,
    /// The unit of the values; `None` for one that this crate does not know.
    pub unit: Option<Unit>,
    /// The name of the unit.
    pub unit_name: Option<&'a str>,
    /// The factor from a value to the unit.
    pub unit_multiplier: Option<i64>,
    /// Whether each value is the difference to the previous one.
    pub is_incremental: bool,
    /// The key of the scale: counters with the same key share one.
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
        let (mut process_of_chrome, mut thread_of_chrome) = (None, None);
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (track_descriptor::UUID, FieldValue::Varint(v)) => track.uuid = Some(TrackUuid(v)),
                (track_descriptor::PARENT_UUID, FieldValue::Varint(v)) => {
                    track.parent_uuid = Some(TrackUuid(v));
                }
                (
                    track_descriptor::NAME | track_descriptor::STATIC_NAME | track_descriptor::ATRACE_NAME,
                    value @ Bytes { .. },
                ) => track.name = value.text(),
                (track_descriptor::DESCRIPTION, value @ Bytes { .. }) => track.description = value.text(),
                (track_descriptor::CHILD_ORDERING, FieldValue::Varint(v)) => {
                    track.child_ordering = ChildOrdering::from_number(v);
                }
                (track_descriptor::SIBLING_ORDER_RANK, FieldValue::Varint(v)) => track.rank = Some(v as i32),
                (track_descriptor::SIBLING_MERGE_BEHAVIOR, FieldValue::Varint(v)) => {
                    track.merge = SiblingMerge::from_number(v);
                }
                (track_descriptor::SIBLING_MERGE_KEY, value @ Bytes { .. }) => track.merge_key = value.text(),
                (track_descriptor::PROCESS, Bytes { bytes, offset }) => {
                    let process = ProcessDescriptor::decode(&Fields::new(bytes, offset), &mut track.skipped);
                    track.process = Some(process?);
                }
                (track_descriptor::THREAD, Bytes { bytes, offset }) => {
                    let thread = ThreadDescriptor::decode(Fields::new(bytes, offset), &mut track.skipped);
                    track.thread = Some(thread?);
                }
                (track_descriptor::COUNTER, Bytes { bytes, offset }) => {
                    let counter = CounterDescriptor::decode(Fields::new(bytes, offset), &mut track.skipped);
                    track.counter = Some(counter?);
                }
                (track_descriptor::CHROME_PROCESS, Bytes { bytes, offset }) => {
                    process_of_chrome = chrome::process(Fields::new(bytes, offset));
                }
                (track_descriptor::CHROME_THREAD, Bytes { bytes, offset }) => {
                    thread_of_chrome = chrome::thread(Fields::new(bytes, offset));
                }
                (track_descriptor::STATE, Bytes { .. }) => track.has_states = true,
                _ => track.skipped += 1,
            }
        }
        if let Some(process) = &mut track.process {
            process.name =
                process_of_chrome.filter(|_| process.name.is_none_or(str::is_empty)).or(process.name);
        }
        if let Some(thread) = &mut track.thread {
            thread.name = thread_of_chrome.filter(|_| thread.name.is_none_or(str::is_empty)).or(thread.name);
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

    /// Returns the command line: program and arguments.
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
                (thread_descriptor::REFERENCE_TIMESTAMP_US, FieldValue::Varint(v)) => {
                    thread.reference_time_us = Some(v.cast_signed());
                }
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
                (counter_descriptor::CATEGORIES, Bytes { .. }) => {} // read on demand
                _ => *skipped += 1,
            }
        }
        Ok(counter)
    }

    /// Returns the categories.
    #[must_use]
    pub fn categories(&self) -> Texts<'a> {
        Texts::new(self.message.clone(), counter_descriptor::CATEGORIES)
    }
}
