//! The arguments of `hairline record`, and what they mean.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hairline::Format;
use hairline::wire::Packet;

use crate::input::is_standard;
use crate::record::parts;
use crate::text::nanoseconds;

/// Runs a command and records one trace of all its processes, or records running processes.
///
/// Events of a program are recorded if it contains Hairline's macros; it needs no session in its code. With
/// --sched and --sample any program is recorded. Traces of killed processes are recovered. Ctrl-C goes to
/// the command, and the trace is kept. Two Ctrl-C within a second kill the command. SIGINT, SIGQUIT,
/// SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that a process sends to this one are passed on to the command. The
/// exit code is the command's.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "Examples:
  hairline record -- ./server --port 80
  hairline record -o build.pftrace --categories 'net,db.*' -- make test
  hairline record --overflow block --buffer 64M -- ./batch     nothing is lost, the program waits
  hairline record --sample -- ./program                        where each thread spends its CPU time
  hairline record --format fxt -o out.fxt -- ./program         the format that costs the program least
  hairline record -p server --for 10s                          a process that runs, and listens

Exit codes:
  the command's; 128 and the number of the signal that ended it
  125  the trace cannot be written, or the arguments are invalid
  126  the command cannot be run
  127  the command does not exist")]
pub(crate) struct Arguments {
    /// The trace file, which is replaced, unless it has a trace without its end. %p becomes the id of this
    /// process, %e the name of the command, %h that of the host, %t the time (20261126-192746), %u a random
    /// number, %n the first number whose name is free, %% a percent sign. Default: trace.pftrace or trace.fxt.
    #[arg(short, long, value_name = "FILE")]
    pub(super) output: Option<PathBuf>,
    /// The trace's format. Default: by the name of the output.
    #[arg(long, value_enum)]
    pub(super) format: Option<RecordFormat>,
    #[command(flatten)]
    pub(super) options: Options,
    /// Record no stacks at which threads begin to wait. Each costs the program a copy of 8 KiB.
    #[arg(long, requires = "sched", requires = "sample", conflicts_with = "process")]
    pub(super) no_wait_stacks: bool,
    /// Also keep the trace of each process.
    #[arg(long)]
    pub(super) keep_parts: bool,
    /// The time in seconds to wait for processes that outlive the command, whether they have recorded
    /// something or not.
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    pub(super) wait: u32,
    /// Record running processes, by pid or by name, instead of a command: until Ctrl-C, or for the time of
    /// --for. They must listen: start them with HAIRLINE=listen, or call `hairline::listen()` in them. They
    /// take settings without an option, as HAIRLINE_HEAP, from this command's environment.
    #[arg(short, long, value_name = "PID|NAME", value_delimiter = ',', conflicts_with = "command")]
    pub(super) process: Vec<String>,
    /// The time to record running processes: "500ms", "10s", "2m".
    #[arg(long = "for", value_name = "TIME", value_parser = nanoseconds, requires = "process")]
    pub(super) time: Option<i64>,
    /// The command and its arguments.
    #[arg(
        required_unless_present = "process",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(super) command: Vec<OsString>,
}

/// The settings of a session that have no option here.
const WITHOUT_OPTION: [&str; 8] = [
    "HAIRLINE_CLOCK",
    "HAIRLINE_FRAME_POINTERS",
    "HAIRLINE_HEAP",
    "HAIRLINE_HOLD",
    "HAIRLINE_MAX_FILE_SIZE",
    "HAIRLINE_POLL",
    "HAIRLINE_SOURCE_LOCATIONS",
    "HAIRLINE_THREAD_TIME",
];

/// What a session records. Sessions in running processes have the same options.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    /// The categories to record: "net,db.*,-db.verbose". Default: all.
    #[arg(long, value_name = "FILTER")]
    pub(super) categories: Option<String>,
    /// The most verbose level of the crates `tracing` and `log` that is recorded: error, warn, info, debug or
    /// trace. Default: info, or HAIRLINE_LEVEL.
    #[arg(long, value_name = "LEVEL", value_parser = LEVELS)]
    pub(super) level: Option<String>,
    /// The memory of each process for events that are not written yet: "4M", "64MiB". From 64K to 256G, with
    /// --overflow overwrite from 16K to 1024G. Default: 16M, or HAIRLINE_BUFFER.
    #[arg(long, value_name = "SIZE")]
    pub(super) buffer: Option<String>,
    /// The policy for a full buffer: drop (lose and count events), block (the program waits), block:500ms, or
    /// overwrite (keep only the latest events). Default: drop, or HAIRLINE_OVERFLOW.
    #[arg(long, value_name = "POLICY")]
    pub(super) overflow: Option<String>,
    /// Also record when each thread of the command and of all its processes runs, waits for a processor or
    /// sleeps, whether its program has Hairline's macros or not. Needs kernel.perf_event_paranoid 2 or less.
    #[arg(long)]
    pub(super) sched: bool,
    /// Also record call stacks, HZ times in a second of CPU time (1 to 10000). With --sched, and as root or
    /// with kernel.perf_event_paranoid 1 or less, also where each thread begins to wait.
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "997",
        value_parser = frequency)]
    pub(super) sample: Option<u32>,
    /// Also record the call stack of each slice and instant of these categories: "db.*". The programs need
    /// hairline's feature `sampling`.
    #[arg(long, value_name = "FILTER")]
    pub(super) stacks: Option<String>,
    /// Also record what each process uses, ten times in a second: "rss,cpu", "all", "faults,io@100".
    #[arg(long, value_name = "LIST")]
    pub(super) counters: Option<String>,
}

/// The names of levels.
pub(crate) const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Parses the number of `--sample`. A command that follows without `--` is taken for it.
fn frequency(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(frequency) if (1..=10_000).contains(&frequency) => Ok(frequency),
        Ok::<u32, _>(frequency) => Err(format!("{frequency} is not in 1..=10000")),
        Err(_) => Err("give a number from 1 to 10000, or write `--` before the command".to_owned()),
    }
}

impl Options {
    /// The variables of the options that each process takes as they are.
    pub(super) fn variables(&self) -> [(&'static str, Option<String>); 6] {
        [
            ("HAIRLINE_CATEGORIES", &self.categories),
            ("HAIRLINE_LEVEL", &self.level),
            ("HAIRLINE_BUFFER", &self.buffer),
            ("HAIRLINE_OVERFLOW", &self.overflow),
            ("HAIRLINE_COUNTERS", &self.counters),
            ("HAIRLINE_STACKS", &self.stacks),
        ]
        .map(|(name, value)| (name, value.clone()))
    }

    /// The packet that asks a process that listens for a session with these options. A setting that none of
    /// them gives is that of this command's environment, as for a process that the command would start.
    pub(crate) fn request(&self, word: &str, output: &Path) -> Packet {
        let own = [
            ("HAIRLINE", Some(output.display().to_string())),
            ("HAIRLINE_SCHED", self.sched.then(|| "on".to_owned())),
            ("HAIRLINE_SAMPLE", self.sample.map(|frequency| frequency.to_string())),
        ];
        let of_environment = |name| Some(std::env::var_os(name)?.to_string_lossy().into_owned());
        let variables =
            own.into_iter().chain(self.variables()).chain(WITHOUT_OPTION.map(|name| (name, None)));
        let variables =
            variables.filter_map(|(name, given)| Some((name, given.or_else(|| of_environment(name))?)));
        variables.fold(Packet::new(word), |packet, (name, value)| packet.with(name, value))
    }
}

/// A trace format that can be recorded.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(super) enum RecordFormat {
    /// Fuchsia's trace format, .fxt
    Fxt,
    /// Perfetto's TrackEvent, .pftrace
    #[value(name = "track_event", alias = "pftrace", alias = "perfetto")]
    TrackEvent,
}

impl From<RecordFormat> for Format {
    fn from(name: RecordFormat) -> Self {
        match name {
            RecordFormat::Fxt => Self::Fxt,
            RecordFormat::TrackEvent => Self::TrackEvent,
        }
    }
}

/// Checks the arguments that the processes receive. A process with wrong settings would run without a trace.
pub(crate) fn check(options: &Options) -> Result<(), String> {
    let Options { categories, buffer, overflow, counters, .. } = options;
    let option = |name: &str, value: &Option<String>, check: &dyn Fn(&str) -> Result<(), hairline::Error>| {
        value.as_deref().map_or(Ok(()), check).map_err(|e| match e {
            hairline::Error::Buffer(e) => format!("--{name}: {e}"), // its own text begins with `buffer:`
            e => format!("--{name}: {e}"),
        })
    };
    option("categories", categories, &|filter| hairline::Filter::parse(filter).map(drop))?;
    option("overflow", overflow, &|policy| policy.parse::<hairline::Overflow>().map(drop))?;
    let policy = policy(options);
    option("buffer", buffer, &|size| {
        let size = hairline::parse_size(size)?;
        hairline::Session::builder().buffer_size(size).overflow(policy).check_buffer()
    })?;
    option("counters", counters, &hairline::check_counters)
}

/// What the processes do where their ring is full.
pub(super) fn policy(options: &Options) -> hairline::Overflow {
    // Without the option the processes take the variable, which they inherit.
    let policy = options.overflow.clone().or_else(|| std::env::var("HAIRLINE_OVERFLOW").ok());
    policy.and_then(|policy| policy.parse().ok()).unwrap_or_default()
}

/// The path and the format of the trace.
pub(super) fn output(arguments: &Arguments) -> Result<(PathBuf, Format), String> {
    let asked = arguments.format.map(Format::from);
    let Some(output) = &arguments.output else {
        let format = asked.unwrap_or(Format::TrackEvent);
        return Ok((Path::new("trace").with_extension(parts::extension(format)), format));
    };
    if is_standard(output) {
        return Err(
            "-: the trace cannot go to stdout, which the command has: give the name of a file".to_owned()
        );
    }
    let format = asked.or_else(|| Format::from_path(output)).ok_or_else(|| {
        let output = output.display();
        format!(
            "{output}: no extension of a trace: use .pftrace or .fxt, or --format \
             (`hairline convert` writes other formats)"
        )
    })?;
    let program = match (arguments.command.first(), arguments.process.first()) {
        (Some(command), _) => command.clone(),
        (None, Some(process)) => process.into(),
        (None, None) => OsString::new(),
    };
    Ok((expanded(output, &program), format))
}

/// Replaces the placeholders. A number becomes the first one whose name is free.
fn expanded(output: &Path, command: &OsStr) -> PathBuf {
    let program = Path::new(command).file_name().unwrap_or(command).to_string_lossy();
    let name = |number| hairline::expand_path(output, &program, number);
    let first = name(1);
    if !first.exists() {
        return first;
    }
    (2..).map(name).find(|path| *path == first || !path.exists()).unwrap_or(first)
}
