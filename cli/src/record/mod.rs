//! `hairline record`

mod parts;
mod quiet;
mod samples;
mod switches;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use hairline::Format;
use hairline_convert::splice::Totals;
use hairline_perf::Switches;

use crate::input::is_standard;
use crate::platform::Command;
use crate::platform::facts::NotStarted;
use crate::record::parts::{Parts, RecordResult};
use crate::record::samples::Opened;
use crate::record::switches::{Recording, States};
use crate::text::{complain, count, grouped, size, who};

/// Runs a command and records one trace of all its processes.
///
/// Events of a program are recorded if it contains Hairline's macros; it needs no session in its code. With
/// --sched and --sample any program is recorded. Traces of killed processes are recovered. Ctrl-C goes to
/// the command, and the trace is kept. Two Ctrl-C within a second kill the command. SIGINT, SIGQUIT,
/// SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 that a process sends to this one are passed on to the command. The
/// exit code is the command's.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hairline record -- ./server --port 80
  hairline record -o build.pftrace --categories 'net,db.*' -- make test
  hairline record --overflow block --buffer 64M -- ./batch     nothing is lost, the program waits
  hairline record --sample -- ./program                        where each thread spends its CPU time
  hairline record --format fxt -o out.fxt -- ./program         the format that costs the program least

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
    output: Option<PathBuf>,
    /// The trace's format. Default: by the name of the output.
    #[arg(long, value_enum)]
    format: Option<RecordFormat>,
    /// The categories to record: "net,db.*,-db.verbose". Default: all.
    #[arg(long, value_name = "FILTER")]
    categories: Option<String>,
    /// The memory of each process for events that are not written yet: "4M", "64MiB". From 64K to 256G, with
    /// --overflow overwrite from 16K to 1024G. Default: 16M, or HAIRLINE_BUFFER.
    #[arg(long, value_name = "SIZE")]
    buffer: Option<String>,
    /// The policy for a full buffer: drop (lose and count events), block (the program waits), block:500ms, or
    /// overwrite (keep only the latest events). Default: drop, or HAIRLINE_OVERFLOW.
    #[arg(long, value_name = "POLICY")]
    overflow: Option<String>,
    /// Also record when each thread of the command and of all its processes runs, waits for a processor or
    /// sleeps, whether its program has Hairline's macros or not. Needs kernel.perf_event_paranoid 2 or less.
    #[arg(long)]
    sched: bool,
    /// Also record call stacks, HZ times in a second of CPU time (1 to 10000). With --sched, and as root or
    /// with kernel.perf_event_paranoid 1 or less, also where each thread begins to wait.
    #[arg(long, value_name = "HZ", num_args = 0..=1, default_missing_value = "997",
        value_parser = frequency)]
    sample: Option<u32>,
    /// Also record what each process uses, ten times in a second: "rss,cpu", "all", "faults,io@100".
    #[arg(long, value_name = "LIST")]
    counters: Option<String>,
    /// Also keep the trace of each process.
    #[arg(long)]
    keep_parts: bool,
    /// The time in seconds to wait for processes that outlive the command, whether they have recorded
    /// something or not.
    #[arg(long, value_name = "SECONDS", default_value_t = 1)]
    wait: u32,
    /// The command and its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Parses the number of `--sample`. A command that follows without `--` is taken for it.
fn frequency(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(frequency) if (1..=10_000).contains(&frequency) => Ok(frequency),
        Ok::<u32, _>(frequency) => Err(format!("{frequency} is not in 1..=10000")),
        Err(_) => Err("give a number from 1 to 10000, or write `--` before the command".to_owned()),
    }
}

/// A trace format that can be recorded.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RecordFormat {
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

/// The exit code for a failure of the tracer, as in `env` and `timeout`.
const FAILED: u8 = 125;

pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    match record(arguments) {
        Ok(code) => ExitCode::from(code),
        Err(Failed { why, code }) => {
            complain(why);
            ExitCode::from(code)
        }
    }
}

/// Why there is no trace.
struct Failed {
    why: String,
    code: u8,
}

fn record(arguments: &Arguments) -> Result<u8, Failed> {
    let failed = |why: String| Failed { why, code: FAILED };
    check(arguments).map_err(failed)?;
    let (output, format) = output(arguments).map_err(failed)?;
    let mut parts = Parts::begin(&output, format, arguments.keep_parts).map_err(failed)?;
    let (mut events, mut opened) = (None, None);
    let mut open = |pid| {
        let sched = arguments.sched;
        let with_switches = |opened: Opened| if sched { opened.with_switches(pid) } else { opened };
        opened = arguments.sample.map(|frequency| samples::open(pid, frequency, sched).map(with_switches));
        events = sched.then(|| match &opened {
            Some(Ok(_)) => Ok(Switches::of_records(pid)),
            _ => Switches::of_command(pid, switches::BYTES),
        });
    };
    let has_events = arguments.sched || arguments.sample.is_some();
    let before_exec: Option<&mut dyn FnMut(u32)> = if has_events { Some(&mut open) } else { None };
    let variables = variables(arguments, &parts);
    let command = Command::start(&arguments.command, &variables, before_exec).map_err(|e| {
        let code = if matches!(e, NotStarted::NotFound(_)) { 127 } else { 126 };
        Failed { why: e.to_string(), code }
    })?;
    let (mut states, mut recording) = (None, None);
    match events {
        Some(Ok(switches)) if matches!(opened, Some(Ok(_))) => {
            match States::new(switches, parts.folder(), format) {
                Ok(made) => states = Some(made),
                Err(e) => recording = Some(Recording::begin(Err(e), parts.folder(), format)),
            }
        }
        Some(events) => recording = Some(Recording::begin(events, parts.folder(), format)),
        None => {}
    }
    if let Some(opened) = opened {
        parts.sample(opened, states);
    }
    let pid = command.pid();
    let ended = command.wait();
    let code = ended.code();
    let switches = recording.map(Recording::end);
    let whole = parts
        .make_whole(switches, pid, Duration::from_secs(arguments.wait.into()), &|| ended.is_interrupted());
    match whole {
        Ok((whole, parts)) => {
            report(&whole, &parts);
            parts.end();
            Ok(code)
        }
        // The command's own failure is more important.
        Err(why) => Err(Failed { why, code: if code == 0 { FAILED } else { code } }),
    }
}

/// Checks the arguments that the processes receive. A process with wrong settings would run without a trace.
fn check(arguments: &Arguments) -> Result<(), String> {
    let Arguments { categories, buffer, overflow, counters, .. } = arguments;
    let option = |name: &str, value: &Option<String>, check: &dyn Fn(&str) -> Result<(), hairline::Error>| {
        value.as_deref().map_or(Ok(()), check).map_err(|e| match e {
            hairline::Error::Buffer(e) => format!("--{name}: {e}"), // its own text begins with `buffer:`
            e => format!("--{name}: {e}"),
        })
    };
    option("categories", categories, &|filter| hairline::Filter::parse(filter).map(drop))?;
    option("overflow", overflow, &|policy| policy.parse::<hairline::Overflow>().map(drop))?;
    // Without the option the processes take the variable, which they inherit.
    let policy = overflow.clone().or_else(|| std::env::var("HAIRLINE_OVERFLOW").ok());
    let policy = policy.and_then(|policy| policy.parse().ok()).unwrap_or_default();
    option("buffer", buffer, &|size| {
        let size = hairline::parse_size(size)?;
        hairline::Session::builder().buffer_size(size).overflow(policy).check_buffer()
    })?;
    option("counters", counters, &hairline::check_counters)
}

/// The path and the format of the trace.
fn output(arguments: &Arguments) -> Result<(PathBuf, Format), String> {
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
    Ok((expanded(output, &arguments.command[0]), format))
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

/// The environment variables for the processes.
fn variables(arguments: &Arguments, parts: &Parts) -> Vec<(&'static str, OsString)> {
    let text = |value: &Option<String>| value.as_ref().map(OsString::from);
    let options = [
        ("HAIRLINE", Some(parts.template())),
        ("HAIRLINE_CATEGORIES", text(&arguments.categories)),
        ("HAIRLINE_BUFFER", text(&arguments.buffer)),
        ("HAIRLINE_OVERFLOW", text(&arguments.overflow)),
        ("HAIRLINE_COUNTERS", text(&arguments.counters)),
        // This process does both for them: they need not do it again.
        ("HAIRLINE_SCHED", arguments.sched.then(|| "off".into())),
        ("HAIRLINE_SAMPLE", arguments.sample.map(|_| "0".into())),
    ];
    options.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

/// Prints the result.
fn report(whole: &RecordResult, parts: &Parts) {
    let RecordResult { path: output, totals, recovered, alive, quiet, notes, samples, .. } = whole;
    notes.iter().for_each(complain);
    for (pid, name, path) in alive {
        let who = who(*pid, name);
        complain(format_args!(
            "process {who} is still running, and is not in the trace: it writes its own to {}; \
             add that with `hairline merge`",
            path.display()
        ));
    }
    if !quiet.is_empty() {
        let names: Vec<String> = quiet.iter().map(|(pid, name)| who(*pid, name)).collect();
        complain(format_args!(
            "still running without a recorded event: process {}; use a larger --wait if it records later",
            names.join(", ")
        ));
    }
    if whole.parts == 0 {
        match samples {
            _ if !alive.is_empty() => {}
            Some(samples) if samples.samples == 0 && samples.lost == 0 => complain(NO_SAMPLE),
            _ => complain(NOTHING),
        }
        return;
    }
    if *recovered > 0 {
        let (were, they) = if *recovered == 1 { ("was", "it") } else { ("were", "they") };
        let processes = count(*recovered, "process");
        complain(format_args!("{processes} {were} killed: what {they} had recorded is in the trace"));
    }
    let lost = totals.lost.saturating_sub(whole.switches_lost);
    if lost > 0 {
        let lost = count(lost, "event");
        complain(format_args!(
            "{lost} lost because the buffer was full: use a larger --buffer, or --overflow block"
        ));
    }
    complain(about(totals, output));
    if let Some(samples) = samples {
        report_samples(samples);
    }
    let output = output.display();
    complain(format_args!("open it at https://ui.perfetto.dev, or by: hairline view {output}"));
    if parts.are_kept() {
        complain(format_args!("the processes' own traces are in {}", parts.folder().path().display()));
    }
}

fn report_samples(samples: &hairline_stacks::Totals) {
    let cut = match samples.cut {
        0 => String::new(),
        cut => format!(", {} without their root", grouped(cut)),
    };
    let switches = match samples.switches {
        0 => String::new(),
        switches => format!(", and {} of threads that began to wait", grouped(switches)),
    };
    complain(format_args!("{}{switches}{cut}", count(samples.samples, "sample")));
    if samples.lost > 0 {
        let lost = grouped(samples.lost);
        complain(format_args!(
            "{lost} samples, or context switches with --sched, lost because the kernel's ring was full: use a \
             smaller --sample"
        ));
    }
}

fn about(totals: &Totals, output: &Path) -> String {
    let threads = totals.threads() as u64;
    let parts = [
        count(totals.processes() as u64, "process"),
        count(threads, "thread"),
        format!("{} event{}", grouped(totals.events), if totals.events == 1 { "" } else { "s" }),
        size(totals.bytes),
    ];
    format!("{}: {}", output.display(), parts.join(", "))
}

/// The message if no process recorded anything, and the kernel took no sample either.
const NO_SAMPLE: &str = "no trace: there was no stack sample, because the command used less CPU time than from \
     one sample to the next (a larger --sample takes more), and no process of it recorded anything";

/// The message if no process recorded anything.
const NOTHING: &str = "no trace: no process of the command recorded anything. Do its programs contain \
     Hairline's macros, with the crate feature `enable`? Do they start a session of their own \
     (Session::builder)? Does --categories exclude everything?";
