//! The samples of this process's threads.

use std::io;
use std::time::{Duration, Instant};

use hairline_perf::{Map, Record, Stamp, Words, online_cpus};

use crate::ring::{MOST_REGISTERS, Ring};
use crate::sys::found::Found;
use crate::sys::{CLOCK_MONOTONIC, Handler, REGISTERS, Timer, threads, tick};

/// The time that the ring has room for, in ms: its reader may get no processor for so long.
const ROOM_FOR: u64 = 100;

/// The fewest slots, and the most: 128 MiB of stacks of 32 KiB.
const SLOTS: std::ops::RangeInclusive<u64> = 64..=4096;

/// The fewest slots for samples by the clock: a session may begin before its threads.
const SLOTS_BY_CLOCK: u64 = 1024;

/// The shortest time between two reads, and between two looks for threads that have started.
const SHORTEST: Duration = Duration::from_millis(10);
const LOOK: Duration = Duration::from_millis(20);

/// The most looks after which a thread that blocks the signal is asked again: earlier at first, since one
/// that starts a recording may block signals meanwhile.
const ASK_AGAIN: u32 = 64;

/// The most samples that one signal stands for; the others are lost. A thread is in the kernel for many
/// ticks at once while it gets new memory or copies a lot. And on a busy machine it may be another thread
/// that runs at each tick: 75 expirations in one signal were seen.
const MOST_MISSED: u32 = 512;

/// What a thread is sampled by.
pub enum Clock {
    /// The time for which it has run.
    CpuTime,
    /// The time that has passed, whether it runs or sleeps; only threads that the function wants, by their
    /// ids. It is asked again now and then.
    WallTime(Box<dyn Fn(u32) -> bool + Send + Sync>),
}

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if matches!(self, Self::CpuTime) { "CpuTime" } else { "WallTime" })
    }
}

/// What a sample has of its thread's stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// So many bytes from the stack pointer on, for an unwinder.
    Bytes(u32),
    /// The addresses of the chain of frame pointers, as [`Stacks::follow_frame_pointers`](crate::Stacks) has
    /// them.
    FramePointers,
}

/// The bytes of a slot for a chain of frame pointers: at most 2 KiB of addresses, and the part of the stack
/// that the chain is in. Pages that no chain needs are never touched.
const OF_CHAIN: u32 = 32 << 10;

/// A sample of user code, in the form of the kernel's.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample<'a> {
    /// The registers of `Attributes::user_stack` of `hairline-perf`: of the frame with which `stack` begins.
    pub registers: &'a [u64],
    /// The instructions of the frames further in, the innermost first. All but the first one are return
    /// addresses, and so is the instruction of `registers` then. Empty: there are none.
    pub call_chain: Words<'a>,
    /// The memory from the stack pointer on.
    pub stack: &'a [u8],
}

/// A thread.
#[derive(Debug)]
enum Sampled {
    By {
        /// Its drop ends it.
        _timer: Timer,
    },
    /// It blocked the signal, or nobody wanted it, at so many looks.
    Not(u32),
}

/// The samples before one that a signal stands for too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Earlier {
    /// How many there are.
    pub count: u32,
    /// The time between two of them, in ns.
    pub interval: u64,
}

/// Samples of this process's threads, present and future. There is one at a time.
#[derive(Debug)]
pub struct Sampler {
    /// Dropped before the handler's ring.
    threads: Map<u32, Sampled>,
    handler: Handler,
    clock: Clock,
    /// The time between two samples of a thread, in ns.
    interval: u64,
    position: u64,
    /// Expirations beyond the most that a signal stands for.
    beyond: u64,
    /// Losses that were returned.
    lost: u64,
    last_look: Option<Instant>,
    without: u64,
    is_stopped: bool,
}

/// Returns what helps against an error of [`Sampler::start`].
#[must_use]
pub fn advice(e: &io::Error) -> &'static str {
    match e.kind() {
        io::ErrorKind::ResourceBusy => "the program uses SIGPROF itself",
        io::ErrorKind::WouldBlock => "raise the limit of pending signals (ulimit -i)",
        io::ErrorKind::NotFound => "/proc is needed",
        io::ErrorKind::Unsupported => "only Linux on x86-64 and aarch64 has timers of a thread's CPU time",
        _ => "allow timer_create in the seccomp profile of the container",
    }
}

/// Returns the number of samples in a second that a thread gets of `frequency`: at most the kernel's ticks.
#[must_use]
pub fn frequency_of(frequency: u32) -> u32 {
    u32::try_from(1_000_000_000 / interval(frequency)).unwrap_or(1)
}

/// The CPU time between two samples of a thread, in ns.
fn interval(frequency: u32) -> u64 {
    (1_000_000_000 / u64::from(frequency.max(1))).max(tick())
}

/// Calls `f` with a sample in the form of the kernel's.
pub fn as_record<R>(sample: &Sample<'_>, f: impl FnOnce(Record<'_>) -> R) -> R {
    let Sample { registers, call_chain, stack } = *sample;
    let mut bytes = [[0; 8]; MOST_REGISTERS];
    let words = bytes.iter_mut().zip(registers);
    let count = words.map(|(bytes, word)| *bytes = word.to_ne_bytes()).count();
    f(Record::Sample {
        is_user: true,
        address: 0,
        call_chain,
        registers: Words::of_bytes(bytes[..count].as_flattened()),
        stack,
        raw: &[],
    })
}

impl Sampler {
    /// Starts to sample all threads: `frequency` samples in a second of a thread's time, of CPU time at most
    /// as many as the kernel has ticks. `taken`: what each has of the stack.
    ///
    /// # Errors
    /// [`ResourceBusy`](io::ErrorKind::ResourceBusy) if the program handles or ignores `SIGPROF`, or another
    /// value exists; [`Unsupported`](io::ErrorKind::Unsupported) on other systems than Linux;
    /// [`NotFound`](io::ErrorKind::NotFound) without `/proc`; those of `timer_create` and `mmap`.
    pub fn start(clock: Clock, frequency: u32, taken: Taken) -> io::Result<Self> {
        let (interval, at_a_time) = match clock {
            Clock::CpuTime => (interval(frequency), online_cpus().len()),
            Clock::WallTime(_) => {
                (1_000_000_000 / u64::from(frequency.max(1)), threads().map_or(0, |threads| threads.len()))
            }
        };
        let in_flight = at_a_time as u64 * ROOM_FOR * 1_000_000 / interval;
        let least = if matches!(clock, Clock::CpuTime) { *SLOTS.start() } else { SLOTS_BY_CLOCK };
        let slots = in_flight.clamp(least, *SLOTS.end());
        let room = if let Taken::Bytes(bytes) = taken { bytes } else { OF_CHAIN };
        let ring = Ring::new(slots as u32, room)?;
        ring.follow_frame_pointers(taken == Taken::FramePointers);
        let handler = Handler::install(Box::new(ring))?;
        let mut sampler = Self {
            threads: Map::default(),
            handler,
            clock,
            interval,
            position: 0,
            beyond: 0,
            lost: 0,
            last_look: None,
            without: 0,
            is_stopped: false,
        };
        if !sampler.look()? {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(sampler)
    }

    /// Returns the number of samples in a second of a thread's time.
    #[must_use]
    pub fn frequency(&self) -> u64 {
        1_000_000_000 / self.interval
    }

    /// Returns the longest time between two calls of [`read`](Self::read). A thread that lives for less than
    /// 20 ms, or than this time, may have no sample.
    #[must_use]
    pub fn every(&self) -> Duration {
        Duration::from_nanos(2 * self.interval).clamp(SHORTEST, Duration::from_millis(ROOM_FOR / 2))
    }

    /// Returns the number of threads that have no samples, because they block the signal or nobody wants
    /// them.
    #[must_use]
    pub fn blocking(&self) -> usize {
        self.threads.values().filter(|of| matches!(of, Sampled::Not(_))).count()
    }

    /// Returns how often a thread got no timer.
    #[must_use]
    pub fn without(&self) -> u64 {
        self.without
    }

    /// Looks for threads that have started or ended. Returns false if they cannot be listed.
    fn look(&mut self) -> io::Result<bool> {
        let Some(present) = threads() else { return Ok(false) };
        self.last_look = Some(Instant::now());
        self.threads.retain(|tid, _| present.binary_search(tid).is_ok());
        let mut failure = None;
        for tid in present {
            // A thread blocks signals while it is made, and one that starts a recording may do so too.
            let looks = match self.threads.get_mut(&tid) {
                None => 1,
                Some(Sampled::By { .. }) => continue,
                Some(Sampled::Not(looks)) => {
                    *looks = looks.wrapping_add(1);
                    if !looks.is_power_of_two() && !looks.is_multiple_of(ASK_AGAIN) {
                        continue;
                    }
                    *looks
                }
            };
            let timer = match &self.clock {
                Clock::CpuTime => Timer::of_thread(tid, None, self.interval),
                Clock::WallTime(wants) if wants(tid) => {
                    Timer::of_thread(tid, Some(CLOCK_MONOTONIC), self.interval)
                }
                Clock::WallTime(_) => Ok(Found::Blocks),
            };
            match timer {
                Ok(Found::Timer(_timer)) => drop(self.threads.insert(tid, Sampled::By { _timer })),
                Ok(Found::Blocks) => drop(self.threads.insert(tid, Sampled::Not(looks))),
                Ok(Found::Ended) => {}
                Err(e) => failure = Some(e),
            }
        }
        failure.map_or(Ok(true), Err)
    }

    /// Calls `each` for the samples since the last call, and looks for new threads.
    ///
    /// A signal can stand for several samples: those for which the thread's timer expired while the thread
    /// was in the kernel. They have the same stack; the time is that of the last one.
    pub fn read(&mut self, mut each: impl FnMut(Record<'_>, Stamp, Earlier)) {
        let (pid, interval) = (std::process::id(), self.interval);
        let beyond = &mut self.beyond;
        self.position = self.handler.ring().read(self.position, |head, passed, stack| {
            *beyond += u64::from(head.missed.saturating_sub(MOST_MISSED));
            let earlier = Earlier { count: head.missed.min(MOST_MISSED), interval };
            let (registers, call_chain) = (&head.registers[..REGISTERS], Words::of_bytes(passed));
            as_record(&Sample { registers, call_chain, stack }, |record| {
                each(record, Stamp { pid, tid: head.tid, time: head.time, id: 0, cpu: head.cpu }, earlier);
            });
        });
        if self.is_stopped {
            return;
        }
        if !self.handler.is_installed() {
            self.stop(); // the program has a handler of its own now, which would get these signals
        } else if self.last_look.is_none_or(|at| at.elapsed() >= LOOK) && self.look().is_err() {
            self.without += 1;
        }
    }

    /// Ends the recording. What the ring has can still be read.
    pub fn stop(&mut self) {
        self.is_stopped = true;
        self.threads.clear();
    }

    /// Returns whether the recording has ended.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Returns the number of samples that were lost since the last call, because the ring was full, or
    /// because one signal stood for too many.
    pub fn newly_lost(&mut self) -> u64 {
        let all = self.handler.ring().lost() + self.beyond;
        all - std::mem::replace(&mut self.lost, all)
    }
}
