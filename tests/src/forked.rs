//! The traces of a program that forks while it records (`bin/forker/main.rs`): what must hold for each of
//! them, and a look at a process that hangs.

use std::collections::HashMap;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hairline::Format;

use crate::walk::{Mark, Place, walk};

/// The third argument of a scope `step`, by which it is known. The others are its number and its thread's.
pub const MAGIC: u64 = 0x5eed_f02c;

/// The longest that a debugger may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the threads of a process are: the debugger's backtraces where there is one, and what the kernel
/// says.
#[must_use]
pub fn describe(pid: libc::pid_t) -> String {
    let mut text = String::new();
    for name in ["status", "wchan", "syscall", "stack"] {
        let content = std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let wanted =
            |line: &&str| name != "status" || line.starts_with("State") || line.starts_with("Threads");
        text.extend(content.lines().filter(wanted).map(|line| format!("{name}: {line}\n")));
    }
    // No pipe and no thread to read it: this may be a forked child, where threads of the standard library may
    // hang.
    let Ok(mut file) = tempfile::tempfile() else { return text };
    let Ok(out) = file.try_clone() else { return text };
    let gdb = Command::new("gdb")
        .args(["-p", &pid.to_string(), "-batch", "-nx", "-ex", "thread apply all bt 30"])
        .env_remove("HAIRLINE")
        .stdin(Stdio::null())
        .stdout(Stdio::from(out))
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut gdb) = gdb else { return text + "no gdb" };
    let began = Instant::now();
    while matches!(gdb.try_wait(), Ok(None)) {
        if began.elapsed() > PATIENCE {
            let _ = gdb.kill();
            let _ = gdb.wait();
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut said = Vec::new();
    if file.rewind().and_then(|()| file.read_to_end(&mut said)).is_err() {
        return text;
    }
    let said = String::from_utf8_lossy(&said);
    // Without the many frames that every Rust thread begins with, and without paths.
    let is_wanted = |line: &&str| {
        let frame = line.trim_start_matches(|c: char| c == '#' || c.is_ascii_digit()).trim_start();
        let name =
            frame.split_once(" in ").filter(|_| frame.starts_with("0x")).map_or(frame, |(_, name)| name);
        let is_start =
            ["std::", "core::", "__rust", "alloc::boxed"].iter().any(|start| name.starts_with(start));
        line.starts_with("Thread ") || line.starts_with('#') && !is_start
    };
    for line in said.lines().filter(is_wanted) {
        text.extend(line.replace(" at ./", " ").chars().take(180));
        text.push('\n');
    }
    text
}

/// The steps of a thread that a trace has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// The number of the first one.
    pub first: u64,
    /// How many were begun.
    pub begun: u64,
    /// How many of them were ended.
    pub ended: u64,
}

/// What is in a trace.
#[derive(Debug, Default)]
pub struct Content {
    /// By the program's own numbers of its threads.
    pub steps: HashMap<u64, Steps>,
    /// By what the format tells threads and tracks apart: the open slices, of which steps have their thread's
    /// number.
    open: HashMap<u64, Vec<Option<u64>>>,
    /// By track that is no thread's: ends that stand in the file before their begins, which another thread
    /// has written. An importer sorts them by time.
    early: HashMap<u64, u64>,
    tails: u32,
}

impl Content {
    fn take(&mut self, mark: Mark<'_>) -> Result<(), String> {
        match mark {
            Mark::Begin(place, numbers) => self.begin(place.track, numbers),
            Mark::End(place) => self.end(place),
            Mark::Tail => {
                self.tails += 1;
                Ok(())
            }
        }
    }

    fn begin(&mut self, track: u64, arguments: &[u64]) -> Result<(), String> {
        let step = match *arguments {
            [n, thread, MAGIC, ..] => Some((n, thread)),
            _ => None,
        };
        if let Some(early) = self.early.get_mut(&track).filter(|early| **early > 0) {
            *early -= 1;
        } else {
            self.open.entry(track).or_default().push(step.map(|(_, thread)| thread));
        }
        let Some((n, thread)) = step else { return Ok(()) };
        let steps = self.steps.entry(thread).or_insert(Steps { first: n, begun: 0, ended: 0 });
        let expected = steps.first + steps.begun;
        if n != expected {
            return Err(format!("thread {thread}: step {n} comes where {expected} should"));
        }
        steps.begun += 1;
        Ok(())
    }

    fn end(&mut self, place: Place) -> Result<(), String> {
        match self.open.entry(place.track).or_default().pop() {
            Some(Some(thread)) => self.steps.entry(thread).or_default().ended += 1,
            Some(None) => {}
            None if place.is_thread => {
                return Err(format!("an end without a begin on the thread with the track {}", place.track));
            }
            None => *self.early.entry(place.track).or_default() += 1,
        }
        Ok(())
    }
}

/// Reads a trace with this project's own reader.
///
/// # Errors
/// When it cannot be read to its end, or a thread's steps are not there once each, in order, and whole but
/// for the last.
pub fn read(path: &Path) -> Result<Content, String> {
    let is_fxt = path.extension().is_some_and(|extension| extension == "fxt");
    let format = if is_fxt { Format::Fxt } else { Format::TrackEvent };
    let mut content = Content::default();
    walk(path, format, &mut |mark| content.take(mark))?;
    if !is_fxt && content.tails != 1 {
        return Err(format!("{} tails", content.tails));
    }
    if let Some((track, _)) = content.early.iter().find(|(_, early)| **early > 0) {
        return Err(format!("an end without a begin on the track {track}"));
    }
    for (thread, steps) in &content.steps {
        if steps.ended + 1 < steps.begun || steps.ended > steps.begun {
            return Err(format!("thread {thread}: {steps:?}"));
        }
    }
    Ok(content)
}
