//! The settings of a session, as a session takes them.

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use crate::builder::requester::Requester;
use crate::filter::Filter;
use crate::heap_profile::HeapProfile;
use crate::options::{ClockSource, Format, Overflow};
use crate::output::MemoryOutput;
use crate::process_counters::ProcessCounters;
use crate::sampling::{OwnStacks, Sampling};
use crate::slow::SlowRules;
use crate::vocabulary::Level;

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
    pub(crate) sampling: Option<Sampling>,
    pub(crate) own_stacks: OwnStacks,
    pub(crate) heap_profile: Option<HeapProfile>,
    pub(crate) heartbeat: Duration,
    pub(crate) trigger_interval: Duration,
    pub(crate) record_panics: bool,
    pub(crate) trigger_on_panic: bool,
    pub(crate) trigger_on_signal: Option<i32>,
    pub(crate) slow: SlowRules,
    /// Whether slow slices have stacks.
    pub(crate) slow_stacks: bool,
    /// The categories whose events have stacks.
    pub(crate) stacks: Option<Filter>,
    /// The duration from which a hold of a lock is a slice.
    pub(crate) hold_limit: Option<Duration>,
    /// The duration from which a poll of a task is marked.
    pub(crate) poll_limit: Duration,
    pub(crate) keep_snapshots: u32,
    pub(crate) finish_on_signals: bool,
    pub(crate) max_file_size: Option<u64>,
    pub(crate) rotate: Option<Rotate>,
    #[cfg(feature = "compress")]
    pub(crate) compress: bool,
    pub(crate) requester: Requester,
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
pub(crate) enum OutputConfig {
    None,
    Path(PathBuf),
    /// The open file of a command, which knows it by this path.
    Lent(File, PathBuf),
    Memory(MemoryOutput),
    Writer(Box<dyn Write + Send>),
    /// Perfetto's tracing service, to which the start has the connection.
    Service,
}

impl fmt::Debug for OutputConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::Path(path) => f.debug_tuple("Path").field(path).finish(),
            Self::Lent(_, path) => f.debug_tuple("Lent").field(path).finish(),
            Self::Memory(_) => f.write_str("Memory"),
            Self::Writer(_) => f.write_str("Writer"),
            Self::Service => f.write_str("Service"),
        }
    }
}
