//! The settings of a session: [`config`] has the values, and the methods of [`SessionBuilder`] set them.
//! Those of the output and of snapshots are in files of their own.

mod config;
mod output;
mod requester;
mod triggers;

use std::time::Duration;

#[cfg(feature = "enable")]
pub(crate) use config::Rotate;
pub(crate) use config::{Config, Detail, OutputConfig};
pub(crate) use requester::Requester;

use crate::error::Error;
use crate::filter::Filter;
use crate::heap_profile::HeapProfile;
use crate::options::{ClockSource, Overflow};
use crate::process_counters::ProcessCounters;
use crate::sampling::{OwnStacks, Sampling};
use crate::slow::SlowRules;
use crate::vocabulary::Level;

/// The default size of the ring, in bytes: room for 5 to 10 ms of events at the full speed of the hot path.
pub(crate) const DEFAULT_BUFFER: u64 = 16 << 20;
/// The default size of a chunk, in bytes: some 500 scopes.
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) const DEFAULT_CHUNK: u32 = 16 << 10;

/// The default limit above which a poll is marked.
const POLL_LIMIT: Duration = Duration::from_millis(10);

/// The default time between two heartbeats.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// The default number of snapshots of slow slices that are kept.
const KEEP_SNAPSHOTS: u32 = 10;

/// The default of the shortest time between two triggered snapshots.
pub(crate) const TRIGGER_INTERVAL: Duration = Duration::from_secs(10);

/// The settings of a session. Made by [`Session::builder`](crate::Session::builder).
///
/// ```
/// use hairline::{MemoryOutput, Overflow, Session, parse_size};
///
/// # fn main() -> Result<(), hairline::Error> {
/// let memory = MemoryOutput::new();
/// let session = Session::builder()
///     .output_memory(&memory)
///     .categories("net,db.*")
///     .buffer_size(parse_size("4M")?)
///     .overflow(Overflow::Drop)
///     .start()?;
/// session.stop()?;
/// # Ok(())
/// # }
/// ```
#[must_use = "a session starts with `start`"]
#[derive(Debug)]
pub struct SessionBuilder {
    pub(crate) config: Config,
    categories: Option<String>,
    counters: Option<String>,
    /// The filter of [`stacks`](Self::stacks).
    stacks: Option<String>,
    /// The rules of [`trigger_on_slow`](Self::trigger_on_slow).
    slow: Vec<(String, Duration)>,
}

impl SessionBuilder {
    pub(crate) fn new() -> Self {
        Self {
            config: Config {
                output: OutputConfig::None,
                format: None,
                filter: Filter::default(),
                level: Level::Info,
                buffer_size: DEFAULT_BUFFER,
                chunk_size: None,
                overflow: Overflow::Drop,
                clock: ClockSource::Counter,
                detail: Detail::default(),
                counters: None,
                scheduling: false,
                sampling: None,
                own_stacks: OwnStacks::default(),
                heap_profile: None,
                heartbeat: HEARTBEAT,
                trigger_interval: TRIGGER_INTERVAL,
                record_panics: false,
                trigger_on_panic: false,
                trigger_on_signal: None,
                slow: SlowRules::default(),
                slow_stacks: false,
                stacks: None,
                hold_limit: None,
                poll_limit: POLL_LIMIT,
                keep_snapshots: KEEP_SNAPSHOTS,
                finish_on_signals: false,
                max_file_size: None,
                rotate: None,
                #[cfg(feature = "compress")]
                compress: false,
                requester: Requester::Program,
            },
            categories: None,
            counters: None,
            slow: Vec::new(),
            stacks: None,
        }
    }

    /// Sets which categories are recorded (default: all). The filter is a list of patterns between commas,
    /// and the last pattern that matches decides: `"net,db.*,-db.verbose"` includes `net` and all of `db.`
    /// but `db.verbose`; `"-gpu"` includes all but `gpu`. `*` matches any run of characters. See [`Filter`].
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// let builder = Session::builder().output_memory(&MemoryOutput::new());
    /// assert!(builder.categories("net,,db").start().is_err());
    /// ```
    pub fn categories(mut self, filter: &str) -> Self {
        self.categories = Some(filter.to_owned());
        self
    }

    /// Sets the most verbose level of spans, events and messages of the crates `tracing` and `log` that is
    /// recorded (default: [`Level::Info`]; [`Level::Trace`] records all). [`trace_log!`](crate::trace_log)
    /// has a category, to which [`categories`](Self::categories) applies, and is recorded at each level.
    ///
    /// ```
    /// # let memory = hairline::MemoryOutput::new();
    /// let builder = hairline::Session::builder().output_memory(&memory);
    /// let session = builder.level(hairline::Level::Debug).start()?; // all but Trace
    /// # session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn level(mut self, most_verbose: Level) -> Self {
        self.config.level = most_verbose;
        self
    }

    /// Sets the size of the ring between the threads and the output, in bytes (default: 16 MiB). At least
    /// four chunks.
    pub fn buffer_size(mut self, bytes: u64) -> Self {
        self.config.buffer_size = bytes;
        self
    }

    /// Sets the size of a chunk of the ring, in bytes: a power of two from 4 KiB to 16 MiB. The default is 16
    /// KiB, or with [`Overflow::Overwrite`] a 64th of the ring, from 4 KiB to 64 KiB.
    ///
    /// Each recording thread owns a chunk, and loses it if the thread is idle and others need a chunk. The
    /// longest record is a little shorter than a chunk, with [`Overflow::Overwrite`] than half a chunk.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).chunk_size(64 << 10).start()?;
    /// session.stop()?;
    /// # if cfg!(feature = "enable") {
    /// assert!(Session::builder().output_memory(&memory).chunk_size(5_000).start().is_err());
    /// # }
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn chunk_size(mut self, bytes: u32) -> Self {
        self.config.chunk_size = Some(bytes);
        self
    }

    /// Sets what happens to an event if the ring has no room for it (default: [`Overflow::Drop`]).
    ///
    /// ```
    /// # use hairline::{Overflow, Session, trace_instant};
    /// # let path = std::env::temp_dir().join(format!("hairline-overflow-{}.pftrace", std::process::id()));
    /// let session = Session::builder().overflow(Overflow::Overwrite).start()?; // a flight recorder
    /// trace_instant!("net", "retry");
    /// let snapshot = session.snapshot(&path)?; // the last seconds
    /// # if cfg!(feature = "enable") {
    /// assert_eq!(snapshot.records, 1);
    /// # }
    /// # let _ = std::fs::remove_file(path);
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.config.overflow = overflow;
        self
    }

    /// Sets the clock that events read (default: [`ClockSource::Counter`]).
    pub fn clock(mut self, clock: ClockSource) -> Self {
        self.config.clock = clock;
        self
    }

    /// Records the CPU time of the thread at both ends of each scope (default: `false`). To read it is a
    /// system call of 100 ns to 400 ns.
    pub fn thread_time(mut self, on: bool) -> Self {
        self.config.detail.thread_time = on;
        self
    }

    /// Records the place in the source with each scope and instant (default: `false`). In FXT, each line that
    /// records events takes one of the 32,767 strings of a trace. Events with options, nested values or text
    /// by `Display` take longer than without the place.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session, trace_instant};
    /// let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).source_locations(true).start()?;
    /// trace_instant!("net", "retry");
    /// session.stop()?;
    /// # if cfg!(feature = "enable") {
    /// let (trace, file) = (memory.to_vec(), file!().as_bytes());
    /// assert!(trace.windows(file.len()).any(|bytes| bytes == file));
    /// # }
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn source_locations(mut self, on: bool) -> Self {
        self.config.detail.source_locations = on;
        self
    }

    /// Records when each thread of the process runs, waits for a processor (preempted, or just started) or
    /// sleeps (default: `false`), for all threads, present and future. The trace has the thread states and
    /// the rows of the processors that the UI knows, beside the events of the threads.
    /// [`categories`](Self::categories) does not apply.
    ///
    /// The Linux kernel records the switches (perf events), for an ordinary user with
    /// `kernel.perf_event_paranoid` 2 or less. Recording threads do nothing for it. The session opens a file
    /// descriptor for each thread and processor, and locks 516 KiB for each processor. Where the kernel does
    /// not permit it, or less than half of the limit of open files would stay free, the session records all
    /// else: a note of the [`Summary`](crate::Summary) has the error and what helps. Switches that found no
    /// room in the kernel's ring are counted as [`Lost::kernel_ring`](crate::Lost::kernel_ring). In the
    /// repository, `docs/guide/sessions.md` says what the states mean, and what only root gets.
    ///
    /// A flight recorder keeps the last 50,000 to 70,000 changes of state, also for recovery after a kill. A
    /// forked child without a session of its own records none.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).scheduling(true).start()?;
    /// std::thread::sleep(std::time::Duration::from_millis(1)); // a stretch of sleep in the trace
    /// session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn scheduling(mut self, on: bool) -> Self {
        self.config.scheduling = on;
        self
    }

    /// Records the call stacks of the process's threads, present and future, `frequency` times in a second of
    /// CPU time of each thread (default: 0, none; more than 10,000 are an [`Error::Value`] at the start). 997
    /// is a good choice: it does not keep step with timers. The UI shows the samples as a flame graph of each
    /// selection, with functions, inlined functions and lines.
    ///
    /// The Linux kernel takes the samples (perf events), for an ordinary user with
    /// `kernel.perf_event_paranoid` 2 or less. Each interrupts its thread for some 20 us. Where the kernel
    /// refuses that, as in most containers, each thread takes its own samples in a handler of `SIGPROF`, and
    /// so it does in a flight recorder, where that costs less: a note of the [`Summary`](crate::Summary) says
    /// so. The session's own thread unwinds the stacks, and looks
    /// up the functions when the session ends, which takes as long as it takes to read the debug information.
    /// In the repository, `docs/guide/sessions.md` has the limits of both ways.
    ///
    /// It needs the crate's feature `sampling`. Without it, and where neither way is there, the session
    /// records all else: a note of the [`Summary`](crate::Summary) says why. Samples that
    /// found no room in their ring are counted as [`Lost::kernel_ring`](crate::Lost::kernel_ring).
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).sampling(997).start()?;
    /// // ... what takes CPU time is in the samples
    /// session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn sampling(mut self, frequency: u32) -> Self {
        self.config.sampling = (frequency > 0).then_some(Sampling::CpuTime(frequency));
        self
    }

    /// Records what [`sampling`](Self::sampling) does, and replaces it, but by signals also where the kernel
    /// permits its own samples (default: 0, none; more than 10,000 are an [`Error::Value`] at the start). The
    /// kernel's take some 1 us at each context switch of the program, and these nothing. All that `sampling`
    /// says of samples in a handler applies.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).signal_sampling(99).start()?;
    /// session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn signal_sampling(mut self, frequency: u32) -> Self {
        self.config.sampling = (frequency > 0).then_some(Sampling::Signals(frequency));
        self
    }

    /// Records what [`sampling`](Self::sampling) does, and replaces it, but in a flight recorder too by
    /// the kernel where it permits that (default: 0, none; more than 10,000 are an [`Error::Value`] at
    /// the start). A flight recorder takes up to as many samples in a second as the kernel has ticks
    /// (mostly 250) by signals otherwise.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).kernel_sampling(99).start()?;
    /// session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn kernel_sampling(mut self, frequency: u32) -> Self {
        self.config.sampling = (frequency > 0).then_some(Sampling::Kernel(frequency));
        self
    }

    /// Records the call stacks of threads `frequency` times in a second, whether they run or sleep (default:
    /// 0, none; more than 1,000 are an [`Error::Value`] at the start): they show what a thread waits in.
    /// `threads` is a filter of the threads' names, of which the kernel has 15 bytes, in the form of that of
    /// [`categories`](Self::categories): `worker*`, or an empty one for all. It replaces
    /// [`sampling`](Self::sampling).
    ///
    /// Each thread takes its own samples, in a handler of `SIGPROF`: the signal wakes a thread that sleeps
    /// for some 10 us. As with all samples in a handler, some system calls of sleeping threads end with
    /// `EINTR`: `epoll_wait`, `nanosleep` and what else `SA_RESTART` does not restart. In the repository,
    /// `docs/guide/sessions.md` has the other limits.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).wall_sampling(99, "worker*")?.start()?;
    /// session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Filter`] if the filter is malformed.
    pub fn wall_sampling(mut self, frequency: u32, threads: &str) -> Result<Self, Error> {
        let threads = Filter::parse(threads)?;
        self.config.sampling = (frequency > 0).then_some(Sampling::WallTime(frequency, threads));
        Ok(self)
    }

    /// Records the call stack of events (default: of none): of each slice at its begin, and of each instant,
    /// of the categories that this filter includes. It has the form of that of
    /// [`categories`](Self::categories). Events on tracks have none. The stack has the time of the event, and
    /// is a sample of its own kind. The option `stack: true` of a macro asks for it at one place.
    ///
    /// The thread copies its registers and the first 32 KiB of its stack, which takes 0.6 to 8 us. It needs
    /// the crate's feature `sampling` and Linux on x86-64 or aarch64, and has the limits of
    /// [`sampling`](Self::sampling). Without them the session records all else, and a note of the
    /// [`Summary`](crate::Summary) says why.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session, trace_scope};
    /// # let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).stacks("db.*").start()?;
    /// {
    ///     trace_scope!("db.query", "select"); // who has asked for this?
    /// }
    /// session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn stacks(mut self, filter: &str) -> Self {
        self.stacks = Some(filter.to_owned());
        self
    }

    /// Follows frame pointers where a thread records its own stack (default: false): samples by signals and by
    /// the clock, the stacks of events and of slow slices, and those of the heap profile. A stack is then its
    /// addresses, 8 bytes for each frame, instead of a copy of up to 32 KiB that is unwound later. In the
    /// repository, `docs/guide/sessions.md` says how much less that costs. The kernel's samples stay copies.
    ///
    /// The program must have frame pointers: build all of it with `-C force-frame-pointers=yes` in `RUSTFLAGS`.
    /// A function without one, as `memcpy` of most C libraries, hides its caller. Where more than a tenth of
    /// the stacks, and more than 20, are known to lack callers, a note of the [`Summary`](crate::Summary) has
    /// their number. A chain is followed for at most 255 frames and 8 MiB. The setting has no effect without
    /// the crate's feature `sampling`, and on other systems than Linux on x86-64 or aarch64.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let builder = Session::builder().output_memory(&memory).signal_sampling(99);
    /// let session = builder.frame_pointers(true).start()?;
    /// session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn frame_pointers(mut self, on: bool) -> Self {
        self.config.own_stacks = if on { OwnStacks::ByFramePointers } else { OwnStacks::Copied };
        self
    }

    /// Records each hold of a lock of `hairline::sync` that takes `limit` or longer as a slice `hold: NAME`
    /// (default: none). In such a session, each lock and unlock reads the clock. Of more than 16 locks that a
    /// thread holds at once, those that it took last are timed. It needs the crate's feature `sync`, whose
    /// module says what the slice has. [`start`](Self::start) fails if the limit is 0.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use hairline::{MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).hold_limit(Duration::from_millis(1)).start()?;
    /// session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn hold_limit(mut self, limit: Duration) -> Self {
        self.config.hold_limit = Some(limit);
        self
    }

    /// Marks each recorded poll of a task that takes `limit` or longer (default: 10 ms; [`Duration::MAX`]: none):
    /// by an instant `long poll` at its end, on its thread, with the number of the task and the time in
    /// microseconds. The tasks are those of `hairline-tokio` and of
    /// [`traced_task`](crate::TraceFuture::traced_task). [`start`](Self::start) fails if the limit is 0.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use hairline::{MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).poll_limit(Duration::from_millis(1)).start()?;
    /// session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn poll_limit(mut self, limit: Duration) -> Self {
        self.config.poll_limit = limit;
        self
    }

    /// Records who allocated the memory (default: nobody): by call stack, the bytes and blocks that were
    /// allocated and freed since the session began. What is live at the session's end is in the trace, and
    /// with [`at_peaks`](HeapProfile::at_peaks) what was live at each new peak. The UI shows a heap profile,
    /// with a flame graph of each dump. [`categories`](Self::categories) does not apply.
    ///
    /// Allocations go through [`Heap`](crate::Heap), which must be the global allocator. Each thread samples
    /// its own, one in 512 KiB of allocated bytes on average, so the sums are estimates. A reallocation is a
    /// free and an allocation, at the stack of the reallocation. In the repository, `docs/guide/sessions.md`
    /// says how exact the sums are, what a sample costs, and what is not in the profile.
    ///
    /// It needs the crate's feature `sampling`, and Linux on x86-64 or aarch64. Without them the session
    /// records all else: a note of the [`Summary`](crate::Summary) says why. Another note has the number of
    /// samples that found no room.
    ///
    /// ```
    /// # use hairline::{HeapProfile, MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let builder = Session::builder().output_memory(&memory);
    /// let session = builder.heap_profile(HeapProfile::new().every(64 << 10)).start()?;
    /// let kept = vec![1_u8; 10 << 20]; // with a global allocator in a `Heap`, live in the trace
    /// session.stop()?;
    /// # drop(kept);
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn heap_profile(mut self, profile: HeapProfile) -> Self {
        self.config.heap_profile = Some(profile);
        self
    }

    /// Records counters of the process (default: none), sampled ten times in a second by the session's own
    /// thread. The text is a list of these groups between commas, or `all`. `@100` at its end is the number
    /// of samples in a second, from 1 to 1000.
    ///
    /// The groups are `rss`, `cpu`, `faults`, `switches`, `threads`, `fds`, `io` and `hw`. In the repository,
    /// `docs/guide/sessions.md` has a table of their counters. [`categories`](Self::categories) does not
    /// apply. A sample of all groups takes 50 to 100 us of the session's thread.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// # let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).counters("rss,cpu@100").start()?;
    /// session.stop()?;
    /// assert!(Session::builder().output_memory(&memory).counters("memory").start().is_err());
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn counters(mut self, groups: &str) -> Self {
        self.counters = Some(groups.to_owned());
        self
    }

    /// As [`counters`](Self::counters), for a variable of the environment.
    #[cfg(feature = "enable")]
    pub(crate) fn counters_of(mut self, variable: &'static str, groups: &str) -> Result<Self, Error> {
        self.config.counters = Some(ProcessCounters::parse(variable, groups)?);
        Ok(self)
    }

    /// Sets the time between two heartbeats of a `TrackEvent` stream (default: 10 s; at least 10 ms). A
    /// heartbeat repeats the time of all clocks, and marks a place where a reader of a part of the stream can
    /// begin.
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.config.heartbeat = every.max(Duration::from_millis(10));
        self
    }

    /// Returns the names of the settings that differ from their defaults.
    #[cfg(feature = "enable")]
    pub(crate) fn changed(&self) -> Vec<&'static str> {
        let (config, default) = (&self.config, &Self::new().config);
        let output = match config.output {
            OutputConfig::None => "",
            OutputConfig::Path(_) | OutputConfig::Lent(..) => "output",
            OutputConfig::Memory(_) => "output_memory",
            OutputConfig::Writer(_) => "output_writer",
            OutputConfig::Service => "output_traced",
        };
        let (detail, plain) = (config.detail, default.detail);
        let all = [
            (output, !output.is_empty()),
            ("format", config.format.is_some()),
            ("categories", self.categories.is_some()),
            ("level", config.level != default.level),
            ("buffer_size", config.buffer_size != default.buffer_size),
            ("chunk_size", config.chunk_size.is_some()),
            ("overflow", config.overflow != default.overflow),
            ("clock", config.clock != default.clock),
            ("counters", self.counters.is_some()),
            ("scheduling", config.scheduling),
            ("sampling", config.sampling.is_some()),
            ("frame_pointers", config.own_stacks == OwnStacks::ByFramePointers),
            ("heap_profile", config.heap_profile.is_some()),
            ("thread_time", detail.thread_time != plain.thread_time),
            ("source_locations", detail.source_locations != plain.source_locations),
            ("heartbeat", config.heartbeat != default.heartbeat),
            ("trigger_interval", config.trigger_interval != default.trigger_interval),
            ("record_panics", config.record_panics),
            ("trigger_on_panic", config.trigger_on_panic),
            ("trigger_on_signal", config.trigger_on_signal.is_some()),
            ("trigger_on_slow", !self.slow.is_empty() || !config.slow.is_empty()),
            ("slow_stacks", config.slow_stacks),
            ("stacks", self.stacks.is_some() || config.stacks.is_some()),
            ("hold_limit", config.hold_limit.is_some()),
            ("poll_limit", config.poll_limit != default.poll_limit),
            ("keep_snapshots", config.keep_snapshots != default.keep_snapshots),
            ("finish_on_signals", config.finish_on_signals),
            ("max_file_size", config.max_file_size.is_some()),
            ("rotate", config.rotate.is_some()),
            #[cfg(feature = "compress")]
            ("compress", config.compress),
        ];
        all.into_iter().filter(|(_, is_changed)| *is_changed).map(|(name, _)| name).collect()
    }

    /// Returns the settings.
    ///
    /// # Errors
    /// [`Error::Filter`] if the category filter is malformed, [`Error::Value`] if another setting is.
    pub(crate) fn into_config(mut self) -> Result<Config, Error> {
        if let Some(text) = &self.categories {
            self.config.filter = Filter::parse(text)?;
        }
        if let Some(text) = &self.stacks {
            self.config.stacks = Some(Filter::parse(text)?);
        }
        for (pattern, limit) in &self.slow {
            self.config.slow.add(pattern, *limit)?;
        }
        if let Some(text) = &self.counters {
            self.config.counters = Some(ProcessCounters::parse("counters", text)?);
        }
        self.config.sampling.as_ref().map_or(Ok(()), Sampling::check)?;
        let limits = [("hold_limit", self.config.hold_limit), ("poll_limit", Some(self.config.poll_limit))];
        if let Some((what, _)) = limits.into_iter().find(|(_, limit)| *limit == Some(Duration::ZERO)) {
            return Err(Error::Value { what, value: "0".to_owned(), expected: "use a limit above 0" });
        }
        Ok(self.config)
    }
}
