//! The kind of an event.

use crate::abi::{self, EventAttr, flag, sample};
use crate::sys;

/// Which later tasks an event counts for, beside its own thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// The threads that its thread starts, and theirs. Forked processes are left out. Linux 5.13 has it.
    Threads,
    /// The threads and the processes that its thread starts, and theirs.
    All,
}

/// What is counted, in user mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Cycles of the processors.
    Cycles,
    /// Instructions that were executed.
    Instructions,
    /// Accesses that found their data in no cache, as the processor defines it.
    CacheMisses,
    /// The CPU time, in ns. The kernel counts it itself, so each machine has it.
    TaskClock,
}

/// The kind of an event, and what its records contain. The times of all records are `CLOCK_BOOTTIME`,
/// but for those of a tracepoint.
///
/// Events whose records share a ring need the same [`Layout`] only in their samples: the other records end
/// with the same fields.
#[derive(Clone, Copy, Debug)]
pub struct Attributes(pub(crate) EventAttr);

/// What the parser must know: the fields of a sample, and the clock of the times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// `PERF_SAMPLE_*`
    pub(crate) sample_type: u64,
    /// The number of user registers in a sample.
    pub(crate) registers: u32,
    /// What this process's time namespace adds to the kernel's `CLOCK_BOOTTIME`, in ns; wrapping. Times of
    /// records are the kernel's, and all others in a trace those that the process reads.
    pub(crate) clock_offset: u64,
}

impl Attributes {
    fn software(config: u64) -> Self {
        Self(EventAttr {
            kind: abi::TYPE_SOFTWARE,
            size: size_of::<EventAttr>() as u32,
            config,
            sample_type: sample::TID | sample::TIME | sample::ID | sample::CPU,
            read_format: abi::FORMAT_ID | abi::FORMAT_LOST,
            flags: flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV | flag::SAMPLE_ID_ALL | flag::USE_CLOCKID,
            clockid: abi::CLOCK_BOOTTIME,
            ..EventAttr::default()
        })
    }

    /// The context switches of a thread, and its start, name and end: [`Record::Switch`](crate::Record),
    /// `Fork`, `Comm` and `Exit`.
    #[must_use]
    pub fn switches() -> Self {
        Self::software(abi::SW_DUMMY).with(flag::CONTEXT_SWITCH | flag::COMM | flag::COMM_EXEC | flag::TASK)
    }

    /// Samples by the CPU time of the thread, `frequency` in a second (the kernel permits up to 100,000 at
    /// most; `kernel.perf_event_max_sample_rate`). By themselves they contain only the stamp: add
    /// [`call_chain`](Self::call_chain) or [`user_stack`](Self::user_stack).
    #[must_use]
    pub fn cpu_clock(frequency: u32) -> Self {
        let mut clock = Self::software(abi::SW_CPU_CLOCK).with(flag::FREQ);
        clock.0.sample_period = u64::from(frequency);
        clock.0.sample_type |= sample::IP;
        clock
    }

    /// A sample at each switch away from the thread, which waits or was preempted. Needs
    /// `kernel.perf_event_paranoid` of 1 or less, or `CAP_PERFMON`. Add
    /// [`user_stack`](Self::user_stack) for where it was.
    #[must_use]
    pub fn at_switches() -> Self {
        let mut at = Self::software(abi::SW_CONTEXT_SWITCHES);
        at.0.flags &= !flag::EXCLUDE_KERNEL; // the switch itself happens in the kernel
        at.0.sample_period = 1;
        at.0.sample_type |= sample::IP;
        at
    }

    /// A counter without records: [`Counts`](crate::Counts) reads it.
    #[must_use]
    pub fn count(counter: Counter) -> Self {
        let (kind, config) = match counter {
            Counter::Cycles => (abi::TYPE_HARDWARE, abi::HW_CYCLES),
            Counter::Instructions => (abi::TYPE_HARDWARE, abi::HW_INSTRUCTIONS),
            Counter::CacheMisses => (abi::TYPE_HARDWARE, abi::HW_CACHE_MISSES),
            Counter::TaskClock => (abi::TYPE_SOFTWARE, abi::SW_TASK_CLOCK),
        };
        Self(EventAttr {
            kind,
            size: size_of::<EventAttr>() as u32,
            config,
            read_format: abi::FORMAT_TOTAL_TIME_ENABLED | abi::FORMAT_TOTAL_TIME_RUNNING,
            flags: flag::EXCLUDE_KERNEL | flag::EXCLUDE_HV,
            ..EventAttr::default()
        })
    }

    /// Each hit of a tracepoint, with its raw fields. `id` is the number in tracefs, which needs rights. The
    /// times are `CLOCK_MONOTONIC`: the kernel refuses others for tracepoints.
    #[must_use]
    pub fn tracepoint(id: u64) -> Self {
        let mut point = Self::software(id);
        point.0.kind = abi::TYPE_TRACEPOINT;
        point.0.clockid = abi::CLOCK_MONOTONIC;
        point.0.flags &= !flag::EXCLUDE_KERNEL;
        point.0.sample_period = 1;
        point.0.sample_type |= sample::RAW;
        point
    }

    fn with(mut self, flags: u64) -> Self {
        self.0.flags |= flags;
        self
    }

    /// Counts for later threads too, or also for later processes.
    #[must_use]
    pub fn inherit(mut self, inherit: Inherit) -> Self {
        self.0.flags &= !flag::INHERIT_THREAD;
        self.with(match inherit {
            Inherit::Threads => flag::INHERIT | flag::INHERIT_THREAD,
            Inherit::All => flag::INHERIT,
        })
    }

    /// Adds [`Record::Switch`](crate::Record). One event that has samples too costs a switch less than two
    /// do.
    #[must_use]
    pub fn and_switches(self) -> Self {
        self.with(flag::CONTEXT_SWITCH)
    }

    /// Adds [`Record::Fork`](crate::Record), `Comm` and `Exit`.
    #[must_use]
    pub fn tasks(self) -> Self {
        self.with(flag::COMM | flag::COMM_EXEC | flag::TASK)
    }

    /// Adds [`Record::Mmap`](crate::Record) for each file that is mapped to be executed.
    #[must_use]
    pub fn mappings(self) -> Self {
        self.with(flag::MMAP | flag::MMAP2)
    }

    /// The event counts nothing before [`Event::enable`](crate::Event::enable).
    #[must_use]
    pub fn disabled(self) -> Self {
        self.with(flag::DISABLED)
    }

    /// The event counts nothing before its thread's next exec.
    #[must_use]
    pub fn enable_on_exec(self) -> Self {
        self.with(flag::DISABLED | flag::ENABLE_ON_EXEC)
    }

    /// Wakes a poll of the ring when it contains this number of bytes that nobody has been woken for. Far
    /// less than the ring: a reader that is woken when the ring is full is woken too late.
    #[must_use]
    pub fn wake_at(mut self, bytes: u32) -> Self {
        self.0.wakeup_watermark = bytes;
        self.with(flag::WATERMARK)
    }

    /// Samples contain the user call chain by frame pointers, at most `depth` frames (0: the kernel's limit).
    #[must_use]
    pub fn call_chain(mut self, depth: u16) -> Self {
        self.0.sample_type |= sample::CALLCHAIN;
        self.0.sample_max_stack = depth;
        self.with(flag::EXCLUDE_CALLCHAIN_KERNEL)
    }

    /// Samples contain user registers (a mask of the kernel's `PERF_REG_*`) and the first bytes of the user
    /// stack: a multiple of 8 below 65,528.
    #[must_use]
    pub fn user_stack(mut self, registers: u64, bytes: u32) -> Self {
        self.0.sample_type |= sample::REGS_USER | sample::STACK_USER;
        self.0.sample_regs_user = registers;
        self.0.sample_stack_user = bytes;
        self
    }

    /// For kernels before 6.0, which do not count what an event has lost.
    pub(crate) fn without_lost(mut self) -> Self {
        self.0.read_format &= !abi::FORMAT_LOST;
        self
    }

    /// Returns the fields of the samples.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout {
            sample_type: self.0.sample_type,
            registers: self.0.sample_regs_user.count_ones(),
            clock_offset: sys::namespace_offset("boottime"),
        }
    }
}
