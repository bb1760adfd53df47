//! Process ids that an output cannot have. In some formats a process is nothing but its id, but two processes
//! may have one id: in two containers, on two machines, or because the system gave it again. Begins and ends
//! of both would pair with each other.

use std::collections::HashMap;

use crate::{Report, Track, TrackId, TrackKind};

/// What reports say of such processes.
pub(crate) const SHARED_PID: &str = "processes with the id of another process, renumbered";

/// What reports say of processes with the id 0.
const IDLE: &str = "processes 0, renumbered, because importers take their thread 0 for the idle one";

/// The first made id. It is larger than any kernel's id, and importers read it as a signed number of 32 bits.
const FIRST: u64 = 3 << 29;

/// The process of each id.
#[derive(Debug, Default)]
pub(crate) struct Pids {
    owners: HashMap<u64, TrackId>,
    /// The made ids, and the number of ids from the first one on that are taken.
    made: HashMap<TrackId, u64>,
    taken: u64,
}

impl Pids {
    /// Returns the description of a process or thread with the made id of its process; `None` if it has none.
    pub(crate) fn renumbered(&mut self, track: &Track, report: &mut Report) -> Option<Track> {
        if let TrackKind::Process { pid, .. } = track.kind
            && !self.made.contains_key(&track.id)
            && *self.owners.entry(pid).or_insert(track.id) != track.id
        {
            report.add(SHARED_PID);
            self.make(track.id);
        }
        self.with_made(track)
    }

    /// As [`renumbered`](Self::renumbered), for a format in which only process 0 is another one: importers of
    /// packets take it for the idle task, and its thread 0 for the thread "swapper". In traces of PyTorch it
    /// is the first GPU.
    pub(crate) fn not_idle(&mut self, track: &Track, report: &mut Report) -> Option<Track> {
        if let TrackKind::Process { pid, .. } = track.kind
            && !self.made.contains_key(&track.id)
        {
            self.owners.entry(pid).or_insert(track.id);
            if pid == 0 {
                report.add(IDLE);
                self.make(track.id);
            }
        }
        self.with_made(track)
    }

    /// The description with the made id of its process.
    fn with_made(&self, track: &Track) -> Option<Track> {
        let kind = match &track.kind {
            TrackKind::Process { command_line, parent, .. } => TrackKind::Process {
                pid: *self.made.get(&track.id)?,
                command_line: command_line.clone(),
                parent: *parent,
            },
            &TrackKind::Thread { tid, .. } => TrackKind::Thread { pid: *self.made.get(&track.parent?)?, tid },
            _ => return None,
        };
        Some(Track { kind, ..track.clone() })
    }

    fn make(&mut self, track: TrackId) {
        while self.owners.contains_key(&(FIRST + self.taken)) {
            self.taken += 1;
        }
        let free = FIRST + self.taken;
        self.owners.insert(free, track);
        self.made.insert(track, free);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid_of(track: &Track) -> u64 {
        match track.kind {
            TrackKind::Process { pid, .. } | TrackKind::Thread { pid, .. } => pid,
            _ => 0,
        }
    }

    #[test]
    fn the_second_process_of_an_id_and_its_threads_have_another_one() {
        let (mut pids, mut report) = (Pids::default(), Report::default());
        let mut shown = |track: &Track| {
            pids.renumbered(track, &mut report).map_or_else(|| pid_of(track), |made| pid_of(&made))
        };
        let process = |id, pid| Track::new(TrackId(id), TrackKind::process(pid));
        let thread = |id, parent| Track {
            parent: Some(TrackId(parent)),
            ..Track::new(TrackId(id), TrackKind::Thread { pid: 1, tid: 7 })
        };
        let tracks = [process(0, 1), thread(1, 0), process(2, 1), thread(3, 2), process(0, 1), process(2, 1)];
        assert_eq!(tracks.each_ref().map(&mut shown), [1, 1, FIRST, FIRST, 1, FIRST]);
        // A process that really has the made id.
        assert_eq!([process(4, FIRST), process(5, 9)].each_ref().map(&mut shown), [FIRST + 1, 9]);
        assert_eq!(report.iter().collect::<Vec<_>>(), [(SHARED_PID, 2)]);
    }
}
