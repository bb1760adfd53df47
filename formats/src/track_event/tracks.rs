//! Writes the packets that tell of tracks: where events lie, and what they are shown under.
//!
//! ```text
//! process 70 "app"                  <- tracks have a parent, which must be described too
//!  |- thread 71 "main"
//!  |- counter 72 "in flight", bytes
//!  `- custom 73 "requests"         <- or no parent: a tree of its own
//! ```

use crate::proto::{put_message, put_sint64, put_str, put_uint};
use crate::track_event::fields::{
    ChildOrdering, CounterType, SiblingMerge, Unit, counter_descriptor as counter_fields,
    process_descriptor as process_fields, thread_descriptor as thread_fields, trace_packet as packet_fields,
    track_descriptor as track_fields,
};
use crate::track_event::sequence::packet;

/// A process, as a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessTrack<'a> {
    /// The track's number, unique in all traces that are looked at together.
    pub uuid: u64,
    /// The process id.
    pub pid: i32,
    /// What to show.
    pub name: &'a str,
    /// Program and arguments.
    pub cmdline: &'a [&'a str],
}

/// A thread, as a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTrack<'a> {
    /// The track's number, as in [`ProcessTrack`].
    pub uuid: u64,
    /// The process's track. It must be described too: importers refuse the events of a track whose parent they never hear of.
    pub parent_uuid: u64,
    /// The process id.
    pub pid: i32,
    /// The thread id.
    pub tid: i64,
    /// What to show.
    pub name: &'a str,
}

/// A counter, as a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterTrack<'a> {
    /// The track's number, as in [`ProcessTrack`].
    pub uuid: u64,
    /// The track that it belongs to, a process's or a thread's; as in [`ThreadTrack`].
    pub parent_uuid: u64,
    /// What to show; "" leaves it to what it is, if importers know that.
    pub name: &'a str,
    /// What its numbers count.
    pub unit: Unit,
    /// The same in a word, where [`Unit`] has none for it.
    pub unit_name: Option<&'a str>,
    /// What a number is to be multiplied with to be in that unit; 1 says nothing.
    pub multiplier: i64,
    /// Whether each value is the difference to the one before on its sequence.
    pub is_incremental: bool,
    /// What it is, if it is one that importers know.
    pub builtin: CounterType,
    /// Groups of counters that are switched on together, as an event's categories.
    pub categories: &'a [&'a str],
    /// Counters with the same key share one scale; "" shares it with none.
    pub y_axis_share_key: &'a str,
}

impl<'a> CounterTrack<'a> {
    /// A counter of bare numbers.
    #[must_use]
    pub const fn new(uuid: u64, parent_uuid: u64, name: &'a str) -> Self {
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

/// Any other track: a place for slices and counters with a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CustomTrack<'a> {
    /// The track's number, as in [`ProcessTrack`].
    pub uuid: u64,
    /// The track that it belongs to, as in [`ThreadTrack`]; None makes it the root of a tree of its own.
    pub parent_uuid: Option<u64>,
    /// What to show; "" leaves it to the names of its events.
    pub name: &'a str,
    /// What it is about, in a sentence or two.
    pub description: &'a str,
    /// How the tracks below it are shown.
    pub child_ordering: ChildOrdering,
    /// Its place among its siblings, the smallest first, where its parent's order is [`ChildOrdering::Explicit`].
    pub rank: i32,
    /// Which of its siblings are shown in one row with it.
    pub merge: SiblingMerge,
    /// What those have in common with it, with [`SiblingMerge::ByKey`].
    pub merge_key: &'a str,
}

/// Tells of a process.
pub fn process_descriptor(out: &mut Vec<u8>, sequence: u32, track: &ProcessTrack<'_>) {
    descriptor(out, sequence, track.uuid, |d| {
        put_message(d, track_fields::PROCESS, |p| {
            put_sint64(p, process_fields::PID, i64::from(track.pid));
            track.cmdline.iter().for_each(|part| put_str(p, process_fields::CMDLINE, part));
            put_str(p, process_fields::PROCESS_NAME, track.name);
        });
    });
}

/// Tells of a thread.
pub fn thread_descriptor(out: &mut Vec<u8>, sequence: u32, track: &ThreadTrack<'_>) {
    descriptor(out, sequence, track.uuid, |d| {
        put_uint(d, track_fields::PARENT_UUID, track.parent_uuid);
        put_message(d, track_fields::THREAD, |t| {
            put_sint64(t, thread_fields::PID, i64::from(track.pid));
            put_sint64(t, thread_fields::TID, track.tid);
            put_str(t, thread_fields::THREAD_NAME, track.name);
        });
    });
}

/// Tells of a counter.
pub fn counter_descriptor(out: &mut Vec<u8>, sequence: u32, track: &CounterTrack<'_>) {
    descriptor(out, sequence, track.uuid, |d| {
        put_uint(d, track_fields::PARENT_UUID, track.parent_uuid);
        if !track.name.is_empty() {
            put_str(d, track_fields::NAME, track.name);
        }
        put_message(d, track_fields::COUNTER, |c| {
            if track.builtin != CounterType::Unspecified {
                put_uint(c, counter_fields::TYPE, track.builtin as u64);
            }
            track.categories.iter().for_each(|category| put_str(c, counter_fields::CATEGORIES, category));
            if track.unit != Unit::Unspecified {
                put_uint(c, counter_fields::UNIT, track.unit as u64);
            }
            if track.multiplier != 1 {
                put_sint64(c, counter_fields::UNIT_MULTIPLIER, track.multiplier);
            }
            if track.is_incremental {
                put_uint(c, counter_fields::IS_INCREMENTAL, 1);
            }
            if let Some(name) = track.unit_name {
                put_str(c, counter_fields::UNIT_NAME, name);
            }
            if !track.y_axis_share_key.is_empty() {
                put_str(c, counter_fields::Y_AXIS_SHARE_KEY, track.y_axis_share_key);
            }
        });
    });
}

/// Tells of any other track.
pub fn custom_descriptor(out: &mut Vec<u8>, sequence: u32, track: &CustomTrack<'_>) {
    descriptor(out, sequence, track.uuid, |d| {
        if let Some(parent) = track.parent_uuid {
            put_uint(d, track_fields::PARENT_UUID, parent);
        }
        if !track.name.is_empty() {
            put_str(d, track_fields::NAME, track.name);
        }
        if track.child_ordering != ChildOrdering::Unspecified {
            put_uint(d, track_fields::CHILD_ORDERING, track.child_ordering as u64);
        }
        if track.rank != 0 {
            put_sint64(d, track_fields::SIBLING_ORDER_RANK, i64::from(track.rank));
        }
        if !track.description.is_empty() {
            put_str(d, track_fields::DESCRIPTION, track.description);
        }
        if track.merge != SiblingMerge::Unspecified {
            put_uint(d, track_fields::SIBLING_MERGE_BEHAVIOR, track.merge as u64);
        }
        if !track.merge_key.is_empty() {
            put_str(d, track_fields::SIBLING_MERGE_KEY, track.merge_key);
        }
    });
}

fn descriptor(out: &mut Vec<u8>, sequence: u32, uuid: u64, write: impl FnOnce(&mut Vec<u8>)) {
    packet(out, sequence, |p| {
        put_message(p, packet_fields::TRACK_DESCRIPTOR, |d| {
            put_uint(d, track_fields::UUID, uuid);
            write(d);
        });
    });
}
