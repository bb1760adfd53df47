//! Samples of the command and of all that it starts, by the kernel's perf events.
//!
//! A thread reads the rings while the command runs, and unwinds: a second of a busy processor is 8 MB of
//! stacks, and a few KB of numbers.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use hairline::Format;
use hairline_formats::track_event::SequenceId;
use hairline_perf::{Attributes, Event, Inherit, Ring, online_cpus};
use hairline_stacks::{Profile, REGISTERS, STACK_BYTES, Totals};
use rustix::time::{ClockId, clock_gettime};

/// The rings' size for each processor: as much as the kernel gives each user without a limit.
const RING: usize = 512 << 10;
/// The part of a ring that one processor may fill between two readings.
const FILLED: u64 = 6;
/// The longest time between two readings.
const LONGEST: Duration = Duration::from_millis(10);

/// A running recording of samples.
#[derive(Debug)]
pub(super) struct Sampling {
    known: Arc<OnceLock<Known>>,
    thread: JoinHandle<io::Result<Totals>>,
}

/// The pids of the processes that have parts of their own.
type Known = HashSet<u32>;

/// The events of a process that has not yet executed its program.
#[derive(Debug)]
pub(super) struct Opened {
    rings: Vec<Ring>,
    every: Duration,
}

/// Opens the events of process `pid`, which count from its next exec on, `frequency` samples in a second.
pub(super) fn open(pid: u32, frequency: u32) -> io::Result<Opened> {
    let attributes = Attributes::cpu_clock(frequency)
        .user_stack(REGISTERS, STACK_BYTES)
        .mappings()
        .tasks()
        .inherit(Inherit::All)
        .enable_on_exec();
    let ring = |cpu| Ring::at_most(Event::open(&attributes, pid, Some(cpu))?, RING, &attributes);
    let rings = online_cpus().into_iter().map(ring).collect::<io::Result<Vec<Ring>>>()?;
    let smallest = rings.iter().map(Ring::size).min().unwrap_or(RING) as u64;
    let a_second = u64::from(frequency) * u64::from(STACK_BYTES);
    let every = Duration::from_micros(smallest * 1_000_000 / FILLED / a_second.max(1));
    Ok(Opened { rings, every: every.min(LONGEST) })
}

/// Begins to read the rings. The samples become the file `part`.
pub(super) fn begin(opened: Opened, format: Format, part: PathBuf) -> io::Result<Sampling> {
    let file = File::create_new(part)?;
    let known = Arc::new(OnceLock::new());
    let told = Arc::clone(&known);
    let thread = std::thread::Builder::new()
        .name("samples".to_owned())
        .spawn(move || read(opened, format, file, &told))?;
    Ok(Sampling { known, thread })
}

impl Sampling {
    /// Ends the recording and writes the functions of all frames. The `known` processes have names.
    pub(super) fn end(self, known: Known) -> io::Result<Totals> {
        let _ = self.known.set(known);
        self.thread.thread().unpark();
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that reads samples panicked")))
    }
}

/// Why samples cannot be recorded, and what helps.
pub(super) fn explain(error: &io::Error) -> String {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    let help = match (error.kind(), level.trim()) {
        (io::ErrorKind::PermissionDenied, "3" | "4") => {
            "; kernel.perf_event_paranoid must be at most 2, or the user needs CAP_PERFMON"
        }
        (io::ErrorKind::PermissionDenied, _) => "; is perf_event_open forbidden, as in many containers?",
        _ => "",
    };
    format!("no samples: {error}{help}")
}

fn read(mut opened: Opened, format: Format, mut file: File, known: &OnceLock<Known>) -> io::Result<Totals> {
    let mut profile = match format {
        Format::Fxt => Profile::fxt(),
        _ => Profile::packets(SequenceId(1)),
    };
    let (mut malformed, mut counted) = (0, 0);
    loop {
        let is_last = known.get().is_some();
        let start = now();
        for ring in &mut opened.rings {
            malformed += ring.read(|record, stamp| profile.add(&record, stamp)).malformed;
        }
        profile.settle(start);
        if is_last {
            break;
        }
        file.write_all(&profile.take_output())?;
        std::thread::park_timeout(opened.every);
    }
    for ring in &opened.rings {
        counted += ring.event().lost().unwrap_or(0);
    }
    let known = known.get();
    profile.finish(&|task| known.is_some_and(|known| known.contains(&task.pid)));
    file.write_all(&profile.take_output())?;
    let totals = profile.totals();
    Ok(Totals { lost: totals.lost.max(counted) + malformed, ..totals })
}

fn now() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// The name of the part with the samples.
pub(super) fn part(directory: &Path, extension: &str) -> PathBuf {
    directory.join(format!("samples.{extension}"))
}
