//! The states of threads, as packets that importers take for the scheduler's.

use hairline_formats::track_event as te;

use crate::on::encode::OWN_SEQUENCE;
use crate::on::encode::scheduling::{Scheduling, shown};

/// Writes names and states.
///
/// The names are in a process tree: a thread that records has a track with a name, which importers show
/// before it, whatever comes first. A second track of the thread would make a second thread of it.
pub(crate) fn put(out: &mut Vec<u8>, of: &Scheduling<'_>) {
    if !of.names.is_empty() {
        let threads: Vec<te::Thread<'_>> = of
            .names
            .iter()
            .map(|named| te::Thread {
                tid: named.task.tid.cast_signed(),
                pid: named.task.pid.cast_signed(),
                name: shown(named),
            })
            .collect();
        te::process_threads(out, OWN_SEQUENCE, of.time, &threads);
    }
    of.sides().for_each(|side| side.put_packet(out, OWN_SEQUENCE));
}
