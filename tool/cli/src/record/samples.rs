//! Samples of the command and of all that it starts, by the kernel's perf events.
//!
//! A thread reads the rings while the command runs, and unwinds: a second of a busy processor is 8 to 33 MB
//! of stacks, and a few KB of numbers.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use hairline::Format;
use hairline_formats::track_event::SequenceId;
use hairline_perf::{Attributes, Event, Inherit, RING, Record, Ring, online_cpus};
use hairline_stacks::{LEAST_STACK, Profile, REGISTERS, SampledAt, Totals, stack_bytes};

use crate::platform;
use crate::record::switches::{Recorded, States};
use crate::text::grouped;

/// The largest ring: on a busy machine this process may get no processor for 100 ms.
const LARGEST: usize = 4 << 20;
/// The part of a ring that one processor may fill between two readings.
const FILLED: u64 = 6;
/// The longest time between two readings.
const LONGEST: Duration = Duration::from_millis(10);

/// A running recording of samples.
#[derive(Debug)]
pub(super) struct Sampling {
    known: Arc<OnceLock<Known>>,
    thread: JoinHandle<Ended>,
    /// Whether the context switches are in its rings.
    pub(super) has_states: bool,
}

/// What the thread returns.
pub(super) struct Ended {
    pub(super) totals: io::Result<Totals>,
    /// The context switches, if its rings had them.
    pub(super) switches: Option<io::Result<Recorded>>,
}

/// The processes whose threads have names in other parts.
#[derive(Debug)]
pub(super) enum Known {
    All,
    /// Those with these pids.
    Of(HashSet<u32>),
}

impl Known {
    fn contains(&self, pid: u32) -> bool {
        match self {
            Self::All => true,
            Self::Of(pids) => pids.contains(&pid),
        }
    }
}

/// The events of a process that has not yet executed its program.
#[derive(Debug)]
pub(super) struct Opened {
    rings: Vec<Ring>,
    /// For stacks at switches.
    switches: Vec<Ring>,
    frequency: u32,
    every: Duration,
}

/// Opens the events of process `pid`, which count from its next exec on, `frequency` samples in a second.
/// With `has_switches` the rings have its context switches too: one event costs the program less than two.
pub(super) fn open(pid: u32, frequency: u32, has_switches: bool) -> io::Result<Opened> {
    let cpus = online_cpus();
    let bytes = ring_size(cpus.len());
    let mut stack = stack_bytes(bytes as u64, frequency);
    loop {
        let mut attributes = Attributes::cpu_clock(frequency)
            .user_stack(REGISTERS, stack)
            .mappings()
            .tasks()
            .inherit(Inherit::All)
            .enable_on_exec();
        if has_switches {
            attributes = attributes.and_switches();
        }
        let ring = |cpu: &u32| Ring::at_most(Event::open(&attributes, pid, Some(*cpu))?, bytes, &attributes);
        let rings = cpus.iter().map(ring).collect::<io::Result<Vec<Ring>>>()?;
        let smallest = rings.iter().map(Ring::size).min().unwrap_or(RING) as u64;
        let fitting = stack_bytes(smallest, frequency);
        if fitting >= stack {
            let a_second = u64::from(frequency) * u64::from(stack);
            let every = Duration::from_micros(smallest * 1_000_000 / FILLED / a_second.max(1));
            return Ok(Opened { rings, switches: Vec::new(), frequency, every: every.min(LONGEST) });
        }
        stack = fitting; // the user has locked memory for something else
    }
}

/// Returns whether this user may sample a thread: else the processes are told to do it themselves, before
/// there is a process to open the events of.
pub(super) fn are_permitted(frequency: u32) -> bool {
    let attributes = Attributes::cpu_clock(frequency).user_stack(REGISTERS, LEAST_STACK);
    Event::open(&attributes, 0, None).is_ok()
}

impl Opened {
    /// Opens also the events for the stacks at switches, if this user may. Most users may not.
    pub(super) fn with_switches(mut self, pid: u32) -> Self {
        // No frequency limits them: a processor may make 100,000 in a second.
        let attributes = Attributes::at_switches()
            .user_stack(REGISTERS, LEAST_STACK)
            .inherit(Inherit::All)
            .enable_on_exec();
        let cpus = online_cpus();
        let bytes = ring_size(cpus.len());
        let ring = |cpu| Ring::at_most(Event::open(&attributes, pid, Some(cpu))?, bytes, &attributes);
        self.switches = cpus.into_iter().map(ring).collect::<io::Result<_>>().unwrap_or_default();
        self
    }
}

/// Returns the size of each ring: what a user has without a limit, and what this process may lock besides.
fn ring_size(cpus: usize) -> usize {
    let own = usize::try_from(platform::lockable_bytes()).unwrap_or(usize::MAX) / cpus.max(1);
    let bytes = RING.saturating_add(own).min(LARGEST);
    1 << bytes.ilog2()
}

/// Begins to read the rings. The samples are written to `file`, the context switches in the rings become a
/// part too.
pub(super) fn begin(
    opened: Opened,
    format: Format,
    file: File,
    states: Option<States>,
) -> io::Result<Sampling> {
    let known = Arc::new(OnceLock::new());
    let told = Arc::clone(&known);
    let has_states = states.is_some();
    let thread = std::thread::Builder::new()
        .name("samples".to_owned())
        .spawn(move || read(opened, format, file, &told, states))?;
    Ok(Sampling { known, thread, has_states })
}

impl Sampling {
    /// Ends the recording and writes the functions of all frames. The `known` processes have names.
    pub(super) fn end(self, known: Known) -> Ended {
        let _ = self.known.set(known);
        self.thread.thread().unpark();
        let failed = || io::Error::other("the thread that reads samples panicked");
        self.thread.join().unwrap_or_else(|_| Ended { totals: Err(failed()), switches: Some(Err(failed())) })
    }
}

/// Why samples cannot be recorded, and what helps.
pub(super) fn explain(error: &io::Error) -> String {
    let advice = hairline_perf::advice(error);
    format!("no samples: {error}; {advice}. Programs with Hairline's feature `sampling` take their own")
}

fn read(
    mut opened: Opened,
    format: Format,
    file: File,
    known: &OnceLock<Known>,
    mut states: Option<States>,
) -> Ended {
    let totals = read_samples(&mut opened, format, file, known, states.as_mut());
    Ended { totals, switches: states.map(States::finish) }
}

fn read_samples(
    opened: &mut Opened,
    format: Format,
    mut file: File,
    known: &OnceLock<Known>,
    mut states: Option<&mut States>,
) -> io::Result<Totals> {
    let mut profile = match format {
        Format::Fxt => Profile::fxt(),
        _ => Profile::packets(SequenceId(1)),
    }
    .frequency(opened.frequency);
    let (mut malformed, mut switches_malformed) = (0, 0);
    let Opened { rings, switches, every, .. } = opened;
    // Samples and context switches. Also while stacks are unwound: threads may begin to wait more often than
    // that takes, and no such stack may cost a sample or a switch.
    let mut read_rings = |profile: &mut Profile| -> io::Result<()> {
        let start = platform::boottime();
        for ring in &mut *rings {
            let add = |record: Record<'_>, stamp| {
                if let Some(states) = &mut states {
                    states.add(&record, stamp);
                }
                profile.add(&record, stamp, SampledAt::CpuTime);
            };
            malformed += ring.read(add).malformed;
        }
        states.as_mut().map_or(Ok(()), |states| states.write(start))
    };
    loop {
        let is_last = known.get().is_some();
        let start = platform::boottime();
        let mut written = read_rings(&mut profile);
        for ring in &mut *switches {
            let add = |record: Record<'_>, stamp| profile.add(&record, stamp, SampledAt::Switches);
            switches_malformed += ring.read(add).malformed;
        }
        profile.settle_with(start, |profile| {
            if written.is_ok() {
                written = read_rings(profile);
            }
        });
        written?;
        if is_last {
            break;
        }
        file.write_all(&profile.take_output())?;
        std::thread::park_timeout(*every);
    }
    let lost = |rings: &[Ring]| rings.iter().map(|ring| ring.event().lost().unwrap_or(0)).sum::<u64>();
    let known = known.get();
    profile.finish(&|task| known.is_some_and(|known| known.contains(task.pid)));
    file.write_all(&profile.take_output())?;
    let totals = profile.totals();
    Ok(Totals {
        lost: totals.lost.max(lost(rings)) + malformed,
        switches_lost: totals.switches_lost.max(lost(switches)) + switches_malformed,
        ..totals
    })
}

/// The name of the part with the samples.
pub(super) fn part(extension: &str) -> String {
    format!("samples.{extension}")
}

/// What a trace without any sample has not, as `explain` reads it.
pub(super) const NO_SAMPLE_TOLD: &str = "stack samples by the command";

/// The samples that the trace does not have, each with the reason.
pub(super) fn missing_samples(samples: &Totals) -> impl Iterator<Item = (&'static str, String)> {
    let lost = (samples.lost > 0).then(|| {
        let lost = grouped(samples.lost);
        let why = format!(
            "{lost} samples, or context switches with --sched, lost because the kernel's ring was full: use a \
             smaller --sample"
        );
        ("all stack samples", why)
    });
    let switches = (samples.switches_lost > 0).then(|| {
        let lost = grouped(samples.switches_lost);
        let why = format!(
            "{lost} stacks of threads that began to wait lost, because the kernel's ring for them was full; \
             states and samples have rings of their own (--no-wait-stacks leaves such stacks out)"
        );
        ("all stacks of waits", why)
    });
    let none = (samples.samples == 0 && samples.lost == 0).then(|| {
        let why = "no stack sample fell into the command: each of its threads ran for less than the time of one, or \
                   most of the time in the kernel, or the kernel ended their events";
        (NO_SAMPLE_TOLD, why.to_owned())
    });
    [lost, switches, none].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_are_missing_are_a_remark_in_the_trace() {
        let missing = |samples, lost, switches_lost| {
            let totals = Totals { samples, lost, switches_lost, ..Totals::default() };
            missing_samples(&totals).map(|(what, _)| what).collect::<Vec<_>>()
        };
        assert!(missing(1, 0, 0).is_empty());
        assert_eq!(missing(1, 2, 3), ["all stack samples", "all stacks of waits"]);
        assert_eq!(missing(0, 0, 0), ["stack samples by the command"]);
        let totals = Totals { samples: 9, switches_lost: 257_315, ..Totals::default() };
        let (_, why) = missing_samples(&totals).next().expect("one");
        assert!(why.starts_with("257,315 stacks of threads that began to wait lost"), "{why}");
    }
}
