//! The state that the threads of a session share: the threads that record, the drain thread or recorder
//! thread, and the threads that make requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hairline_formats::track_event::SequenceId;
use hairline_shm::{ChunkInfo, LossReason, Region, Uncancelled};

use crate::builder::{Config, Detail};
use crate::error::Error;
use crate::on::base::clock::{Clock, Published};
use crate::on::base::lock::Mutex;
use crate::on::base::platform::process;
use crate::on::callsite::Epoch;
use crate::on::event::Event;
use crate::on::event::track::own_uuid;
use crate::on::session::chunks_for_ends::ChunksForEnds;
use crate::on::session::drain_handle::{DrainHandle, Waiting};
use crate::on::session::ended_sequences::EndedSequences;
use crate::on::session::flight_recorder::FlightRecorder;
use crate::on::session::hardware::Counters;
use crate::on::session::heap_profile::Profiling;
use crate::on::session::late_ends::LateEnds;
use crate::on::session::requests::Requests;
use crate::on::session::sampling::{SampledThreads, Sampling};
use crate::on::session::scheduling::{Keep, Scheduling, Traced};
use crate::on::session::settings::Settings;
use crate::on::session::slot::Slot;
use crate::on::session::stray::StrayBefore;
use crate::on::session::thread_list::{Place, ThreadList};
use crate::options::Format;

/// The state that the threads of a session share.
#[derive(Debug)]
pub(crate) struct Shared {
    epoch: Epoch,
    /// The process that has started the session.
    pid: u32,
    started: Instant,
    region: Arc<Region>,
    clock: Published,
    pub(crate) settings: Settings,
    /// In a session that overwrites.
    recorder: Option<FlightRecorder>,
    pub(crate) drain: DrainHandle,
    pub(crate) requests: Requests,
    pub(crate) late_ends: LateEnds,
    pub(crate) ended_sequences: EndedSequences,
    pub(crate) threads: ThreadList,
    pub(crate) chunks_for_ends: ChunksForEnds,
    pub(crate) stray_before: StrayBefore,
    /// The context switches of the threads.
    pub(crate) scheduling: Slot<Scheduling>,
    /// Why the session records none, though its settings ask for them.
    pub(crate) scheduling_note: OnceLock<String>,
    /// The hardware's counters of the process.
    pub(crate) hardware: Slot<Counters>,
    /// Why there are none, though the settings name them.
    pub(crate) hardware_note: OnceLock<String>,
    /// The samples of the threads.
    pub(crate) sampling: Slot<Sampling>,
    /// Why the session records none, though its settings ask for them.
    pub(crate) no_samples: OnceLock<String>,
    pub(crate) sampling_notes: OnceLock<Vec<String>>,
    /// What the stacks lack.
    pub(crate) stacks_note: OnceLock<String>,
    /// The threads that are sampled by the clock.
    pub(crate) sampled_threads: OnceLock<SampledThreads>,
    /// The heap profile.
    pub(crate) heap_profile: Slot<Profiling>,
    /// Why the session has none, though its settings ask for one, or what its profile lacks.
    pub(crate) heap_note: OnceLock<String>,
    /// Which tasks of a runtime are not recorded.
    pub(crate) tasks_note: OnceLock<&'static str>,
    /// Slices that ended out of order.
    out_of_order: AtomicU64,
    /// Remarks on the filter, from the end of the recording on.
    pub(crate) filter_notes: Mutex<Option<Arc<[String]>>>,
    /// The settings of a forked child's own session.
    child_config: Mutex<Option<Box<Config>>>,
}

impl Shared {
    pub(crate) fn new(
        format: Format,
        settings: Settings,
        region: Arc<Region>,
        clock: &Clock,
        child_config: Option<Box<Config>>,
    ) -> Self {
        Self {
            epoch: Epoch::next(format),
            pid: process::id(),
            started: Instant::now(),
            clock: Published::new(clock),
            settings,
            recorder: region.overwrites().then(|| FlightRecorder::new(&region)),
            drain: DrainHandle::default(),
            requests: Requests::new(),
            late_ends: LateEnds::new(&region),
            ended_sequences: EndedSequences::default(),
            threads: ThreadList::default(),
            chunks_for_ends: ChunksForEnds::default(),
            stray_before: StrayBefore::now(),
            scheduling: Slot::default(),
            scheduling_note: OnceLock::new(),
            hardware: Slot::default(),
            hardware_note: OnceLock::new(),
            sampling: Slot::default(),
            no_samples: OnceLock::new(),
            sampling_notes: OnceLock::new(),
            stacks_note: OnceLock::new(),
            sampled_threads: OnceLock::new(),
            heap_profile: Slot::default(),
            heap_note: OnceLock::new(),
            tasks_note: OnceLock::new(),
            out_of_order: AtomicU64::new(0),
            filter_notes: Mutex::default(),
            child_config: Mutex::new(child_config),
            region,
        }
    }

    /// Counts a slice that ended while a slice inside of it was open.
    pub(crate) fn count_out_of_order(&self) {
        self.out_of_order.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn out_of_order(&self) -> u64 {
        self.out_of_order.load(Ordering::Relaxed)
    }

    /// Starts the session's own thread.
    pub(crate) fn spawn(self: &Arc<Self>) -> Result<Waiting, Error> {
        let shared = Arc::clone(self);
        self.drain.spawn(move || shared.drain.set_to_current())
    }

    /// Returns what the context switches need of the session.
    pub(crate) fn traced(&self) -> Traced<'_> {
        Traced { region: &self.region, format: self.format(), threads: &self.threads }
    }

    /// Whether a flight recorder has anything to [keep](Self::keep).
    pub(crate) fn keeps(&self) -> bool {
        self.scheduling.is_open() || self.sampling.is_open() || self.heap_profile.is_open()
    }

    /// Reads what a flight recorder keeps besides the records of its ring. Returns the longest time until the
    /// next call, if there is anything.
    pub(crate) fn keep(&self, is_last: bool) -> Option<Duration> {
        let states = self.scheduling.keep(self.traced(), if is_last { Keep::All } else { Keep::Settled });
        let samples = self.sampling.keep(self.traced());
        [states, samples, self.heap_profile.keep()].into_iter().flatten().min()
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn is_track_event(&self) -> bool {
        self.format() == Format::TrackEvent
    }

    pub(crate) fn format(&self) -> Format {
        self.epoch.format()
    }

    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    pub(crate) fn clock(&self) -> &Published {
        &self.clock
    }

    /// Returns the time in the trace, in ns.
    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Returns the time since the session's start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    pub(crate) fn detail(&self) -> Detail {
        self.settings.detail
    }

    /// Returns the flight recorder of a session that overwrites.
    pub(crate) fn recorder(&self) -> Option<&FlightRecorder> {
        self.recorder.as_ref()
    }

    /// Returns whether this process has started the session. It has not in a forked child.
    pub(crate) fn is_of_this_process(&self) -> bool {
        self.pid == process::id()
    }

    /// Returns whether the calling thread can wait for the session's own thread: it is in the process that
    /// has started the session, and is not that thread.
    pub(crate) fn may_wait(&self) -> bool {
        self.is_of_this_process() && !self.drain.is_current()
    }

    /// In a forked child: takes the settings for a session of its own. `None`: the child records nothing.
    pub(crate) fn take_child_config(&self) -> Option<Box<Config>> {
        // Only forked children take this lock, so no thread of the parent can have held it.
        self.child_config.lock().take()
    }

    /// Ends a slice on a track with a late end, for a thread that has no room. Returns the time of the end.
    pub(crate) fn end_late(&self, event: &Event<'_>) -> u64 {
        let now = self.clock.now().max(event.after + 1);
        let omitted = self.late_ends.write(event, self.format(), now);
        if omitted > 0 {
            self.region.count_lost(LossReason::Argument, omitted);
        }
        now
    }

    /// Returns the number of completed passes of the drain thread. Two passes later, the output has all that
    /// was committed or ended late before the call. One pass is not enough: it may be under way.
    pub(crate) fn passes(&self) -> u64 {
        self.drain.passes()
    }

    /// Adds a thread that begins to record.
    pub(crate) fn add_thread(&self, sequence: SequenceId, thread: process::Thread) -> Place {
        self.threads.add(sequence, thread, own_uuid())
    }

    /// Ends a sequence whose last chunk was recalled. `next_chunk` is the `ChunkInfo` of the sequence's next
    /// chunk.
    pub(crate) fn sequence_ended(&self, next_chunk: ChunkInfo) {
        if self.recorder.is_none() {
            self.ended_sequences.add(next_chunk);
        }
    }

    /// Replaces the calling thread's number of chunks that it keeps only for the ends of its open scopes.
    pub(crate) fn keep_for_ends(&self, before: u32, now: u32) {
        self.chunks_for_ends.replace(before, now);
    }

    /// Counts an event that found no room in the ring, and wakes the drain thread.
    pub(crate) fn refuse_for_room(&self) {
        self.region.count_lost(LossReason::BufferFull, 1);
        self.note_full();
    }

    /// Notes that the ring is full, and wakes the drain thread. The caller has counted the event that found
    /// no room.
    #[inline(always)]
    pub(crate) fn note_full(&self) {
        self.chunks_for_ends.note_full();
        self.drain.wake_unless_sent();
    }

    /// Wakes the drain thread when a thread claims a chunk in the upper half of the ring, as far as that is
    /// allocated. Threads claim the lowest free chunk, so half of the ring waits for the drain thread then. A
    /// ring that overwrites needs no wake-up.
    pub(crate) fn chunk_taken(&self, number: u32) {
        if number >= self.region.allocated_chunks() / 2 && self.recorder.is_none() {
            self.wake();
        }
    }

    /// Wakes the drain thread when a thread completes a chunk for which another thread may wait.
    pub(crate) fn chunk_completed(&self) {
        if !self.settings.patience.is_zero() {
            self.wake();
        }
    }

    /// Wakes the drain thread, at most once until its next pass. Does not wait.
    pub(crate) fn wake(&self) {
        self.drain.wake();
    }

    /// Returns the time until which an event of this thread waits for a chunk. `None`: the event does not
    /// wait, by the session's policy, on the drain thread (which frees chunks), or in a forked child (which
    /// has no drain thread).
    pub(crate) fn patience_ends(&self) -> Option<Instant> {
        let waits = !self.settings.patience.is_zero()
            && self.region.may_wait()
            && !self.drain.is_current_tid()
            && self.is_of_this_process();
        waits.then(|| Instant::now() + self.settings.patience)
    }

    /// Whether the session's policy is that threads wait for a chunk.
    pub(crate) fn may_ever_wait(&self) -> bool {
        !self.settings.patience.is_zero()
    }

    /// Returns whether an event of a thread without a chunk is dropped: no chunk is free, and the event does
    /// not wait.
    pub(crate) fn has_no_chunk(&self) -> bool {
        !self.region.has_free_chunk() && self.patience_ends().is_none()
    }

    /// Waits until `number` passes are completed, if the session's policy is to wait. Returns whether they
    /// are.
    pub(crate) fn wait_for_pass(&self, number: u64) -> bool {
        const POLL: Duration = Duration::from_micros(100);
        let (ends, _uncancelled) = (self.patience_ends(), Uncancelled::new());
        while self.passes() < number {
            if ends.is_none_or(|ends| Instant::now() >= ends) {
                return false;
            }
            self.wake();
            std::thread::sleep(POLL);
        }
        true
    }

    /// Waits until a chunk is free; another thread may claim it first. Returns false when `until` has passed,
    /// or when this thread may not wait.
    pub(crate) fn wait_for_chunk(&self, until: Instant) -> bool {
        // A signal handler may have forked while its thread waited here.
        self.is_of_this_process() && self.region.wait_for_chunk(until, || self.wake())
    }
}
