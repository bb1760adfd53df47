//! A running process: its program, its environment, and the events of its session.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use hairline::Format;
use hairline::recovery::{self, FoundRegion, ProcessState};
use hairline::wire::Packet;
use hairline_convert::TraceFormat;
use hairline_convert::splice::Splice;

use crate::doctor::command::trace;
use crate::doctor::finding::Finding;
use crate::doctor::machine;
use crate::doctor::program::Program;
use crate::input::open_file;
use crate::listener::{Listener, processes_of};
use crate::platform::{self, Socket};
use crate::record::of_process;
use crate::text::{grouped_count, one_line, shown, size, who};

const WHAT: &str = "session";

/// The longest trace, in bytes, that is copied to count its events.
const MOST_COPIED: u64 = 256 << 20;

/// The processes that a name or a pid means.
pub(super) fn wanted(name: &str) -> Result<Vec<u32>, String> {
    let pids = processes_of(name)?;
    let is_missing = |pid: &&u32| matches!(Socket::of(**pid), Err(e) if e.kind() == io::ErrorKind::NotFound);
    match pids.iter().find(is_missing) {
        Some(pid) => Err(format!("there is no process {pid}")),
        None => Ok(pids),
    }
}

pub(super) fn findings(pid: u32, categories: Option<&str>, time: i64) -> Vec<Finding> {
    let variable = variable(pid);
    let regions = regions(pid);
    let has_session = regions.as_ref().is_ok_and(|regions| !regions.is_empty());
    let mut session = match regions {
        Ok(regions) if regions.is_empty() => of_listener(pid, variable.as_ref(), categories, time),
        Ok(regions) => regions.iter().map(of_region).collect(),
        Err(why) => vec![Finding::wrong(WHAT, why, "")],
    };
    let has_recorded = has_session || session.iter().any(Finding::is_good);
    let mut findings = match Program::of_process(pid) {
        Ok(program) => program.findings(has_recorded),
        Err(e) => vec![Finding::remark("program", format!("the program of {pid} cannot be read: {e}"), "")],
    };
    findings.append(&mut session);
    findings
}

/// The regions that the process has now.
fn regions(pid: u32) -> Result<Vec<FoundRegion>, String> {
    if let Some(user) = recovery::other_user_of(pid) {
        return Err(format!("the region of process {pid} belongs to the user with the number {user}"));
    }
    let mut found = recovery::find().map_err(|e| e.to_string())?;
    found.retain(|region| region.pid == pid && region.process != ProcessState::Dead);
    Ok(found)
}

/// Counts the events that a session has recorded until now.
fn of_region(region: &FoundRegion) -> Finding {
    if let Some(why) = &region.unreadable {
        let advice = "use the command `hairline` of the version that the program has";
        return Finding::wrong(WHAT, one_line(why), advice);
    }
    let to = region.output.as_deref().map_or_else(String::new, |path| format!(" to {}", shown(path)));
    let who = who(region.pid, &region.process_name);
    match events(region) {
        Ok(0) => Finding::wrong(
            WHAT,
            format!("process {who} records{to}, and has no event"),
            "its filter excludes what it reaches, or it reaches nothing: `hairline filter` changes the filter \
             of a process that listens",
        ),
        Ok(n) => {
            let n = grouped_count(n, "event");
            Finding::good(WHAT, format!("process {who} records{to}: {n} until now, read back"))
        }
        Err(why) => Finding::remark(WHAT, format!("process {who} records{to}: {why}"), ""),
    }
}

fn events(region: &FoundRegion) -> Result<u64, String> {
    let len = region.output.as_deref().and_then(|path| path.metadata().ok()).map_or(0, |about| about.len());
    if len > MOST_COPIED {
        return Err(format!("{}, which are too many to be read for this", size(len)));
    }
    let folder = tempfile::tempdir().map_err(|e| format!("no temporary folder: {e}"))?;
    let path = folder.path().join("snapshot");
    recovery::snapshot(&region.path, &path).map_err(|e| e.to_string())?;
    let format = match region.format {
        Some(Format::Fxt) => TraceFormat::Fxt,
        _ => TraceFormat::TrackEvent,
    };
    let mut splice = Splice::new(format, io::sink()).ok_or("no such format")?;
    let (file, _) = open_file(&path).map_err(|e| e.to_string())?;
    splice.add(file).map_err(|e| e.to_string())?;
    let (_, totals) = splice.finish().map_err(|e| e.to_string())?;
    Ok(totals.events)
}

/// A process without a region is recorded for a while, if it listens.
fn of_listener(pid: u32, variable: Option<&OsString>, categories: Option<&str>, time: i64) -> Vec<Finding> {
    let listener = match Listener::connect(pid) {
        Ok(listener) => listener,
        Err(why) => return vec![silent(&who(pid, &platform::name_of(pid)), variable, why)],
    };
    let name = who(pid, &listener.name);
    match listener.ask(&Packet::new("status"), None) {
        Ok(answer) if answer.word == "recording" => {
            let to = answer.get("output").map_or_else(String::new, |path| format!(" to {}", one_line(path)));
            vec![Finding::good(WHAT, format!("process {name} records{to}"))]
        }
        Ok(_) => match of_process(pid, categories, time) {
            Ok(trial) => {
                let listens = Finding::good("listener", format!("process {name} listens"));
                std::iter::once(listens).chain(trace(&trial, categories)).collect()
            }
            Err(why) => vec![Finding::wrong(WHAT, why, "")],
        },
        Err(why) => vec![Finding::wrong("listener", why, "")],
    }
}

/// A process that neither records nor listens.
fn silent(name: &str, variable: Option<&OsString>, why: String) -> Finding {
    match variable {
        Some(value) if value == "listen" => Finding::wrong(
            "listener",
            format!("process {name} has HAIRLINE=listen, and does not listen"),
            "it listens from its first event on: it has reached none, or its stderr says why not",
        ),
        Some(value) if machine::is_waiting(value) => Finding::remark(
            WHAT,
            format!("process {name} has HAIRLINE={}, and no session runs", shown(Path::new(value))),
            "the tracing service starts one; `HAIRLINE_LOG=info` says on stderr whether the process is registered",
        ),
        Some(value) => Finding::wrong(
            WHAT,
            format!(
                "process {name} has HAIRLINE={}, and no region of a session is here",
                shown(Path::new(value))
            ),
            "the first event starts one: the process has reached none, or its stderr says why not; that of a \
             container, or one without a file in /dev/shm, is not seen from here",
        ),
        None => Finding::wrong("listener", why, ""),
    }
}

/// The variable `HAIRLINE` with which the process was started.
fn variable(pid: u32) -> Option<OsString> {
    let all = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    let value = all.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(b"HAIRLINE="));
    let value = value.filter(|value| !value.is_empty())?;
    Some(String::from_utf8_lossy(value).into_owned().into())
}
