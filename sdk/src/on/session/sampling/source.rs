//! Who takes the samples: the kernel, or each thread itself where the kernel may not.

use std::io;
use std::time::Duration;

use hairline_perf::{Attributes, Inherit, OwnEvents, RING, Record, Stamp};
use hairline_sampler::Sampler;
use hairline_stacks::{Profile, REGISTERS, SampledAt, stack_bytes};

use crate::on::session::descriptors;
use crate::on::session::sampling::looks::Looks;

/// The part of a ring that one processor may fill between two reads.
const FILLED: u64 = 6;

/// The longest time between two reads of the kernel's rings.
const LONGEST: Duration = Duration::from_millis(10);

/// Who takes the samples.
#[derive(Debug)]
pub(super) enum Source {
    Kernel {
        events: OwnEvents,
        every: Duration,
    },
    /// Signals, which tell nothing of mappings and names: these are looked up.
    Threads {
        sampler: Sampler,
        looks: Looks,
    },
}

impl Source {
    /// Opens the events of all threads, or else gives them timers. Returns also what is to be said.
    ///
    /// # Errors
    /// A sentence that says why there are no samples, and what helps.
    pub(super) fn open(frequency: u32) -> Result<(Self, Option<String>), String> {
        let refused = match open_events(frequency) {
            Ok((events, stack)) => {
                descriptors::SAMPLING.set(events.raw_fds());
                let a_second = u64::from(frequency) * u64::from(stack);
                let every =
                    Duration::from_micros(events.smallest_ring() * 1_000_000 / FILLED / a_second.max(1));
                let note = (!events.has_all_threads()).then(|| hairline_perf::not_all_threads("samples"));
                return Ok((Self::Kernel { events, every: every.min(LONGEST) }, note));
            }
            Err(e) => e,
        };
        let advice = hairline_perf::advice(&refused);
        let stack = stack_bytes(RING as u64, hairline_sampler::frequency_of(frequency));
        match Sampler::start(frequency, stack) {
            Ok(sampler) => {
                let note = format!(
                    "samples are taken by signals, at most {} in a second of CPU time: the kernel's are refused \
                     ({refused}; {advice})",
                    sampler.frequency()
                );
                Ok((Self::Threads { sampler, looks: Looks::default() }, Some(note)))
            }
            Err(e) => {
                let of_signals = hairline_sampler::advice(&e);
                Err(format!(
                    "samples are not recorded: {refused}; {advice}. Nor by signals: {e}; {of_signals}"
                ))
            }
        }
    }

    /// Notes that the calling thread, the session's own, has the descriptors in a table of its own.
    pub(super) fn moved_here(&self) {
        if let Self::Kernel { events, .. } = self {
            events.moved_here();
        }
    }

    /// Returns the number of samples in a second of CPU time, of which so many are asked for.
    pub(super) fn frequency(&self, asked: u32) -> u32 {
        match self {
            Self::Kernel { .. } => asked,
            Self::Threads { sampler, .. } => u32::try_from(sampler.frequency()).unwrap_or(asked),
        }
    }

    /// Returns the longest time between two reads.
    pub(super) fn every(&self) -> Duration {
        match self {
            Self::Kernel { every, .. } => *every,
            Self::Threads { sampler, .. } => sampler.every(),
        }
    }

    /// Reads the samples since the last call into `profile`. Returns the number of lost ones.
    pub(super) fn read(&mut self, profile: &mut Profile, is_last: bool) -> u64 {
        match self {
            Self::Kernel { events, .. } => {
                events.read(|record, stamp| profile.add(&record, stamp, SampledAt::CpuTime));
                events.newly_lost(is_last)
            }
            Self::Threads { sampler, looks } => {
                let mut has_new = false;
                sampler.read(|record: Record<'_>, stamp: Stamp| {
                    has_new |= !profile.knows(&record, stamp);
                    profile.add(&record, stamp, SampledAt::CpuTime);
                });
                looks.look(profile, has_new, is_last);
                sampler.newly_lost()
            }
        }
    }

    /// Ends the recording. What was recorded can still be read.
    pub(super) fn stop(&mut self) {
        match self {
            // A child that is forked from here on keeps descriptors of events that record nothing.
            Self::Kernel { events, .. } => events.disable(),
            Self::Threads { sampler, .. } => sampler.stop(),
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.stop();
        if matches!(self, Self::Kernel { .. }) {
            descriptors::SAMPLING.clear();
        }
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
