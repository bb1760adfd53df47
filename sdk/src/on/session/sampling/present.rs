//! Samples from the kernel's rings into the session's sink.

use std::io;
use std::time::Duration;

use hairline_formats::track_event::SequenceId;
use hairline_perf::{Attributes, Inherit, OwnEvents, RING};
use hairline_shm::LossReason;
use hairline_stacks::{Profile, REGISTERS, SampledAt, stack_bytes};

use crate::on::base::clock;
use crate::on::base::lock::Mutex;
use crate::on::base::platform::process;
use crate::on::encode::OWN_SEQUENCE;
use crate::on::session::descriptors;
use crate::on::session::scheduling::Traced;
use crate::options::Format;

/// The part of a ring that one processor may fill between two reads.
const FILLED: u64 = 6;

/// The longest time between two reads of the rings.
const LONGEST: Duration = Duration::from_millis(10);

/// The samples of a session.
#[derive(Debug)]
pub(crate) struct Sampling {
    events: OwnEvents,
    profile: Profile,
    every: Duration,
}

/// Where a session keeps its [`Sampling`] until its drain thread has it.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<Option<Box<Sampling>>>);

impl Slot {
    /// Opens the events of the process's threads, `frequency` samples in a second of CPU time.
    ///
    /// # Errors
    /// A sentence that says why the session records no samples, and what helps; or that it may not record
    /// those of all threads.
    pub(crate) fn open(
        &self,
        frequency: u32,
        format: Format,
        sequence: impl FnOnce() -> u32,
    ) -> Result<(), String> {
        let (events, stack) = open_events(frequency)
            .map_err(|e| format!("samples are not recorded: {e}; {}", hairline_perf::advice(&e)))?;
        descriptors::SAMPLING.set(events.raw_fds());
        let profile = match format {
            Format::Fxt => Profile::fxt_within(),
            Format::TrackEvent => Profile::packets(SequenceId(sequence() + OWN_SEQUENCE.0)),
        };
        let a_second = u64::from(frequency) * u64::from(stack);
        let every = Duration::from_micros(events.smallest_ring() * 1_000_000 / FILLED / a_second.max(1));
        let has_all_threads = events.has_all_threads();
        let sampling = Box::new(Sampling { events, profile, every: every.min(LONGEST) });
        if let Some(mut slot) = self.0.lock_unless_lost() {
            *slot = Some(sampling);
        }
        if has_all_threads { Ok(()) } else { Err(hairline_perf::not_all_threads("samples")) }
    }

    /// Notes that the calling thread, the session's own, has the descriptors in a table of its own.
    pub(crate) fn moved_here(&self) {
        if let Some(slot) = self.0.lock_unless_lost()
            && let Some(sampling) = slot.as_ref()
        {
            sampling.events.moved_here();
        }
    }

    /// Takes the samples, for good. The session's own thread calls this.
    pub(crate) fn close(&self) -> Option<Box<Sampling>> {
        let mut sampling = self.0.lock_unless_lost()?.take()?;
        // After the events are open: a file that is mapped meanwhile is found twice, and not missed.
        sampling.profile.add_present(process::id());
        Some(sampling)
    }
}

/// Opens the events. Returns also the number of bytes of a stack in each sample.
fn open_events(frequency: u32) -> io::Result<(OwnEvents, u32)> {
    let mut stack = stack_bytes(RING as u64, frequency);
    loop {
        let attributes = Attributes::cpu_clock(frequency)
            .user_stack(REGISTERS, stack)
            .mappings()
            .tasks()
            .inherit(Inherit::Threads);
        let (events, _) = OwnEvents::open(&attributes, descriptors::may_open(), |_| ())?;
        let fitting = stack_bytes(events.smallest_ring(), frequency);
        if fitting >= stack {
            return Ok((events, stack));
        }
        stack = fitting; // the user has locked memory for something else
    }
}

impl Sampling {
    /// Returns the longest time until the next read.
    pub(crate) fn longest_sleep(&self) -> Duration {
        self.every
    }

    fn read(&mut self, of: Traced<'_>, is_last: bool) {
        let start = clock::boottime();
        let Self { events, profile, .. } = self;
        events.read(|record, stamp| profile.add(&record, stamp, SampledAt::CpuTime));
        profile.settle(start);
        let lost = events.newly_lost(is_last);
        if lost > 0 {
            of.region.count_lost(LossReason::KernelRing, lost);
        }
    }

    /// Writes the samples since the last call.
    pub(crate) fn write(
        &mut self,
        of: Traced<'_>,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.read(of, false);
        let out = self.profile.take_output();
        if out.is_empty() { Ok(()) } else { write(&out) }
    }

    /// Ends the recording, and writes the rest and the functions of all frames.
    pub(crate) fn finish(
        mut self: Box<Self>,
        of: Traced<'_>,
        mut write: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        self.events.disable();
        self.read(of, true);
        // The process has a track, and so has each thread that records.
        self.profile.finish(&|task| task.tid == task.pid || of.threads.contains(task.tid));
        write(&self.profile.take_output())
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        // A child that is forked from here on keeps descriptors of events that record nothing.
        self.events.disable();
        descriptors::SAMPLING.clear();
    }
}
