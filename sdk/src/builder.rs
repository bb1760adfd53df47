use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Error;
use crate::filter::Filter;
use crate::options::{ClockSource, Format, Overflow};
use crate::output::MemoryOutput;
use crate::process_counters::ProcessCounters;
use crate::vocabulary::Level;

/// The default size of the ring, in bytes: room for 5 to 10 ms of events at the full speed of the hot path.
pub(crate) const DEFAULT_BUFFER: u64 = 16 << 20;
/// The default size of a chunk, in bytes: some 500 scopes.
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) const DEFAULT_CHUNK: u32 = 16 << 10;

/// The default time between two heartbeats.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

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
}

/// All settings of a session.
#[derive(Debug)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) struct Config {
    pub(crate) output: OutputConfig,
    pub(crate) format: Option<Format>,
    pub(crate) filter: Filter,
    /// The most verbose level of `tracing` and `log` that is recorded.
    pub(crate) level: Level,
    pub(crate) buffer_size: u64,
    pub(crate) chunk_size: Option<u32>,
    pub(crate) overflow: Overflow,
    pub(crate) clock: ClockSource,
    pub(crate) detail: Detail,
    pub(crate) counters: Option<ProcessCounters>,
    /// Whether the context switches of the threads are recorded.
    pub(crate) scheduling: bool,
    /// The samples of call stacks in a second of CPU time.
    pub(crate) sampling: Option<u32>,
    pub(crate) heartbeat: Duration,
    pub(crate) trigger_interval: Duration,
    pub(crate) record_panics: bool,
    pub(crate) trigger_on_panic: bool,
    pub(crate) trigger_on_signal: Option<i32>,
    pub(crate) finish_on_signals: bool,
    pub(crate) max_file_size: Option<u64>,
    pub(crate) rotate: Option<Rotate>,
    #[cfg(feature = "compress")]
    pub(crate) compress: bool,
    /// Whether the environment requests the session, and not the program.
    pub(crate) is_from_environment: bool,
}

/// The settings of an output in several files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) struct Rotate {
    pub(crate) size: u64,
    pub(crate) keep: u32,
}

/// Optional facts that are recorded with each event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) struct Detail {
    /// The CPU time of the thread, at both ends of a scope.
    pub(crate) thread_time: bool,
    /// The place in the source.
    pub(crate) source_locations: bool,
}

#[cfg_attr(not(feature = "enable"), allow(dead_code))]
impl Detail {
    /// Whether all events take the cold path, since the hot path does not write these facts.
    pub(crate) fn is_all_cold(self) -> bool {
        self.thread_time || self.source_locations
    }
}

#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) enum OutputConfig {
    None,
    Path(PathBuf),
    Memory(MemoryOutput),
    Writer(Box<dyn Write + Send>),
}

impl fmt::Debug for OutputConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Memory(_) => f.write_str("Memory"),
            Self::Writer(_) => f.write_str("Writer"),
        }
    }
}

impl SessionBuilder {
    pub(crate) fn new() -> Self {
        Self {
            config: Config {
                output: OutputConfig::None,
                format: None,
                filter: Filter::default(),
                level: Level::Trace,
                buffer_size: DEFAULT_BUFFER,
                chunk_size: None,
                overflow: Overflow::Drop,
                clock: ClockSource::Counter,
                detail: Detail::default(),
                counters: None,
                scheduling: false,
                sampling: None,
                heartbeat: HEARTBEAT,
                trigger_interval: TRIGGER_INTERVAL,
                record_panics: false,
                trigger_on_panic: false,
                trigger_on_signal: None,
                finish_on_signals: false,
                max_file_size: None,
                rotate: None,
                #[cfg(feature = "compress")]
                compress: false,
                is_from_environment: false,
            },
            categories: None,
            counters: None,
        }
    }

    /// Writes the trace to a file, which is created anew. If another process writes a trace to the file, the
    /// session does not start. The extension names the format, unless [`format`](Self::format) does. In the
    /// path, `%p` becomes the id of the process, `%e` the name of its executable, and `%%` a percent sign. A
    /// FIFO is written as long as a process reads it. A FIFO without a reader is an error.
    ///
    /// With [`Overflow::Overwrite`] the file is written at each triggered snapshot and at the session's end.
    /// `%n` becomes the number of the snapshot, from 1. Without `%n`, a triggered snapshot is not replaced at
    /// the session's end.
    ///
    /// With `%p` a forked child has a trace of its own, from its first event on. A session with the same
    /// settings records it. The trace is completed when the child exits, or by this session's handle in the
    /// child. Without `%p` a forked child records nothing.
    ///
    /// ```
    /// # use hairline::{Session, trace_instant};
    /// # let path = std::env::temp_dir().join(format!("hairline-output-{}.fxt", std::process::id()));
    /// let session = Session::builder().output(&path).start()?; // `.fxt` or `.pftrace`
    /// trace_instant!("net", "retry");
    /// let summary = session.stop()?;
    /// # if cfg!(feature = "enable") {
    /// assert_eq!((summary.path, summary.records), (Some(path.clone()), 1));
    /// # }
    /// # let _ = std::fs::remove_file(path);
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn output(mut self, path: impl AsRef<Path>) -> Self {
        self.config.output = OutputConfig::Path(path.as_ref().to_owned());
        self
    }

    /// Keeps the trace in memory. The format is `TrackEvent`, unless [`format`](Self::format) sets another
    /// one.
    pub fn output_memory(mut self, memory: &MemoryOutput) -> Self {
        self.config.output = OutputConfig::Memory(memory.clone());
        self
    }

    /// Writes the trace to any writer, on the drain thread. The format is `TrackEvent`, unless
    /// [`format`](Self::format) sets another one. The writer should not record events itself.
    ///
    /// ```
    /// # use hairline::{Format, Session};
    /// let session = Session::builder().output_writer(std::io::sink()).format(Format::Fxt).start()?;
    /// # session.stop()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn output_writer(mut self, writer: impl Write + Send + 'static) -> Self {
        self.config.output = OutputConfig::Writer(Box::new(writer));
        self
    }

    /// Sets the format of the trace.
    ///
    /// ```
    /// # use hairline::{Format, MemoryOutput, Session};
    /// let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).format(Format::Fxt).start()?;
    /// session.stop()?;
    /// # if cfg!(feature = "enable") {
    /// assert!(memory.to_vec().starts_with(&[0x10, 0, 4, 0x46, 0x78, 0x54, 0x16, 0])); // FXT's magic number
    /// # }
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn format(mut self, format: Format) -> Self {
        self.config.format = Some(format);
        self
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
    /// recorded (default: [`Level::Trace`], all levels). [`trace_log!`](crate::trace_log) has a category, to
    /// which [`categories`](Self::categories) applies, and is recorded at each level.
    ///
    /// ```
    /// # let memory = hairline::MemoryOutput::new();
    /// let builder = hairline::Session::builder().output_memory(&memory);
    /// let session = builder.level(hairline::Level::Info).start()?; // Info, Warn and Error
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
    /// system call of 100 ns to 300 ns, and all events of the session take the cold path.
    pub fn thread_time(mut self, on: bool) -> Self {
        self.config.detail.thread_time = on;
        self
    }

    /// Records the place in the source with each scope and instant (default: `false`). All events of the
    /// session take the cold path.
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
    /// sleeps (default: `false`), for all threads, present and future. The trace has the thread states and the
    /// rows of the processors that the UI knows, beside the events of the threads. [`categories`](Self::categories)
    /// does not apply.
    ///
    /// The Linux kernel records the switches (perf events), for an ordinary user with
    /// `kernel.perf_event_paranoid` 2 or less. A switch out and in takes 1 to 2 us more. Recording threads do
    /// nothing for it. The session opens a file descriptor for each thread and processor, and locks 516 KiB for
    /// each processor. A thread that can run again after a sleep is asleep until it runs: the kernel reports no
    /// wake-ups to a user.
    ///
    /// Where the kernel does not permit it, or half of the limit of open files is too little, the session
    /// records all else: a note of the [`Summary`](crate::Summary) has the error and what helps. Switches that
    /// found no room in the kernel's ring are counted as [`Lost::kernel_ring`](crate::Lost::kernel_ring).
    ///
    /// A flight recorder keeps the last 65,536 changes of state. A forked child without a session of its own
    /// records none.
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
    /// CPU time of each thread (default: 0, none; at most 10,000). 997 is a good choice: it does not keep step
    /// with timers. The UI shows the samples as a flame graph of each selection, with functions, inlined
    /// functions and lines.
    ///
    /// The Linux kernel takes the samples (perf events), for an ordinary user with `kernel.perf_event_paranoid`
    /// 2 or less. Each interrupts its thread for some 20 us. The session's own thread unwinds the stacks, of
    /// which the kernel copies 8 KiB; frame pointers are not needed. It looks up the functions when the session
    /// ends, which takes as long as it takes to read the debug information. Release builds have lines with
    /// `debug = "line-tables-only"`.
    ///
    /// It needs the crate's feature `sampling`. Without it, where the kernel does not permit it, in a flight
    /// recorder and with a rotated output, the session records all else: a note of the
    /// [`Summary`](crate::Summary) says why. Samples that found no room in the kernel's ring are counted as
    /// [`Lost::kernel_ring`](crate::Lost::kernel_ring).
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
        self.config.sampling = (frequency > 0).then_some(frequency.min(10_000));
        self
    }

    /// Records counters of the process (default: none), sampled ten times in a second by the session's own
    /// thread. The text is a list of these groups between commas, or `all`. `@100` at its end is the number of
    /// samples in a second, from 1 to 1000.
    ///
    /// | group | counters |
    /// |---|---|
    /// | `rss` | `process: resident memory`, in bytes |
    /// | `cpu` | `process: cpu`, of all threads: 100 % are one core |
    /// | `faults` | `process: page faults`, and of these `process: major page faults`, which read from a disk |
    /// | `switches` | `process: waits`, for which a thread gave its core up, and `process: preemptions` |
    /// | `threads` | `process: threads` |
    /// | `fds` | `process: open files` |
    /// | `io` | `process: read from disk` and `process: written to disk` |
    ///
    /// Memory, threads and files are the numbers at the sample. The others are rates in a second, and stand
    /// at the sample before: a counter keeps its value up to the next one. A value that stays the same is not
    /// repeated, and one that the system does not tell is left out. [`categories`](Self::categories) does not
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

    /// Sets the shortest time between two snapshots that [`trigger!`](crate::trigger) writes (default: 10 s).
    /// A trigger within that time of the last one is ignored.
    pub fn trigger_interval(mut self, shortest: Duration) -> Self {
        self.config.trigger_interval = shortest;
        self
    }

    /// Records an instant at each panic (default: `false`), on the thread that panics: category `panic`, name
    /// `panic`, arguments `message` and `location`. [`categories`](Self::categories) does not apply to it.
    ///
    /// The instant is recorded before the program's own panic hook runs. After the hook, the thread waits until
    /// the output has the instant, at most 1 s, also if the panic aborts the process. While an output is
    /// stuck, only one panic waits. In a session with [`Overflow::Overwrite`] the instant is in the ring, and
    /// [`trigger_on_panic`](Self::trigger_on_panic) writes a snapshot that has it.
    ///
    /// A hook that the program sets after the session's start replaces the one of this crate. Then panics are
    /// recorded only if the program's hook calls the one that [`std::panic::take_hook`] has returned. A panic
    /// in the code of an argument, inside of an event, is counted in
    /// [`Lost::reentrant`](crate::Lost::reentrant) instead.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session};
    /// let session = Session::builder().output_memory(&MemoryOutput::new()).record_panics(true).start()?;
    /// let _ = std::panic::catch_unwind(|| panic!("no such row"));
    /// let summary = session.stop()?;
    /// # if cfg!(feature = "enable") {
    /// assert_eq!(summary.records, 1);
    /// # }
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn record_panics(mut self, on: bool) -> Self {
        self.config.record_panics = on;
        self
    }

    /// Writes a snapshot at a panic (default: `false`), after the panic hooks that were installed before have
    /// run. The snapshot is complete when the panic continues, also if the panic aborts the process. A second
    /// panic within [`trigger_interval`](Self::trigger_interval) writes none. The panicking thread waits for
    /// the snapshot, at most 5 s. For sessions with [`Overflow::Overwrite`].
    ///
    /// ```
    /// # use hairline::{Overflow, Session, trace_instant};
    /// # let path = std::env::temp_dir().join(format!("hairline-panic-{}.pftrace", std::process::id()));
    /// let recorder = Session::builder().overflow(Overflow::Overwrite).output(&path);
    /// let session = recorder.trigger_on_panic(true).start()?;
    /// trace_instant!("db", "query");
    /// let _ = std::panic::catch_unwind(|| panic!("no such row"));
    /// # if cfg!(feature = "enable") {
    /// assert!(path.exists()); // the snapshot is complete
    /// # }
    /// # drop(session);
    /// # let _ = std::fs::remove_file(path);
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn trigger_on_panic(mut self, on: bool) -> Self {
        self.config.trigger_on_panic = on;
        self
    }

    /// Writes a snapshot within 0.2 s after a signal, for instance `SIGUSR2` (`12` on Linux). The program's
    /// own handler of the signal is called too. From then on the signal does not end the process, also after
    /// the session's end. For sessions with [`Overflow::Overwrite`]. [`start`](Self::start) fails if the
    /// signal cannot be handled.
    pub fn trigger_on_signal(mut self, signal: i32) -> Self {
        self.config.trigger_on_signal = Some(signal);
        self
    }

    /// Completes the trace when SIGTERM, SIGINT or SIGHUP ends the process (default: `false`). Without this
    /// setting the trace has to be recovered by the command `hairline recover`. The process then dies of the same signal, so
    /// its parent sees the same status as without tracing. A signal that the program handles is left to the
    /// program. The process ends at once at a second signal, and if the output accepts no bytes for 3 s.
    pub fn finish_on_signals(mut self, on: bool) -> Self {
        self.config.finish_on_signals = on;
        self
    }

    /// Limits the output to `bytes` (default: no limit; at least 64 KiB). When the next batch would exceed
    /// the limit, the session finishes the trace and stops recording. The file is complete, and this is no
    /// error. Records that are in the ring then are counted in [`Lost::output`](crate::Lost::output), and
    /// [`Summary::notes`](crate::Summary::notes) has a note.
    ///
    /// The trace may end before the limit: by one chunk for each recording thread, and with `compress` by 1
    /// MiB of records before their compression. Without effect with [`Overflow::Overwrite`], whose snapshots
    /// are as large as the ring.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session, trace_instant};
    /// let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).max_file_size(64 << 10).start()?;
    /// for attempt in 0..100_000 {
    ///     trace_instant!("net", "retry", attempt);
    /// }
    /// let summary = session.stop()?;
    /// assert!(memory.len() <= 64 << 10);
    /// # if cfg!(feature = "enable") {
    /// assert!(summary.records < 100_000 && !summary.notes.is_empty());
    /// # }
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.config.max_file_size = Some(bytes);
        self
    }

    /// Continues in a new file when the output has grown to `size` bytes (at least 64 KiB), and keeps the
    /// newest `keep` files, the current one included (0: all files). The newest file is at the
    /// [path](Self::output) itself. Older files are numbered in the order of their ends: `trace.pftrace`, and
    /// `trace.1.pftrace`, `trace.2.pftrace`, ... They replace the numbered files of an earlier run.
    ///
    /// Each file is a complete trace. It starts with all strings and tracks that its records refer to, and
    /// with the begins of open slices, at their own time. In the file before, these slices have no end. Every
    /// record is in one file only. A file may exceed `size` by one chunk, or more if its start takes more
    /// than half of `size`. If two threads record the begin and the first step of a flow at nearly the same
    /// time, and an FXT file ends between the two, that arrow is not shown.
    ///
    /// If the next file cannot be created, the output continues in the old one, and
    /// [`Summary::notes`](crate::Summary::notes) has a note. [`max_file_size`](Self::max_file_size) limits
    /// all files together. The drain thread looks at each record, which takes CPU time. Without effect if the
    /// output is no regular file, and with [`Overflow::Overwrite`].
    ///
    /// ```no_run
    /// # use hairline::{Session, parse_size};
    /// // Eight files of at most 64 MiB each.
    /// let session = Session::builder().output("trace.pftrace").rotate(parse_size("64M")?, 8).start()?;
    /// # Ok::<(), hairline::Error>(())
    /// ```
    pub fn rotate(mut self, size: u64, keep: u32) -> Self {
        self.config.rotate = Some(Rotate { size, keep });
        self
    }

    /// Compresses a `TrackEvent` trace while it is written (default: `false`), to about a fifth. The drain
    /// thread compresses some 100 MB/s. An FXT trace is not compressed.
    ///
    /// ```
    /// # use hairline::{MemoryOutput, Session, trace_instant};
    /// let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).compress(true).start()?;
    /// for attempt in 0..10_000 {
    ///     trace_instant!("net", "retry", attempt);
    /// }
    /// session.stop()?;
    /// assert!(memory.len() < 100_000); // less than 10 bytes an event
    /// # Ok::<(), hairline::Error>(())
    /// ```
    #[cfg(feature = "compress")]
    #[cfg_attr(docsrs, doc(cfg(feature = "compress")))]
    pub fn compress(mut self, on: bool) -> Self {
        self.config.compress = on;
        self
    }

    /// Returns the names of the settings that differ from their defaults.
    #[cfg(feature = "enable")]
    pub(crate) fn changed(&self) -> Vec<&'static str> {
        let (config, default) = (&self.config, &Self::new().config);
        let output = match config.output {
            OutputConfig::None => "",
            OutputConfig::Path(_) => "output",
            OutputConfig::Memory(_) => "output_memory",
            OutputConfig::Writer(_) => "output_writer",
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
            ("thread_time", detail.thread_time != plain.thread_time),
            ("source_locations", detail.source_locations != plain.source_locations),
            ("heartbeat", config.heartbeat != default.heartbeat),
            ("trigger_interval", config.trigger_interval != default.trigger_interval),
            ("record_panics", config.record_panics),
            ("trigger_on_panic", config.trigger_on_panic),
            ("trigger_on_signal", config.trigger_on_signal.is_some()),
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
    /// [`Error::Filter`] if the category filter is malformed.
    pub(crate) fn into_config(mut self) -> Result<Config, Error> {
        if let Some(text) = &self.categories {
            self.config.filter = Filter::parse(text)?;
        }
        if let Some(text) = &self.counters {
            self.config.counters = Some(ProcessCounters::parse("counters", text)?);
        }
        Ok(self.config)
    }
}
