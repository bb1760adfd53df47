//! The state of an FXT writer.

use std::collections::HashMap;
use std::io::Write;

use hairline_formats::fxt::ThreadRef;

use crate::fxt::write::arguments::EncodedArguments;
use crate::fxt::write::flows::Flows;
use crate::fxt::write::lasting::LastingFlows;
use crate::fxt::write::output::Output;
use crate::fxt::write::scheduled::Scheduled;
use crate::fxt::write::strings::Strings;
use crate::fxt::write::threads::Threads;
use crate::fxt::write::tracks::{OutputTrackKind, Tracks};
use crate::nesting::Nesting;
use crate::pids::Pids;
use crate::readings::Readings;
use crate::track_event::stacks::Stacks;
use crate::{FlowStep, Loss, Report, TrackId};

/// Writes FXT.
///
/// ```
/// use hairline_convert::{Event, EventKind, FxtWriter, Item, Track, TrackId, TrackKind, TraceWriter};
///
/// let mut fxt = Vec::new();
/// let mut writer = FxtWriter::new(&mut fxt);
/// let thread = TrackId(0);
/// writer.write(&Item::Track(Track::new(thread, TrackKind::Thread { pid: 7, tid: 8 })))?;
/// writer.write(&Item::Event(Event::new(1_000, thread, EventKind::Instant)))?;
/// writer.finish()?;
/// drop(writer);
/// assert_eq!(fxt[..8], hairline_formats::fxt::MAGIC.to_le_bytes());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct FxtWriter<W> {
    pub(super) output: Output<W>,
    pub(super) strings: Strings,
    pub(super) threads: Threads,
    pub(super) tracks: Tracks,
    pub(super) pids: Pids,
    /// Losses before the first event, which have its time.
    pub(super) early_losses: Vec<Loss>,
    pub(super) flows: Flows,
    pub(super) lasting: LastingFlows,
    pub(super) nesting: Nesting,
    /// Flows that wait for the next slice of each thread.
    pub(super) waiting: HashMap<TrackId, Vec<WaitingFlow>>,
    pub(super) args: EncodedArguments,
    /// Several categories as one text.
    pub(super) joined: String,
    /// The packets of the next blob.
    pub(super) packets: Vec<u8>,
    /// The tracks to describe in the next blob.
    pub(super) branch: Vec<TrackId>,
    /// The current provider; 0 before the first.
    pub(super) provider: u32,
    pub(super) provider_name: String,
    /// The time of the latest event; `None` before the first.
    pub(super) last_time: Option<u64>,
    pub(super) readings: Readings,
    pub(super) scheduled: Scheduled,
    pub(super) stacks: Stacks,
    pub(super) report: Report,
}

#[derive(Debug)]
pub(super) struct WaitingFlow {
    pub(super) id: u64,
    pub(super) step: FlowStep,
    pub(super) lasts: bool,
    pub(super) time: i64,
}

/// The limit for waiting flows of a thread.
pub(super) const MAX_WAITING: usize = 1 << 10;

impl<W: Write> FxtWriter<W> {
    /// Creates a writer. `output` needs no buffer.
    pub fn new(output: W) -> Self {
        Self {
            output: Output::new(output),
            strings: Strings::default(),
            threads: Threads::default(),
            tracks: Tracks::default(),
            pids: Pids::default(),
            early_losses: Vec::new(),
            flows: Flows::default(),
            lasting: LastingFlows::default(),
            nesting: Nesting::default(),
            waiting: HashMap::new(),
            args: EncodedArguments::default(),
            joined: String::new(),
            packets: Vec::new(),
            branch: Vec::new(),
            provider: 0,
            provider_name: String::new(),
            last_time: None,
            readings: Readings::default(),
            scheduled: Scheduled::default(),
            stacks: Stacks::default(),
            report: Report::default(),
        }
    }

    /// The reference to a thread. Without a thread, the reference is to thread 0 of process 0.
    pub(super) fn thread_ref(&mut self, track: Option<TrackId>) -> ThreadRef {
        track
            .and_then(|id| self.threads.reference(id, &mut self.tracks, &mut self.output.bytes))
            .unwrap_or(ThreadRef::Inline { process: 0, thread: 0 })
    }

    /// The reference to any thread of the process above a track. Without such a process, any thread.
    pub(super) fn thread_ref_above(&mut self, track: TrackId) -> ThreadRef {
        let process = self.tracks.get(track).and_then(|kept| kept.track.parent).or(self.tracks.any_process);
        match process.and_then(|id| self.tracks.get(id)).map(|parent| &parent.kind) {
            Some(&OutputTrackKind::Process { pid, any_thread: None }) => {
                ThreadRef::Inline { process: pid, thread: pid }
            }
            Some(&OutputTrackKind::Process { any_thread, .. }) => self.thread_ref(any_thread),
            _ => self.thread_ref(self.tracks.any_thread),
        }
    }
}
