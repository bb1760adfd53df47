use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Error;
use crate::filter::Filter;
use crate::options::{ClockSource, Format, Overflow};
use crate::output::MemoryOutput;

/// Bytes of the ring, unless said otherwise: 5 to 10 ms of recording flat out.
pub(crate) const DEFAULT_BUFFER: u64 = 16 << 20;
/// Bytes of a chunk, unless said otherwise: some 500 scopes.
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) const DEFAULT_CHUNK: u32 = 16 << 10;

/// Time between two heartbeats, unless said otherwise.
pub(crate) const HEARTBEAT: Duration = Duration::from_secs(10);

/// The shortest time between two snapshots that are triggered, unless said otherwise.
pub(crate) const TRIGGER_INTERVAL: Duration = Duration::from_secs(10);

/// What a session is started from. Made by [`Session::builder`](crate::Session::builder).
#[must_use = "a session starts with `start`"]
#[derive(Debug)]
pub struct SessionBuilder {
    pub(crate) config: Config,
    categories: Option<String>,
}

/// Everything that was set.
#[derive(Debug)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) struct Config {
    pub(crate) output: OutputConfig,
    pub(crate) format: Option<Format>,
    pub(crate) filter: Filter,
    pub(crate) buffer_size: u64,
    pub(crate) chunk_size: Option<u32>,
    pub(crate) overflow: Overflow,
    pub(crate) clock: ClockSource,
    pub(crate) detail: Detail,
    pub(crate) heartbeat: Duration,
    pub(crate) trigger_interval: Duration,
    pub(crate) trigger_on_panic: bool,
    pub(crate) trigger_on_signal: Option<i32>,
    pub(crate) finish_on_signals: bool,
    pub(crate) max_file_size: Option<u64>,
    pub(crate) rotate: Option<Rotate>,
    #[cfg(feature = "compress")]
    pub(crate) compress: bool,
}

/// Outputs of several files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) struct Rotate {
    pub(crate) size: u64,
    pub(crate) keep: u32,
}

/// What is recorded with each event, if it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) struct Detail {
    /// The CPU time of the thread, at both ends of a scope.
    pub(crate) thread_time: bool,
    /// Where in the source it is.
    pub(crate) source_locations: bool,
}

#[cfg_attr(not(feature = "enable"), allow(dead_code))]
impl Detail {
    /// Whether no event may take the hot path, which knows nothing of these.
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
                buffer_size: DEFAULT_BUFFER,
                chunk_size: None,
                overflow: Overflow::Drop,
                clock: ClockSource::Counter,
                detail: Detail::default(),
                heartbeat: HEARTBEAT,
                trigger_interval: TRIGGER_INTERVAL,
                trigger_on_panic: false,
                trigger_on_signal: None,
                finish_on_signals: false,
                max_file_size: None,
                rotate: None,
                #[cfg(feature = "compress")]
                compress: false,
            },
            categories: None,
        }
    }

    /// Writes the trace to a file, made anew, unless another process is writing a trace into it: that is an error. Its extension names the format, unless
    /// [`format`](Self::format) does. `%p` in the path becomes the process's id, `%e` its executable's name,
    /// `%%` a percent sign. With [`Overflow::Overwrite`] the file is written at the session's end, and whenever a snapshot is
    /// triggered; `%n` becomes its number, from 1. Without `%n` a triggered one stays, and none is written at the end.
    ///
    /// With `%p` a forked child has a trace of its own, from its first event on, by a session like this one; it is completed
    /// when the child exits, or by this session's handle there. Without `%p` a forked child records nothing. A FIFO is written to as
    /// long as somebody reads it; one that nobody reads is an error.
    pub fn output(mut self, path: impl AsRef<Path>) -> Self {
        self.config.output = OutputConfig::Path(path.as_ref().to_owned());
        self
    }

    /// Keeps the trace in memory; [`format`](Self::format) says in which format (by default `TrackEvent`).
    pub fn output_memory(mut self, memory: &MemoryOutput) -> Self {
        self.config.output = OutputConfig::Memory(memory.clone());
        self
    }

    /// Writes the trace to any writer, from the writer thread; [`format`](Self::format) says in which format (by
    /// default `TrackEvent`). The writer should not be one that records events itself.
    pub fn output_writer(mut self, writer: impl Write + Send + 'static) -> Self {
        self.config.output = OutputConfig::Writer(Box::new(writer));
        self
    }

    /// The trace's format.
    pub fn format(mut self, format: Format) -> Self {
        self.config.format = Some(format);
        self
    }

    /// Which categories are recorded: patterns between commas, the last one that matches decides.
    /// `"net,db.*,-db.verbose"` takes `net` and all of `db.` but `db.verbose`; `"-gpu"` takes all but
    /// `gpu`; `*` stands for any run of characters. By default all are recorded.
    pub fn categories(mut self, filter: &str) -> Self {
        self.categories = Some(filter.to_owned());
        self
    }

    /// Bytes of the ring between the threads and the output (16 MiB by default). At least four chunks.
    pub fn buffer_size(mut self, bytes: u64) -> Self {
        self.config.buffer_size = bytes;
        self
    }

    /// Bytes of the ring's chunks, of which each recording thread holds one, and loses it when it is idle and others need it: a power
    /// of two from 4 KiB to 16 MiB. By default 16 KiB; with [`Overflow::Overwrite`] a 64th of the ring, from 4 KiB to 64 KiB. The
    /// longest record is a little shorter, with [`Overflow::Overwrite`] half of that.
    pub fn chunk_size(mut self, bytes: u32) -> Self {
        self.config.chunk_size = Some(bytes);
        self
    }

    /// What happens to events for which the ring has no room.
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.config.overflow = overflow;
        self
    }

    /// What events read the time from.
    pub fn clock(mut self, clock: ClockSource) -> Self {
        self.config.clock = clock;
        self
    }

    /// Records the CPU time of the thread at both ends of each scope (`false` by default). Reading it is a system call of
    /// some 100 ns to 300 ns, and no event of the session takes the fastest path.
    pub fn thread_time(mut self, on: bool) -> Self {
        self.config.detail.thread_time = on;
        self
    }

    /// Records with each scope and instant where in the source it is (`false` by default). No event of the session takes
    /// the fastest path then.
    pub fn source_locations(mut self, on: bool) -> Self {
        self.config.detail.source_locations = on;
        self
    }

    /// How often a `TrackEvent` stream repeats what all clocks show, and marks a place at which a reader of a part of it can
    /// begin (10 s by default; at least 10 ms).
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.config.heartbeat = every.max(Duration::from_millis(10));
        self
    }

    /// The shortest time between two snapshots that are triggered ([`trigger!`](crate::trigger), 10 s by default).
    /// What is triggered sooner is passed over.
    pub fn trigger_interval(mut self, shortest: Duration) -> Self {
        self.config.trigger_interval = shortest;
        self
    }

    /// A panic triggers a snapshot (`false` by default), after the panic hooks that were there before have said what they have
    /// to say; it is complete when the panic goes on, also where that aborts the process. Of panics within
    /// [`trigger_interval`](Self::trigger_interval) of such a one no other is heeded. The panicking thread waits for the
    /// snapshot, at most 5 s. For sessions with [`Overflow::Overwrite`].
    pub fn trigger_on_panic(mut self, on: bool) -> Self {
        self.config.trigger_on_panic = on;
        self
    }

    /// A signal triggers a snapshot, within 0.2 s; for instance `SIGUSR2`, `12` on Linux. A handler that the program has for it is
    /// called as well. The signal does not end the process from then on, also when the session is over. For sessions with
    /// [`Overflow::Overwrite`]; [`start`](Self::start) fails where the signal cannot be handled.
    pub fn trigger_on_signal(mut self, signal: i32) -> Self {
        self.config.trigger_on_signal = Some(signal);
        self
    }

    /// When SIGTERM, SIGINT or SIGHUP ends the process, the trace is completed first (`false` by default; without it the
    /// trace is to be [recovered](crate::recovery)). The process then dies of the same signal, so that its parent sees what it would
    /// have seen. A signal for which the program has a handler is left to it. A second signal ends the process at once, and so do
    /// 3 s without the output taking anything.
    pub fn finish_on_signals(mut self, on: bool) -> Self {
        self.config.finish_on_signals = on;
        self
    }

    /// The output never grows beyond so many bytes (no limit by default; at least 64 KiB). When it would, recording ends there: the
    /// trace is whole, tail and all, records in the ring that have no place in it count in
    /// [`Lost::output`](crate::Lost::output), and [`Summary::notes`](crate::Summary::notes) tells. It may end short of the limit, by a
    /// chunk for each thread that records, and with `compress` by 1 MiB of records before their compression. No error. Without effect
    /// with [`Overflow::Overwrite`], whose snapshots are as large as the ring.
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.config.max_file_size = Some(bytes);
        self
    }

    /// Goes on in a new file whenever the output has grown to `size` bytes (at least 64 KiB), and keeps the newest `keep` files, the one
    /// that is being written included (0: all of them). The newest always stands at the [path](Self::output) itself; the ones before
    /// are numbered in the order of their ends: `trace.pftrace`, and `trace.1.pftrace`, `trace.2.pftrace`, ..., where those of an
    /// earlier run are replaced.
    ///
    /// Each file is a whole trace: it begins with all that its records mean, and with the begins of the slices that are open, at their
    /// own time. In the file before, these slices have no end. Every record is in one file only. A file may be longer than `size` by
    /// one chunk, or where what it begins with is more than half of it. In FXT the arrow from a flow's begin to its first step is not
    /// shown where a file ends between the two, recorded by two threads at nearly the same time.
    ///
    /// If the next file cannot be made, the output goes on in the old one; [`Summary::notes`](crate::Summary::notes) tells. The limit
    /// of [`max_file_size`](Self::max_file_size) is for all files together. Costs the writer thread a look at each record. Without
    /// effect where the output is no regular file, and with [`Overflow::Overwrite`].
    pub fn rotate(mut self, size: u64, keep: u32) -> Self {
        self.config.rotate = Some(Rotate { size, keep });
        self
    }

    /// Compresses a `TrackEvent` trace while it is written (`false` by default), to about a fifth, on the writer thread and
    /// at its cost: some 100 MB/s. An FXT trace stays as it is.
    #[cfg(feature = "compress")]
    #[cfg_attr(docsrs, doc(cfg(feature = "compress")))]
    pub fn compress(mut self, on: bool) -> Self {
        self.config.compress = on;
        self
    }

    /// The settings.
    ///
    /// # Errors
    /// When the filter of categories makes no sense.
    pub(crate) fn into_config(mut self) -> Result<Config, Error> {
        if let Some(text) = &self.categories {
            self.config.filter = Filter::parse(text)?;
        }
        Ok(self.config)
    }
}
