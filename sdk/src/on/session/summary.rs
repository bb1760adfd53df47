//! The report of a session: its summary, its losses, and the tail of its trace.

use std::io;

use hairline_formats::OUT_OF_ORDER;
use hairline_shm::{Backing, LOSS_REASONS, LossReason};

use crate::on::base::clock;
use crate::on::base::platform::process;
use crate::on::encode::stream;
use crate::on::encode::tail::{BeforeTail, Tail};
use crate::on::session::end::End;
use crate::on::session::shared::Shared;
use crate::summary::{Lost, Summary};

impl Shared {
    /// Returns the summary of the session, or of a snapshot with the results `end`.
    pub(crate) fn summary(&self, end: &End) -> Summary {
        let own_path = || self.settings.path.clone().filter(|_| self.recorder().is_none());
        Summary {
            records: end.records,
            bytes: end.bytes,
            lost: self.lost(),
            out_of_order: self.out_of_order(),
            threads: self.threads.summaries(end),
            duration: end.duration,
            path: end.path.clone().or_else(own_path),
            notes: self.notes().into_iter().chain(end.notes.iter().cloned()).collect(),
        }
    }

    /// Returns the tail of the trace.
    pub(crate) fn tail(&self, before: BeforeTail) -> Vec<u8> {
        let region = self.region();
        let tail = Tail {
            pid: process::id(),
            process_track: process::track_uuid(),
            thread: process::Thread::current(),
            now: self.now(),
            lost: self.lost(),
            ring: u64::from(region.chunk_count()) * u64::from(region.chunk_size()),
            before,
            refused: self.refused(),
        };
        stream::tail(self.format(), &tail)
    }

    /// Returns what the session was to record, and the system refused, with the sentence that says why.
    fn refused(&self) -> Vec<(&'static str, String)> {
        let all = [
            ("thread states", self.scheduling_note.get()),
            ("hardware counters", self.hardware_note.get()),
            ("stack samples", self.no_samples.get()),
        ];
        all.into_iter().filter_map(|(what, why)| Some((what, why?.clone()))).collect()
    }

    /// Returns the last record of the trace.
    pub(crate) fn session_end(&self) -> Vec<u8> {
        stream::session_end(self.format(), process::id(), clock::boottime())
    }

    /// Returns the last record of a trace that no later run replaces: a window, or one that its output has cut.
    pub(crate) fn kept_end(&self) -> Vec<u8> {
        stream::session_end(self.format(), 0, clock::boottime())
    }

    fn lost(&self) -> Lost {
        let [buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged, kernel_ring] =
            LOSS_REASONS.map(|reason| self.lost_for(reason));
        Lost { buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged, kernel_ring }
    }

    pub(crate) fn lost_for(&self, reason: LossReason) -> u64 {
        // Saturating, because other processes can change the region's counters.
        self.region().lost(reason).saturating_add(self.stray_before.since(reason))
    }

    /// Returns the note about slices that ended out of order, if there are any.
    pub(crate) fn order_note(&self) -> Option<String> {
        let ended = self.out_of_order();
        let what = if ended == 1 { "1 scope ended".to_owned() } else { format!("{ended} scopes ended") };
        (ended > 0).then(|| {
            format!(
                "{what} while a later scope of the thread was open: the durations of both are wrong, or the \
                 later one is in two parts; is a scope held across an `.await`? The ends have the argument \
                 {OUT_OF_ORDER}"
            )
        })
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.filter_notes().to_vec();
        notes.extend(self.scheduling_note.get().cloned());
        notes.extend(self.hardware_note.get().cloned());
        notes.extend(self.no_samples.get().cloned());
        notes.extend(self.sampling_notes.get().into_iter().flatten().cloned());
        notes.extend(self.stacks_note.get().cloned());
        notes.extend(self.heap_note.get().cloned());
        notes.extend(self.tasks_note.get().map(|note| (*note).to_owned()));
        notes.extend_from_slice(&self.settings.without_effect);
        if matches!(self.region().backing(), Backing::Memfd | Backing::Heap) {
            let why = match self.region().no_file() {
                None => "the program has more rights than its caller, so the ring has no file".to_owned(),
                Some((_, e)) if e.kind() == io::ErrorKind::StorageFull => "no room in /dev/shm".to_owned(),
                Some((what, e)) => format!("the ring has no file, since the system refused {what}: {e}"),
            };
            notes.push(format!("{why}: if the process is killed, the content of the ring is lost"));
        }
        notes.extend(self.order_note());
        let denied = self.region().chunks_denied();
        if denied > 0 {
            let chunks = self.region().chunk_count();
            notes.push(format!(
                "the system had no memory for {denied} of the ring's {chunks} chunks; /dev/shm may be full"
            ));
        }
        let kept = self.chunks_for_ends.most_while_full();
        if kept > 0 {
            let chunks = self.region().chunk_count();
            notes.push(format!(
                "the ring was full while {kept} of its {chunks} chunks were kept for the ends of open \
                 scopes; a scope that was forgotten (mem::forget) has never ended, and keeps its room until \
                 its thread ends"
            ));
        }
        notes
    }
}
