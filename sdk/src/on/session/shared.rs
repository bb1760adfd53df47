//! What a session's threads share: those that record, the one that writes, those that ask it to.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hairline_shm::{Backing, ChunkInfo, LOSS_REASONS, LossReason, Region};

use crate::builder::{Config, Detail};
use crate::error::Error;
use crate::on::base::clock::{Clock, Published};
use crate::on::base::lock::{Condvar, Mutex};
use crate::on::base::platform::own_thread::OwnThread;
use crate::on::base::platform::{own_thread, process};
use crate::on::callsite::TRACK_EVENT;
use crate::on::encode::stream;
use crate::on::event::Event;
use crate::on::session::end::{End, Requests};
use crate::on::session::late::{LATE_ROOM, Late};
use crate::on::session::stray;
use crate::on::session::window::Recorder;
use crate::options::Format;
use crate::summary::{Lost, Summary, ThreadSummary};

/// What the threads of a session share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) epoch: u32,
    pid: u32,
    pub(crate) region: Arc<Region>,
    pub(crate) clock: Published,
    pub(crate) started: Instant,
    detail: Detail,
    /// How long an event waits for a chunk.
    patience: Duration,
    /// In a session that overwrites.
    pub(crate) recorder: Option<Recorder>,
    /// Time between two heartbeats of the stream.
    pub(crate) heartbeat: Duration,
    pub(crate) path: Option<PathBuf>,
    /// What a forked child starts its own session from.
    of_a_child: Mutex<Option<Box<Config>>>,
    late: Mutex<Late>,
    /// Where a late end is put together, so that it allocates nothing.
    late_room: Mutex<(Vec<u8>, Vec<u8>)>,
    /// Passes of the writer thread that are done.
    passes: AtomicU64,
    /// Losses of no region before this session's start.
    stray_before: [u64; LOSS_REASONS.len()],
    threads: Mutex<Threads>,
    /// Chunks in which threads keep nothing but the ends of open scopes, and the most of them while the ring was
    /// full.
    kept_for_ends: AtomicU32,
    most_kept_for_ends: AtomicU32,
    /// Sequences that ended without a chunk to say so in.
    ended: Mutex<Vec<ChunkInfo>>,
    /// The writer thread, to be joined and to be woken.
    pub(crate) writer: Mutex<Option<OwnThread>>,
    writer_thread: own_thread::Handle,
    /// The kernel's id of the writer thread; 0 before it runs.
    writer_tid: AtomicU32,
    wake_sent: AtomicBool,
    pub(crate) requests: Mutex<Requests>,
    pub(crate) answered: Condvar,
}

/// The longest wait of an event for a chunk.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// What a session is told of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) detail: Detail,
    pub(crate) heartbeat: Duration,
    pub(crate) patience: Duration,
}

/// The threads that have recorded.
#[derive(Debug, Default)]
struct Threads {
    /// Sequence and thread, the first [`MAX_LISTED`] of them.
    listed: Vec<(u32, process::Thread)>,
    others: u64,
}

/// Threads that the summary lists each on its own: memory may not grow with every thread that ever was.
const MAX_LISTED: usize = 4096;

/// Epochs are never reused: a thread that slept through a session must see that its own has ended. The first is 2,
/// and bit 0 is the format's.
fn new_epoch(format: Format) -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(2);
    let epoch = NEXT.fetch_add(2, Ordering::Relaxed);
    epoch | if format == Format::TrackEvent { TRACK_EVENT } else { 0 }
}

impl Shared {
    pub(crate) fn new(
        format: Format,
        about: About,
        region: Arc<Region>,
        clock: &Clock,
        path: Option<PathBuf>,
        of_a_child: Option<Box<Config>>,
    ) -> Self {
        Self {
            epoch: new_epoch(format),
            pid: process::id(),
            late: Mutex::new(Late::new(&region)),
            late_room: Mutex::new((Vec::with_capacity(LATE_ROOM), Vec::with_capacity(LATE_ROOM))),
            recorder: region.overwrites().then(|| Recorder::new(&region)),
            region,
            clock: Published::new(clock.parameters()),
            started: Instant::now(),
            detail: about.detail,
            patience: about.patience.min(LONGEST_WAIT),
            heartbeat: about.heartbeat,
            path,
            of_a_child: Mutex::new(of_a_child),
            passes: AtomicU64::new(0),
            stray_before: LOSS_REASONS.map(stray::losses),
            threads: Mutex::new(Threads::default()),
            kept_for_ends: AtomicU32::new(0),
            most_kept_for_ends: AtomicU32::new(0),
            ended: Mutex::new(Vec::new()),
            writer: Mutex::new(None),
            writer_thread: own_thread::Handle::default(),
            writer_tid: AtomicU32::new(0),
            wake_sent: AtomicBool::new(false),
            requests: Mutex::new(Requests::default()),
            answered: Condvar::new(),
        }
    }

    /// Starts the session's own thread.
    pub(crate) fn spawn(
        self: &Arc<Self>,
        life: impl FnOnce(Arc<Self>) + Send + 'static,
    ) -> Result<(), Error> {
        let shared = Arc::clone(self);
        let life = move || {
            shared.writer_tid.store(process::tid(), Ordering::Relaxed);
            shared.writer_thread.set_to_current();
            life(shared);
        };
        let thread = own_thread::spawn(c"hairline-writer", life).map_err(Error::Thread)?;
        *self.writer.lock() = Some(thread); // in the place of `None`
        Ok(())
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch
    }

    pub(crate) fn is_track_event(&self) -> bool {
        self.epoch & TRACK_EVENT != 0
    }

    pub(crate) fn region(&self) -> &Arc<Region> {
        &self.region
    }

    pub(crate) fn detail(&self) -> Detail {
        self.detail
    }

    pub(crate) fn format(&self) -> Format {
        if self.is_track_event() { Format::TrackEvent } else { Format::Fxt }
    }

    /// Ends a slice on a track, on the writer thread's own sequence: for a thread that has no room. When it ended.
    pub(crate) fn end_late(&self, event: &Event<'_>) -> u64 {
        let now = self.clock.load().now().max(event.after + 1);
        // Put together first: an argument's value may come from code of the program.
        let room = self.late_room.lock_unless_lost().map(|mut room| std::mem::take(&mut *room));
        let (mut record, mut scratch) = room.unwrap_or_default();
        record.clear();
        let left_out = stream::put_late_end(self.format(), &mut record, &mut scratch, event, now);
        if let Some(mut late) = self.late.lock_unless_lost_with_room(|late| (late.in_memory(), record.len()))
        {
            late.put(&record);
        }
        let mut room = (record, scratch);
        if let Some(mut late_room) = self.late_room.lock_unless_lost() {
            std::mem::swap(&mut *late_room, &mut room);
        }
        drop(room); // of a thread that did the same meanwhile
        if left_out > 0 {
            self.region.count_lost(LossReason::Argument, left_out);
        }
        now
    }

    /// How many passes of the writer thread are done. What was committed, or put as a late end, before the call is in the output
    /// after two more: one may be under way.
    pub(crate) fn passes(&self) -> u64 {
        self.passes.load(Ordering::Acquire)
    }

    pub(crate) fn pass_done(&self) {
        self.passes.fetch_add(1, Ordering::Release); // pairs with the Acquire above: the next chunk comes after what the pass has read
    }

    /// The late ends in memory: see [`Late::take`].
    pub(crate) fn take_late(&self, taken: &mut Vec<u8>) -> u64 {
        self.late.lock().take(taken)
    }

    pub(crate) fn clock(&self) -> &Published {
        &self.clock
    }

    /// A thread begins to record.
    pub(crate) fn add_thread(&self, sequence: u32, thread: process::Thread) {
        let mut thread = Some(thread);
        let threads = self.threads.lock_unless_lost_with_room(|threads| (&mut threads.listed, 1));
        let Some(mut threads) = threads else { return };
        if threads.listed.len() < MAX_LISTED {
            threads.listed.extend(thread.take().map(|thread| (sequence, thread)));
        } else {
            threads.others += 1;
        }
        drop(threads);
        drop(thread); // its name
    }

    /// Whether an end for which its thread has no room has a chunk of its own.
    pub(crate) fn has_late_chunk(&self) -> bool {
        self.late.lock().has_chunk()
    }

    /// A sequence has ended whose last chunk was taken back before.
    pub(crate) fn sequence_ended(&self, last: ChunkInfo) {
        if self.recorder.is_none() {
            let ended = self.ended.lock_unless_lost_with_room(|ended| (ended, 1));
            ended.into_iter().for_each(|mut ended| ended.push(last));
        }
    }

    /// The sequences that have ended so since the last call.
    pub(crate) fn take_ended(&self) -> Vec<ChunkInfo> {
        std::mem::take(&mut self.ended.lock())
    }

    /// A thread has taken chunk `number`. The lowest free one is taken first, so a number in the upper half
    /// means that half of the ring waits for the writer thread. One that overwrites waits for nobody.
    pub(crate) fn chunk_taken(&self, number: u32) {
        if number >= self.region.chunk_count() / 2 && self.recorder.is_none() {
            self.wake();
        }
    }

    /// When an event of this thread that comes now stops waiting for a chunk. None: it does not wait, by the policy, or since
    /// this is the writer thread, for which it would wait, or a forked child, in which there is no writer thread.
    pub(crate) fn patience_ends(&self) -> Option<Instant> {
        let waits = !self.patience.is_zero()
            && self.region.may_wait()
            && self.writer_tid.load(Ordering::Relaxed) != process::tid()
            && self.is_of_this_process();
        waits.then(|| Instant::now() + self.patience)
    }

    /// Whether an event of a thread without a chunk is refused: none is free, and none is waited for.
    pub(crate) fn has_no_chunk(&self) -> bool {
        !self.region.has_free_chunk() && self.patience_ends().is_none()
    }

    /// Waits until so many passes are done, if the session's policy is to wait. Whether they are.
    pub(crate) fn wait_for_pass(&self, number: u64) -> bool {
        const LOOK: Duration = Duration::from_micros(100);
        let ends = self.patience_ends();
        while self.passes() < number {
            if ends.is_none_or(|ends| Instant::now() >= ends) {
                return false;
            }
            self.wake();
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Waits until there may be a chunk. False: there is none to be waited for.
    pub(crate) fn wait_for_chunk(&self, until: Instant) -> bool {
        // A handler may have forked while its thread waits here.
        self.is_of_this_process() && self.region.wait_for_chunk(until, || self.wake())
    }

    /// A thread's chunk is complete, which another one may be waiting for.
    pub(crate) fn chunk_completed(&self) {
        if !self.patience.is_zero() {
            self.wake();
        }
    }

    /// Wakes the writer thread, once until it has looked. Does not wait.
    pub(crate) fn wake(&self) {
        // Release pairs with the Acquire of `heed_wake`: it sees that this thread waits.
        if !self.wake_sent.swap(true, Ordering::Release) {
            self.writer_thread.unpark();
        }
    }

    /// Before the writer thread looks: who wants something while it does must be able to wake it again.
    pub(crate) fn heed_wake(&self) {
        // Acquire pairs with the Release of `wake`.
        self.wake_sent.swap(false, Ordering::Acquire);
    }

    /// Whether this is the process that started the session, and not the writer thread itself.
    pub(crate) fn may_wait(&self) -> bool {
        self.is_of_this_process() && !self.writer_thread.is_current()
    }

    pub(crate) fn is_of_this_process(&self) -> bool {
        self.pid == process::id()
    }

    /// In a forked child: what it starts a session of its own from, if it does.
    pub(crate) fn config_of_a_child(&self) -> Option<Box<Config>> {
        self.of_a_child.lock().take() // only forked children come here: nobody can have held it
    }

    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    pub(crate) fn unpark(&self) {
        self.writer_thread.unpark();
    }

    pub(crate) fn lost(&self) -> Lost {
        let [buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged] =
            LOSS_REASONS.map(|reason| self.lost_for(reason));
        Lost { buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged }
    }

    fn lost_for(&self, reason: LossReason) -> u64 {
        let stray = stray::losses(reason) - self.stray_before[reason as usize];
        self.region.lost(reason).saturating_add(stray) // the region is memory that other processes can change
    }

    /// A copy of the list of threads, and the number of those that are not in it. Allocates before it takes the lock.
    fn listed_threads(&self) -> (Vec<(u32, process::Thread)>, u64) {
        let mut copy = Vec::new();
        loop {
            let threads = self.threads.lock();
            let len = threads.listed.len();
            if len <= copy.capacity() {
                copy.extend(threads.listed.iter().cloned());
                return (copy, threads.others);
            }
            drop(threads);
            copy.reserve(len + len / 8);
        }
    }

    pub(crate) fn summary(&self, end: &End) -> Summary {
        let of = |sequence: &u32| end.records_by_sequence.get(sequence).copied().unwrap_or(0);
        let (listed, others) = self.listed_threads();
        let mut threads: Vec<_> = listed
            .iter()
            .map(|(sequence, t)| ThreadSummary {
                tid: t.tid,
                name: t.name.to_string(),
                records: of(sequence),
            })
            .collect();
        if others > 0 {
            let records = end.records - threads.iter().map(|t| t.records).sum::<u64>();
            threads.push(ThreadSummary { tid: 0, name: format!("{others} more threads"), records });
        }
        Summary {
            records: end.records,
            bytes: end.bytes,
            lost: self.lost(),
            threads,
            duration: end.duration,
            path: end.path.clone().or_else(|| self.path.clone().filter(|_| self.recorder.is_none())),
            notes: self.notes().into_iter().chain(end.notes.iter().cloned()).collect(),
        }
    }

    /// A thread keeps `now` chunks for nothing but the ends of its open scopes, and kept `before` until now.
    pub(crate) fn keep_for_ends(&self, before: u32, now: u32) {
        self.kept_for_ends.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }

    /// Counts an event that found no room in the ring, and wakes the writer thread.
    pub(crate) fn refuse_for_room(&self) {
        let kept = self.kept_for_ends.load(Ordering::Relaxed);
        if kept > self.most_kept_for_ends.load(Ordering::Relaxed) {
            self.most_kept_for_ends.fetch_max(kept, Ordering::Relaxed);
        }
        self.region.count_lost(LossReason::BufferFull, 1);
        self.wake();
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if matches!(self.region.backing(), Backing::Memfd | Backing::Heap) {
            let note = "no room in /dev/shm: what the ring holds would be lost if the process were killed";
            notes.push(note.to_owned());
        }
        let kept = self.most_kept_for_ends.load(Ordering::Relaxed);
        if kept > 0 {
            let chunks = self.region.chunk_count();
            notes.push(format!(
                "the ring was full while {kept} of its {chunks} chunks were kept for the ends of open scopes; \
                 a scope that is forgotten (mem::forget) never ended, and keeps that room until its thread ends"
            ));
        }
        notes
    }
}
