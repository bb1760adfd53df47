//! Context switches of the process's threads: the session's own thread reads them from the kernel's rings.
//!
//! ```text
//! kernel: a ring for each processor ──> drain thread, each pass ──> sink
//!                                  └──> recorder thread, each tick ──> tape ──> snapshot, recovery
//! ```
//!
//! The states go to the sink after the bytes of the pass. So the track of a thread is in the file before the
//! thread's death: importers take a later track for another thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hairline_perf::{Named, Switches, Taken};
use hairline_shm::{LossReason, Region, Tape, tape_entries};

use crate::on::base::clock;
use crate::on::base::lock::Mutex;
use crate::on::encode::{STATES_TAPE, kept_states, stream};
use crate::on::session::descriptors;
use crate::on::session::thread_list::ThreadList;
use crate::options::Format;

/// The longest time between two reads of the rings. A ring has room for some 13,000 switches, and a processor
/// makes some 200,000 in a second at most.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// The shortest time between two reads, and that until the first one, before which the pace is not known.
const SHORT_TICK: Duration = Duration::from_millis(5);

/// How full a ring is to be at the next read, in percent, if it fills at its present pace. The threads may
/// become faster meanwhile.
const FILLED: u32 = 20;

/// The tape of a flight recorder, in bytes: some 70,000 changes.
pub(crate) const TAPE_BYTES: u32 = 2 << 20;

/// The longest wait of a snapshot for the recorder thread, which reads the rings.
const PATIENCE: Duration = Duration::from_secs(1);

/// The context switches of a session.
#[derive(Debug)]
pub(crate) struct Scheduling {
    own: Switches,
    last_read: Instant,
    /// The time from that read until the next one.
    next: Duration,
    /// The number of the file that has the present states.
    file: u64,
    /// In a flight recorder.
    tape: Option<OnTape>,
}

/// The tape of a flight recorder: the last changes, and in each quarter the states of all threads.
#[derive(Debug)]
struct OnTape {
    tape: Tape,
    /// Where the last batch begins.
    batch: Option<u64>,
    /// The time of the last change.
    last: u64,
}

impl OnTape {
    /// Adds what has happened. `now`: the present states. Returns the number of entries that found no room.
    fn add(&mut self, taken: &Taken, now: impl FnOnce() -> Taken) -> u64 {
        let mut lost = 0;
        let mut append = |tape: &mut Tape, entry: &[u8]| lost += u64::from(!tape.append(entry));
        let tape = &mut self.tape;
        if self.batch.is_none() {
            self.batch = Some(tape.end());
            kept_states::begin_batch(0, |entry| append(tape, entry)); // no state began before
        }
        kept_states::put(taken, |entry| append(tape, entry));
        self.last = taken.changes.iter().map(|change| change.time).fold(self.last, u64::max);
        let (_, len) = tape.filled();
        if self.batch.is_some_and(|batch| tape.end() - batch > len / 4) {
            self.batch = Some(tape.end());
            kept_states::begin_batch(self.last, |entry| append(tape, entry));
            kept_states::put(&now(), |entry| append(tape, entry));
        }
        lost
    }
}

/// The session whose threads are traced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traced<'s> {
    pub(crate) region: &'s Arc<Region>,
    pub(crate) format: Format,
    /// The threads that have recorded.
    pub(crate) threads: &'s ThreadList,
}

/// Where a session keeps its [`Scheduling`], while no thread uses it.
#[derive(Debug, Default)]
pub(crate) struct Slot {
    scheduling: Mutex<Option<Box<Scheduling>>>,
    /// Whether the session records switches, and has not ended.
    is_open: AtomicBool,
}

/// How much a flight recorder takes of what its rings have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// What no older record can precede.
    Settled,
    /// The last millisecond is left out.
    Recent,
    /// All. The recording ends.
    All,
}

/// How old a record is that a snapshot takes. The kernel has long written those before it, unless the machine
/// takes the processor away in the middle of a switch.
const RECENT: u64 = 1_000_000;

impl Slot {
    /// Opens the events of the process's threads.
    ///
    /// # Errors
    /// A sentence that says why the session records no switches, and what helps; or that it may not record
    /// those of all threads.
    pub(crate) fn open(&self, region: &Arc<Region>) -> Result<(), String> {
        let own = Switches::of_this_process(clock::boottime, descriptors::may_open())
            .map_err(|e| format!("context switches are not recorded: {e}; {}", hairline_perf::advice(&e)))?;
        descriptors::SCHEDULING.set(own.raw_fds());
        self.is_open.store(true, Ordering::Relaxed);
        let has_all_threads = own.has_all_threads();
        self.put(Some(Box::new(Scheduling {
            own,
            last_read: Instant::now(),
            next: SHORT_TICK,
            file: 0,
            tape: Tape::of(region, STATES_TAPE).map(|tape| OnTape { tape, batch: None, last: 0 }),
        })));
        if has_all_threads { Ok(()) } else { Err(hairline_perf::not_all_threads("context switches")) }
    }

    /// Notes that the calling thread, the session's own, has the descriptors in a table of its own.
    pub(crate) fn moved_here(&self) {
        if let Some(slot) = self.scheduling.lock_unless_lost()
            && let Some(scheduling) = slot.as_ref()
        {
            scheduling.own.moved_here();
        }
    }

    /// Returns whether the session records switches.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// Takes the switches for good: no snapshot waits for them.
    pub(crate) fn close(&self) -> Option<Box<Scheduling>> {
        self.is_open.store(false, Ordering::Relaxed);
        self.take()
    }

    /// Takes the switches, if the session records them and no other thread has them.
    pub(crate) fn take(&self) -> Option<Box<Scheduling>> {
        self.scheduling.lock_unless_lost()?.take()
    }

    /// Returns what [`take`](Self::take) took.
    pub(crate) fn put(&self, mut scheduling: Option<Box<Scheduling>>) {
        if scheduling.is_some()
            && let Some(mut slot) = self.scheduling.lock_unless_lost()
        {
            std::mem::swap(&mut *slot, &mut scheduling); // nothing is freed under the lock
        }
    }

    /// Returns the history of a flight recorder up to now, for a snapshot.
    pub(crate) fn history(&self, of: Traced<'_>) -> Taken {
        let until = Instant::now() + PATIENCE;
        let mut taken = self.take();
        while taken.is_none() && self.is_open() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(200)); // another thread has them, for a read
            taken = self.take();
        }
        let Some(mut taken) = taken else { return Taken::default() };
        taken.keep(of, Keep::Recent);
        let entries = taken.tape.as_ref().map(|of| of.tape.read(0)).unwrap_or_default();
        self.put(Some(taken));
        kept_states::read(tape_entries(&entries))
    }
}

impl Scheduling {
    /// Reads the rings, and counts what they have lost.
    fn read(&mut self, of: Traced<'_>, is_last: bool) {
        let filled = self.own.read(clock::boottime());
        let elapsed = std::mem::replace(&mut self.last_read, Instant::now()).elapsed();
        let until_filled = elapsed * FILLED / u32::try_from(filled.max(1)).unwrap_or(u32::MAX);
        self.next = until_filled.clamp(SHORT_TICK, TICK);
        let lost = self.own.newly_lost(is_last);
        if lost > 0 {
            of.region.count_lost(LossReason::KernelRing, lost);
        }
    }

    /// Returns the longest time until the next read.
    pub(crate) fn longest_sleep(&self) -> Duration {
        self.next
    }

    /// Writes what has happened since the last call. `file` is the number of the output's present file: each
    /// file begins with the present states.
    pub(crate) fn write(
        &mut self,
        of: Traced<'_>,
        file: u64,
        write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.read(of, false);
        let mut taken = self.own.take();
        if std::mem::replace(&mut self.file, file) != file {
            let now = self.own.now();
            taken.names = now.names;
            taken.changes.extend(now.changes);
            taken.changes.sort_by_key(|change| (change.time, change.task.tid));
            taken.changes.dedup();
        }
        put(of, &taken, write)
    }

    /// Ends the recording, and writes the rest.
    pub(crate) fn finish(
        mut self: Box<Self>,
        of: Traced<'_>,
        write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.own.disable();
        self.read(of, true);
        let rest = self.own.finish();
        put(of, &rest, write)
    }

    /// Moves what has happened into the history of a flight recorder.
    pub(crate) fn keep(&mut self, of: Traced<'_>, keep: Keep) {
        self.read(of, keep == Keep::All);
        let taken = match keep {
            Keep::Settled => self.own.take(),
            Keep::Recent => self.own.take_older(RECENT),
            Keep::All => self.own.finish(),
        };
        let Some(tape) = &mut self.tape else { return };
        let lost = tape.add(&taken, || self.own.now());
        if lost > 0 {
            of.region.count_lost(LossReason::KernelRing, lost);
        }
    }
}

impl Drop for Scheduling {
    fn drop(&mut self) {
        // A child that is forked from here on keeps descriptors of events that record nothing.
        self.own.disable();
        descriptors::SCHEDULING.clear();
    }
}

/// Writes what a pass has found.
fn put(of: Traced<'_>, taken: &Taken, mut write: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    // The name of a thread that records is in its own sequence: the whole name, where the kernel's is cut. In
    // FXT the later of two names counts.
    let is_silent = |named: &&Named| !of.threads.contains(named.task.tid);
    let names: Vec<Named> = taken.names.iter().filter(is_silent).cloned().collect();
    stream::put_state_names(of.format, &names, &taken.changes, &mut write)?;
    stream::put_states(of.format, &taken.changes, &mut write).map(drop)
}
