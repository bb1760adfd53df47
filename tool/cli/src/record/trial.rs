//! A recording for `hairline doctor`, which counts its events and keeps no trace.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::record::arguments::{Arguments, Options};
use crate::record::parts::RecordResult;
use crate::record::report::{Failed, Made};
use crate::record::{command, running};

/// The time between two looks at what the command has printed.
const LOOK: Duration = Duration::from_millis(20);

/// The most bytes of a line that are passed on at once.
const LONGEST_LINE: u64 = 64 << 10;

/// How a message of the recorder begins.
const MESSAGE: &str = "hairline: ";

/// How the message begins that a session in the program's code is the trial's.
const JOINED: &str = "HAIRLINE is set: ";

/// The result of a trial.
pub(crate) struct Trial {
    pub(crate) whole: RecordResult,
    /// The exit code of the command.
    pub(crate) code: u8,
    /// The messages of the recorder in its processes.
    pub(crate) messages: Vec<String>,
}

/// Runs a command as `hairline record` does. All of its output goes to stderr.
///
/// The command prints into a file, which is passed on. A pipe would end with this process, and a process that
/// the command has left would be killed when it prints.
///
/// # Errors
/// Why it was not run.
pub(crate) fn of_command(command: &[OsString], categories: Option<&str>) -> Result<Trial, String> {
    let (program, rest) = command.split_first().map_or((OsStr::new(""), command), |(p, rest)| (p, rest));
    let at = |e: io::Error| format!("no temporary file: {e}");
    // Appended to, since a script may open /dev/stderr anew.
    let printed = tempfile::Builder::new().append(true).tempfile().map_err(at)?;
    let output = || printed.as_file().try_clone().map_err(at);
    let mut program = Command::new(program);
    program.args(rest).env("HAIRLINE_LOG", "error").stdout(output()?).stderr(output()?);
    let printed = printed.reopen().map_err(at)?;
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let messages = scope.spawn(|| pass_on(printed, &is_over));
        let trial = in_folder(categories, |arguments| command::record(&arguments, program));
        is_over.store(true, Ordering::Relaxed); // the file orders what was printed
        let messages = messages.join().unwrap_or_default();
        Ok(Trial { messages, ..trial? })
    })
}

/// Records a running process for a while, as `hairline record -p` does.
///
/// # Errors
/// Why it was not recorded.
pub(crate) fn of_process(pid: u32, categories: Option<&str>, time: i64) -> Result<Trial, String> {
    in_folder(categories, |arguments| {
        running::record(&Arguments { process: vec![pid.to_string()], time: Some(time), ..arguments })
    })
}

/// Makes a trace in a folder that is removed, unless a process still records into it.
fn in_folder(
    categories: Option<&str>,
    record: impl FnOnce(Arguments) -> Result<Made, Failed>,
) -> Result<Trial, String> {
    let folder = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
    let arguments = Arguments {
        output: Some(folder.path().join("trial.pftrace")),
        options: Options { categories: categories.map(str::to_owned), ..Options::default() },
        wait: 1,
        ..Arguments::default()
    };
    let Made { whole, parts, code } = record(arguments).map_err(|failed| failed.why)?;
    parts.end();
    if !whole.alive.is_empty() {
        let _ = folder.keep(); // they still write there
    }
    Ok(Trial { whole, code, messages: Vec::new() })
}

/// Passes on what is printed, until it is over, and returns the messages of the recorder.
fn pass_on(printed: File, is_over: &AtomicBool) -> Vec<String> {
    let len = |file: &File| file.metadata().map_or(0, |about| about.len());
    let mut printed = BufReader::new(printed);
    let (mut messages, mut line, mut end) = (Vec::new(), Vec::new(), None);
    loop {
        // A process that is left may print for ever: what it prints after the end is not waited for.
        if end.is_none() && is_over.load(Ordering::Relaxed) {
            end = Some(len(printed.get_ref()));
        }
        let read = (&mut printed).take(LONGEST_LINE).read_until(b'\n', &mut line).unwrap_or(0);
        let is_at = |end| read == 0 || printed.stream_position().is_ok_and(|at| at >= end);
        let is_last = end.is_some_and(is_at);
        if line.ends_with(b"\n") || line.len() as u64 >= LONGEST_LINE || is_last {
            let _ = io::stderr().write_all(&line);
            let text = String::from_utf8_lossy(&line);
            let message = text.strip_prefix(MESSAGE).map(|message| message.trim_end().to_owned());
            let message =
                message.filter(|message| !message.starts_with(JOINED) && !messages.contains(message));
            messages.extend(message);
            line.clear();
        }
        match (read, is_last) {
            (_, true) => return messages,
            (0, false) => std::thread::sleep(LOOK),
            _ => {} // there may be more
        }
    }
}
