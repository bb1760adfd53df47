//! The packets that describe a track.

use hairline_formats::track_event::{
    self as te, CustomTrack, Process, ProcessTrack, SequenceId, ThreadTrack, TrackUuid,
};

use crate::{Track, TrackKind};

/// Writes the description of a track on a packet sequence. `categories` are those of a counter. `time` is
/// that of a process's command line.
// Ids beyond 32 bits are cut, which the callers count.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
pub(crate) fn describe(
    out: &mut Vec<u8>,
    sequence: SequenceId,
    track: &Track,
    (uuid, parent_uuid): (TrackUuid, Option<TrackUuid>),
    categories: &[&str],
    time: u64,
) {
    let name = &*track.name;
    let parent = parent_uuid.unwrap_or_default();
    match &track.kind {
        TrackKind::Process { pid, command_line, parent } => {
            let mut cmdline: Vec<_> = command_line.iter().map(String::as_str).collect();
            let pid = *pid as i32;
            te::process_descriptor(out, sequence, &ProcessTrack { uuid, pid, name, cmdline: &cmdline });
            // Importers take the command line from the process tree, and its first word as the name.
            if let (Some(first), Some(parent)) = (cmdline.first_mut(), *parent) {
                *first = if name.is_empty() { *first } else { name };
                let parent = (parent != 0).then_some(parent as i32);
                let process = Process { pid, parent, command_line: &cmdline };
                te::process_tree(out, sequence, time, &process);
            }
        }
        TrackKind::Thread { pid, tid } => {
            let (pid, tid) = (*pid as i32, tid.cast_signed());
            let thread = ThreadTrack { uuid, parent_uuid: parent, pid, tid, name };
            te::thread_descriptor(out, sequence, &thread);
        }
        TrackKind::Counter(of) => {
            let counter = te::CounterTrack {
                unit: of.unit,
                unit_name: (!of.unit_name.is_empty()).then_some(&of.unit_name),
                multiplier: of.multiplier,
                builtin: of.builtin,
                categories,
                y_axis_share_key: &of.y_axis_share_key,
                ..te::CounterTrack::new(uuid, parent, name)
            };
            te::counter_descriptor(out, sequence, &counter);
        }
        TrackKind::Slices | TrackKind::States | TrackKind::Async { .. } => {
            let custom = CustomTrack {
                uuid,
                parent_uuid,
                name,
                description: &track.description,
                child_ordering: track.child_ordering,
                rank: track.rank.unwrap_or(0),
                merge: track.merge,
                merge_key: &track.merge_key,
                has_states: track.kind == TrackKind::States,
            };
            te::custom_descriptor(out, sequence, &custom);
        }
    }
}
