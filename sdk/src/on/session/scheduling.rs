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
use std::time::{Duration, Instant};

use hairline_perf::{Named, Switches, Taken};
use hairline_shm::{LossReason, Region, Tape, tape_entries};

use crate::on::base::clock;
use crate::on::encode::{STATES_TAPE, kept_states, stream};
use crate::on::session::descriptors;
use crate::on::session::slot::Slot;
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
    /// Where the last batch ends: names and states of all threads.
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
            kept_states::begin_batch(0, |entry| append(tape, entry)); // no state began before
            self.batch = Some(tape.end());
        }
        kept_states::put(taken, |entry| append(tape, entry));
        self.last = taken.changes.iter().map(|change| change.time).fold(self.last, u64::max);
        let (_, len) = tape.filled();
        if self.batch.is_some_and(|batch| tape.end() - batch > len / 4) {
            kept_states::begin_batch(self.last, |entry| append(tape, entry));
            kept_states::put(&now(), |entry| append(tape, entry));
            self.batch = Some(tape.end());
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

impl Slot<Scheduling> {
    /// Opens the events of the process's threads.
    ///
    /// # Errors
    /// A sentence that says why the session records no switches, and what helps; or that it may not record
    /// those of all threads.
    pub(crate) fn open(&self, region: &Arc<Region>) -> Result<(), String> {
        let own = Switches::of_this_process(clock::boottime, descriptors::may_open())
            .map_err(|e| format!("context switches are not recorded: {e}; {}", hairline_perf::advice(&e)))?;
        descriptors::SCHEDULING.set(own.raw_fds());
        let has_all_threads = own.has_all_threads();
        self.fill(Scheduling {
            own,
            last_read: Instant::now(),
            next: SHORT_TICK,
            file: 0,
            tape: Tape::of(region, STATES_TAPE).map(|tape| OnTape { tape, batch: None, last: 0 }),
        });
        if has_all_threads { Ok(()) } else { Err(hairline_perf::not_all_threads("context switches")) }
    }

    /// Notes that the calling thread, the session's own, has the descriptors in a table of its own.
    pub(crate) fn moved_here(&self) {
        self.when_there(|scheduling| scheduling.own.moved_here());
    }

    /// Keeps the context switches of a flight recorder. Returns the longest time until the next call; `None`
    /// if the session records none.
    pub(crate) fn keep(&self, of: Traced<'_>, keep: Keep) -> Option<Duration> {
        // A snapshot that has them reads the rings itself.
        self.is_open().then(|| {
            let kept = self.with(|scheduling| {
                scheduling.keep(of, keep);
                scheduling.longest_sleep()
            });
            kept.unwrap_or(TICK)
        })
    }

    /// Returns what a flight recorder has kept up to now, for a snapshot.
    pub(crate) fn history(&self, of: Traced<'_>) -> Taken {
        let entries = self.when_there(|scheduling| {
            scheduling.keep(of, Keep::Recent);
            scheduling.tape.as_ref().map(|of| of.tape.read(0)).unwrap_or_default()
        });
        kept_states::read(tape_entries(&entries.unwrap_or_default()))
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
    fn keep(&mut self, of: Traced<'_>, keep: Keep) {
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
