//! Who takes the samples: the kernel, or each thread itself where the kernel may not.

use std::io;
use std::time::Duration;

use hairline_perf::{Attributes, Inherit, OwnEvents, RING, Record, Stamp};
use hairline_sampler::{Clock, Earlier, Sampler, Taken};
use hairline_stacks::{Profile, REGISTERS, SampledAt, stack_bytes};

use crate::on::base::platform::process;
use crate::on::session::descriptors;
use crate::on::session::sampling::SampledThreads;
use crate::on::session::sampling::looks::{Looks, New};
use crate::sampling::{OwnStacks, Sampling as Wished};

/// The part of a ring that one processor may fill between two reads.
const FILLED: u64 = 6;

/// The longest time between two reads of the kernel's rings.
const LONGEST: Duration = Duration::from_millis(50);

/// Who takes the samples.
#[derive(Debug)]
pub(super) enum Source {
    Kernel {
        events: OwnEvents,
        frequency: u32,
        every: Duration,
    },
    /// Signals, which tell nothing of mappings and names: these are looked up.
    Threads {
        sampler: Sampler,
        looks: Looks,
        at: SampledAt,
    },
}

/// The number of samples in a second of a thread's time.
#[derive(Clone, Copy, Debug)]
pub(super) enum SampledBy {
    CpuTime(u32),
    WallTime(u32),
}

impl Source {
    /// Opens what takes these samples. `threads`: those that are sampled by the clock. `stays_on`: the
    /// session is a flight recorder. `own`: how threads take their own. Returns also what is to be said.
    ///
    /// # Errors
    /// A sentence that says why there are no samples, and what helps.
    pub(super) fn open(
        samples: &Wished,
        threads: Option<SampledThreads>,
        stays_on: bool,
        own: OwnStacks,
    ) -> Result<(Self, Option<String>), String> {
        let frequency = samples.frequency();
        match samples {
            Wished::CpuTime(_) if stays_on => by_signals_or_events(frequency, own),
            Wished::CpuTime(_) | Wished::Kernel(_) => by_events_or_signals(frequency, own),
            Wished::Signals(_) => match by_signals(frequency, own) {
                Ok(source) => Ok((source, None)),
                Err(why) => Err(format!("samples are not recorded: {why}")),
            },
            Wished::WallTime(..) => by_clock(frequency, threads, own),
        }
    }

    /// Notes that the calling thread, the session's own, has the descriptors in a table of its own.
    pub(super) fn moved_here(&self) {
        if let Self::Kernel { events, .. } = self {
            events.moved_here();
        }
    }

    /// Adds the mappings and threads that are there. After the source is open: a file that is mapped
    /// meanwhile is found twice, and not missed.
    pub(super) fn begin(&mut self, profile: &mut Profile) {
        match self {
            Self::Kernel { .. } => _ = profile.add_present(process::id()),
            Self::Threads { looks, .. } => looks.look(profile, New::AT_FIRST, false),
        }
    }

    /// Returns how often threads are sampled.
    pub(super) fn by(&self) -> SampledBy {
        match self {
            Self::Kernel { frequency, .. } => SampledBy::CpuTime(*frequency),
            Self::Threads { sampler, at, .. } => {
                let frequency = u32::try_from(sampler.frequency()).unwrap_or(u32::MAX);
                let is_wall = *at == SampledAt::WallTime;
                if is_wall { SampledBy::WallTime(frequency) } else { SampledBy::CpuTime(frequency) }
            }
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
            Self::Threads { sampler, looks, at } => {
                let mut new = New::default();
                sampler.read(|record: Record<'_>, stamp: Stamp, earlier: Earlier| {
                    new.add(profile, &record, stamp);
                    profile.add_several(&record, stamp, *at, (earlier.count, earlier.interval));
                });
                looks.look(profile, new, is_last);
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

/// Opens the events of all threads, or else gives them timers.
fn by_events_or_signals(frequency: u32, own: OwnStacks) -> Result<(Source, Option<String>), String> {
    let refused = match open_events(frequency) {
        Ok((events, stack)) => {
            descriptors::SAMPLING.set(events.raw_fds());
            let a_second = u64::from(frequency) * u64::from(stack);
            let every = Duration::from_micros(events.smallest_ring() * 1_000_000 / FILLED / a_second.max(1));
            let of_threads = (!events.has_all_threads()).then(|| hairline_perf::not_all_threads("samples"));
            let of_stacks = (own == OwnStacks::ByFramePointers).then(|| {
                format!("the kernel's samples do not follow frame pointers; signals:{frequency} asks for some that do")
            });
            let notes: Vec<String> = of_threads.into_iter().chain(of_stacks).collect();
            let note = (!notes.is_empty()).then(|| notes.join("; "));
            return Ok((Source::Kernel { events, frequency, every: every.min(LONGEST) }, note));
        }
        Err(e) => e,
    };
    let advice = hairline_perf::advice(&refused);
    let source = by_signals(frequency, own)
        .map_err(|why| format!("samples are not recorded: {refused}; {advice}. Nor by signals: {why}"))?;
    let (SampledBy::CpuTime(frequency) | SampledBy::WallTime(frequency)) = source.by();
    let note = format!(
        "samples are taken by signals, at most {frequency} in a second of CPU time: the kernel's are refused \
         ({refused}; {advice})"
    );
    Ok((source, Some(note)))
}

/// Gives all threads timers, or else opens events: the kernel's take some 1 us at each switch of
/// threads, which is 3 % of a program that switches often. Timers expire at the kernel's ticks: for more
/// samples there are events.
fn by_signals_or_events(frequency: u32, own: OwnStacks) -> Result<(Source, Option<String>), String> {
    if hairline_sampler::frequency_of(frequency) == frequency
        && let Ok(source) = by_signals(frequency, own)
    {
        let note = format!(
            "samples are taken by signals, as they cost a flight recorder less than the kernel's; \
             kernel:{frequency} asks for those"
        );
        return Ok((source, Some(note)));
    }
    by_events_or_signals(frequency, own)
}

/// Gives each thread a timer of its CPU time.
fn by_signals(frequency: u32, own: OwnStacks) -> Result<Source, String> {
    let taken = taken(own, hairline_sampler::frequency_of(frequency));
    timed(Clock::CpuTime, frequency, taken, SampledAt::CpuTime)
}

/// Gives each thread of these names a timer of real time.
fn by_clock(
    frequency: u32,
    threads: Option<SampledThreads>,
    own: OwnStacks,
) -> Result<(Source, Option<String>), String> {
    let wants = move |tid: u32| {
        let name = std::fs::read(format!("/proc/self/task/{tid}/comm")).unwrap_or_default();
        threads.as_ref().is_some_and(|threads| threads.has(String::from_utf8_lossy(&name).trim_end()))
    };
    let taken = taken(own, frequency);
    match timed(Clock::WallTime(Box::new(wants)), frequency, taken, SampledAt::WallTime) {
        Ok(source) => Ok((source, None)),
        Err(why) => Err(format!("samples by the clock are not recorded: {why}")),
    }
}

/// Returns what samples have of a stack, so many in a second.
fn taken(own: OwnStacks, frequency: u32) -> Taken {
    match own {
        OwnStacks::Copied => Taken::Bytes(stack_bytes(RING as u64, frequency)),
        OwnStacks::ByFramePointers => Taken::FramePointers,
    }
}

fn timed(clock: Clock, frequency: u32, taken: Taken, at: SampledAt) -> Result<Source, String> {
    let sampler = Sampler::start(clock, frequency, taken)
        .map_err(|e| format!("{e}; {}", hairline_sampler::advice(&e)))?;
    Ok(Source::Threads { sampler, looks: Looks::default(), at })
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
