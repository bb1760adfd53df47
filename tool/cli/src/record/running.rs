//! `hairline record -p`: a trace of running processes.
//!
//! Each process writes a part into a file that this command opens. The parts become one trace, as those of a
//! command's processes do.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hairline::wire::Packet;

use crate::listener::{Answer, Listener, processes_of};
use crate::platform;
use crate::record::arguments::{Arguments, check, output};
use crate::record::parts::{Parts, extension};
use crate::record::report::{FAILED, Failed, Made};
use crate::text::{complain, who};

/// The time between two looks at the processes.
const LOOK: Duration = Duration::from_millis(20);

/// The longest wait for the end of a recording: a process may write to a slow disk.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest wait for the end of a process that has closed its connection: it frees its memory after that.
const LONGEST_END: Duration = Duration::from_secs(10);

/// Records the processes until the user or the time ends it, or they end.
pub(super) fn record(arguments: &Arguments) -> Result<Made, Failed> {
    let failed = |why: String| Failed { why, code: FAILED };
    check(&arguments.options).map_err(failed)?;
    let over = platform::ending().map_err(|e| failed(e.to_string()))?;
    let found = arguments.process.iter().map(|wanted| processes_of(wanted));
    let mut pids = found.collect::<Result<Vec<_>, _>>().map_err(failed)?.concat();
    pids.sort_unstable();
    pids.dedup();
    let first = pids.first().copied().unwrap_or_default();
    let (output, format) = output(arguments).map_err(failed)?;
    let parts = Parts::begin(&output, format, arguments.keep_parts).map_err(failed)?;
    let mut recordings = Vec::new();
    for pid in pids {
        match begin(pid, arguments, &parts, extension(format)) {
            Ok(recording) => recordings.push(recording),
            Err(why) => {
                end(recordings, &mut Said::default());
                return Err(failed(why));
            }
        }
    }
    let names: Vec<_> = recordings.iter().map(|listener| who(listener.pid, &listener.name)).collect();
    let how = if arguments.time.is_some() { "" } else { "; Ctrl-C ends it" };
    complain(format_args!("recording {}{how}", names.join(", ")));
    let until = arguments.time.map(|ns| Instant::now() + Duration::from_nanos(ns.unsigned_abs()));
    let mut said = Said::default();
    while !recordings.is_empty()
        && !over.load(Ordering::Relaxed)
        && until.is_none_or(|until| Instant::now() < until)
    {
        let each = LOOK / u32::try_from(recordings.len()).unwrap_or(u32::MAX);
        recordings.retain(|recording| goes_on(recording, recording.receive(each), &mut said));
    }
    end(recordings, &mut said);
    let made = parts.make_whole(None, (first, None), LONGEST_END, &|| false);
    said.notes.iter().for_each(complain);
    let (whole, parts) = made.map_err(failed)?;
    Ok(Made { whole, parts, code: if said.has_failed { FAILED } else { 0 } })
}

/// What the processes say at their ends.
#[derive(Default)]
struct Said {
    notes: Vec<String>,
    /// Whether one of them could not write its trace.
    has_failed: bool,
}

/// Makes a process record into a new part.
fn begin(pid: u32, arguments: &Arguments, parts: &Parts, extension: &str) -> Result<Listener, String> {
    let listener = Listener::connect(pid)?;
    let name = format!("{}-{}.{extension}", listener.pid, plain(&listener.name));
    let file = parts.folder().create_file(&name).map_err(|e| format!("{name}: {e}"))?;
    let path = parts.folder().path().join(&name);
    let request = arguments.options.request("record", &path);
    listener.ask(&request, Some(&file))?;
    Ok(listener)
}

/// Whether a process goes on to record. Takes what it says at its end.
fn goes_on(recording: &Listener, answer: Answer, said: &mut Said) -> bool {
    let name = who(recording.pid, &recording.name);
    match answer {
        Answer::Nothing => return true,
        Answer::Packet(answer) => {
            let notes = answer.all("note").chain(answer.all("why"));
            said.notes.extend(notes.map(|note| format!("process {name}: {note}")));
            said.has_failed |= answer.get("why").is_some();
        }
        Answer::End => said.notes.push(format!("process {name} has ended")),
    }
    false
}

/// Ends the recordings.
fn end(mut recordings: Vec<Listener>, said: &mut Said) {
    recordings.retain(|recording| {
        let is_asked = recording.send(&Packet::new("stop"), None).is_ok();
        is_asked || goes_on(recording, recording.receive(LOOK), said)
    });
    let until = Instant::now() + PATIENCE;
    for recording in recordings {
        let left = until.saturating_duration_since(Instant::now());
        if goes_on(&recording, recording.receive(left), said) {
            let name = who(recording.pid, &recording.name);
            said.notes.push(format!("process {name} does not answer: its trace may lack its end"));
        }
    }
}

/// The name of a process as a part of a file's name.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' }).collect()
}
