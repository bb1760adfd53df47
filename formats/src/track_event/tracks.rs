//! Writes track descriptors.
//!
//! ```text
//! process 70 "app"                  <- a parent needs a descriptor of its own
//!  |- thread 71 "main"
//!  |- counter 72 "in flight", bytes
//!  `- custom 73 "requests"         <- without a parent: the root of another tree
//! ```

use crate::proto::{
    Growing, put_message, put_nonempty, put_nonzero, put_sint64, put_some, put_str, put_uint,
};
use crate::track_event::fields::{
    ChildOrdering, CounterType, SiblingMerge, Unit, counter_descriptor as counter_fields,
    process_descriptor as process_fields, thread_descriptor as thread_fields, trace_packet as packet_fields,
    track_descriptor as track_fields,
};
use crate::track_event::ids::{SequenceId, TrackUuid};
use crate::track_event::sequence::packet;

/// The track of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessTrack<'a> {
    /// The track's uuid, unique in all traces that are viewed together.
    pub uuid: TrackUuid,
    /// The process id.
    pub pid: i32,
    /// The name that viewers show.
    pub name: &'a str,
    /// The command line: program and arguments.
    pub cmdline: &'a [&'a str],
}

/// The track of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTrack<'a> {
    /// The track's uuid, as in [`ProcessTrack`].
    pub uuid: TrackUuid,
    /// The process's track. Describe it too: importers refuse the events of a track whose parent has no
    /// descriptor.
    pub parent_uuid: TrackUuid,
    /// The process id.
    pub pid: i32,
    /// The thread id.
    pub tid: i64,
    /// The name that viewers show.
    pub name: &'a str,
}

/// The track of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterTrack<'a> {
    /// The track's uuid, as in [`ProcessTrack`].
    pub uuid: TrackUuid,
    /// The track of the process or thread to which the counter belongs. As in [`ThreadTrack`], describe it
    /// too.
    pub parent_uuid: TrackUuid,
    /// The name that viewers show. "" leaves the name of a `builtin` counter to the importer.
    pub name: &'a str,
    /// The unit of the values.
    pub unit: Unit,
    /// The name of a unit that [`Unit`] does not have.
    pub unit_name: Option<&'a str>,
    /// The factor from a value to the unit. 1 is not written.
    pub multiplier: i64,
    /// Whether each value is the difference to the previous one on its sequence.
    pub is_incremental: bool,
    /// The kind of counter, if it is one that importers know.
    pub builtin: CounterType,
    /// The categories: counters of a category are enabled together, like events.
    pub categories: &'a [&'a str],
    /// The key of the scale: counters with the same key share one. "" shares with none.
    pub y_axis_share_key: &'a str,
}

impl<'a> CounterTrack<'a> {
    /// Creates a counter of bare numbers.
    #[must_use]
    pub const fn new(uuid: TrackUuid, parent_uuid: TrackUuid, name: &'a str) -> Self {
        Self {
            uuid,
            parent_uuid,
            name,
            unit: Unit::Unspecified,
            unit_name: None,
            multiplier: 1,
            is_incremental: false,
            builtin: CounterType::Unspecified,
            categories: &[],
            y_axis_share_key: "",
        }
    }
}

/// A track with a name of its own, for slices, counters or states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CustomTrack<'a> {
    /// The track's uuid, as in [`ProcessTrack`].
    pub uuid: TrackUuid,
    /// The parent track, to be described too as in [`ThreadTrack`]. `None` makes the track the root of a
    /// tree.
    pub parent_uuid: Option<TrackUuid>,
    /// The name that viewers show. If it is "", they show the names of its events.
    pub name: &'a str,
    /// A description in a sentence or two.
    pub description: &'a str,
    /// The order in which its child tracks are shown.
    pub child_ordering: ChildOrdering,
    /// The rank among its siblings, the smallest first, if the parent orders them
    /// [`ChildOrdering::Explicit`].
    pub rank: i32,
    /// The siblings that are shown in one row with it.
    pub merge: SiblingMerge,
    /// The common key of those siblings, for [`SiblingMerge::ByKey`].
    pub merge_key: &'a str,
    /// Whether its events are [states](crate::track_event::EventType::State).
    pub has_states: bool,
}

/// Writes the descriptor of a process's track.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     PacketData, PacketReader, ProcessTrack, SequenceId, TrackUuid, process_descriptor,
/// };
///
/// let mut trace = Vec::new();
/// let cmdline = &["server", "--port=80"];
/// let process = ProcessTrack { uuid: TrackUuid(1), pid: 70, name: "server", cmdline };
/// process_descriptor(&mut trace, SequenceId(1), &process);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Track(track)) = packet.data else { panic!() };
/// let process = track.process.unwrap();
/// assert_eq!((track.uuid, process.pid, process.name), (Some(TrackUuid(1)), Some(70), Some("server")));
/// assert_eq!(process.cmdline().collect::<Result<Vec<_>, _>>()?, cmdline);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn process_descriptor(out: &mut impl Growing, sequence: SequenceId, track: &ProcessTrack<'_>) {
    descriptor(out, sequence, track.uuid, |d| {
        put_message(d, track_fields::PROCESS, |p| {
            put_sint64(p, process_fields::PID, i64::from(track.pid));
            track.cmdline.iter().for_each(|part| put_str(p, process_fields::CMDLINE, part));
            put_str(p, process_fields::PROCESS_NAME, track.name);
        });
    });
}

/// Writes the descriptor of a thread's track.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     PacketData, PacketReader, ProcessTrack, SequenceId, ThreadTrack, TrackUuid, process_descriptor,
///     thread_descriptor,
/// };
///
/// let mut trace = Vec::new();
/// let process = ProcessTrack { uuid: TrackUuid(1), pid: 70, name: "server", cmdline: &[] };
/// process_descriptor(&mut trace, SequenceId(1), &process); // the parent first
/// let (uuid, parent_uuid) = (TrackUuid(2), process.uuid);
/// let thread = ThreadTrack { uuid, parent_uuid, pid: 70, tid: 71, name: "main" };
/// thread_descriptor(&mut trace, SequenceId(1), &thread);
///
/// let mut reader = PacketReader::new(&trace[..]);
/// reader.next()?; // the process
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Track(track)) = packet.data else { panic!() };
/// assert_eq!((track.parent_uuid, track.thread.unwrap().tid), (Some(process.uuid), Some(71)));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn thread_descriptor(out: &mut impl Growing, sequence: SequenceId, track: &ThreadTrack<'_>) {
    descriptor(out, sequence, track.uuid, |d| {
        put_uint(d, track_fields::PARENT_UUID, track.parent_uuid.0);
        put_message(d, track_fields::THREAD, |t| {
            put_sint64(t, thread_fields::PID, i64::from(track.pid));
            put_sint64(t, thread_fields::TID, track.tid);
            put_str(t, thread_fields::THREAD_NAME, track.name);
        });
    });
}

/// Writes the descriptor of a counter's track.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     CounterTrack, PacketData, PacketReader, SequenceId, TrackUuid, Unit, counter_descriptor,
/// };
///
/// let mut trace = Vec::new();
/// counter_descriptor(&mut trace, SequenceId(1), &CounterTrack {
///     unit: Unit::SizeBytes,
///     multiplier: 1024, // the values are KiB
///     categories: &["net"],
///     ..CounterTrack::new(TrackUuid(3), TrackUuid(1), "in flight")
/// });
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Track(track)) = packet.data else { panic!() };
/// let counter = track.counter.unwrap();
/// assert_eq!((counter.unit, counter.unit_multiplier), (Some(Unit::SizeBytes), Some(1024)));
/// assert_eq!(counter.categories().next().unwrap()?, "net");
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn counter_descriptor(out: &mut impl Growing, sequence: SequenceId, track: &CounterTrack<'_>) {
    descriptor(out, sequence, track.uuid, |d| {
        put_uint(d, track_fields::PARENT_UUID, track.parent_uuid.0);
        put_nonempty(d, track_fields::NAME, track.name);
        put_message(d, track_fields::COUNTER, |c| {
            put_nonzero(c, counter_fields::TYPE, track.builtin as u64);
            track.categories.iter().for_each(|category| put_str(c, counter_fields::CATEGORIES, category));
            put_nonzero(c, counter_fields::UNIT, track.unit as u64);
            if track.multiplier != 1 {
                put_sint64(c, counter_fields::UNIT_MULTIPLIER, track.multiplier);
            }
            put_nonzero(c, counter_fields::IS_INCREMENTAL, u64::from(track.is_incremental));
            if let Some(name) = track.unit_name {
                put_str(c, counter_fields::UNIT_NAME, name);
            }
            put_nonempty(c, counter_fields::Y_AXIS_SHARE_KEY, track.y_axis_share_key);
        });
    });
}

/// Writes the descriptor of a track with a name of its own.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     ChildOrdering, CustomTrack, PacketData, PacketReader, SequenceId, TrackUuid, custom_descriptor,
/// };
///
/// let mut trace = Vec::new();
/// let requests = CustomTrack {
///     uuid: TrackUuid(4),
///     name: "requests",
///     child_ordering: ChildOrdering::Explicit,
///     ..CustomTrack::default()
/// };
/// custom_descriptor(&mut trace, SequenceId(1), &requests); // the root of a tree
/// let parent_uuid = Some(requests.uuid);
/// for (uuid, name, rank) in [(TrackUuid(5), "slow", 1), (TrackUuid(6), "fast", 2)] {
///     let track = CustomTrack { uuid, parent_uuid, name, rank, ..requests };
///     custom_descriptor(&mut trace, SequenceId(1), &track);
/// }
///
/// let (mut reader, mut ranks) = (PacketReader::new(&trace[..]), Vec::new());
/// while let Some((_, packet)) = reader.next()? {
///     let Some(PacketData::Track(track)) = packet.data else { panic!() };
///     ranks.push(track.rank);
/// }
/// assert_eq!(ranks, [None, Some(1), Some(2)]);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn custom_descriptor(out: &mut impl Growing, sequence: SequenceId, track: &CustomTrack<'_>) {
    descriptor(out, sequence, track.uuid, |d| {
        put_some(d, track_fields::PARENT_UUID, track.parent_uuid.map(|uuid| uuid.0));
        put_nonempty(d, track_fields::NAME, track.name);
        put_nonzero(d, track_fields::CHILD_ORDERING, track.child_ordering as u64);
        put_nonzero(d, track_fields::SIBLING_ORDER_RANK, i64::from(track.rank).cast_unsigned());
        put_nonempty(d, track_fields::DESCRIPTION, track.description);
        put_nonzero(d, track_fields::SIBLING_MERGE_BEHAVIOR, track.merge as u64);
        put_nonempty(d, track_fields::SIBLING_MERGE_KEY, track.merge_key);
        if track.has_states {
            put_message(d, track_fields::STATE, |_| {});
        }
    });
}

fn descriptor<O: Growing>(out: &mut O, sequence: SequenceId, uuid: TrackUuid, write: impl FnOnce(&mut O)) {
    packet(out, sequence, |p| {
        put_message(p, packet_fields::TRACK_DESCRIPTOR, |d| {
            put_uint(d, track_fields::UUID, uuid.0);
            write(d);
        });
    });
}
