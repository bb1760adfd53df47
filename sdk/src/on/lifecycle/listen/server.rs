//! What commands ask for, and what they get.
//!
//! Everything that comes from a connection is checked, and has a limit: its user, the length of a packet, the
//! time until it comes, the number of connections, the file. No answer waits for a command that does not read
//! it.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::builder::{Config, OutputConfig, Requester};
use crate::error::Error;
use crate::filter::Filter;
use crate::on::base::platform::door::{self, Door, Visitor};
use crate::on::base::platform::facts::Received;
use crate::on::base::variables::{Source, is_known};
use crate::on::callsite::registry;
use crate::on::lifecycle::place::LISTENER;
use crate::on::lifecycle::{env, start};
use crate::on::session::current;
use crate::on::session::shared::Shared;
use crate::on::session::trigger;
use crate::options::Overflow;
use crate::summary::Summary;
use crate::wire::{LONGEST, PATIENCE_MS, Packet};

/// The most connections at a time that have not sent their packet.
const MOST_VISITORS: usize = 32;

/// The longest time in which nobody looks whether a recording has ended by itself.
const LOOK: Duration = Duration::from_millis(50);

/// The pause after an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// What a command cannot set in a running process: what it sets is read once, or needs a path.
const REFUSED: [&str; 5] =
    ["HAIRLINE_LOG", "HAIRLINE_MODE", "HAIRLINE_ROTATE", "HAIRLINE_SIGNALS", "HAIRLINE_TRIGGER"];

/// A connection whose packet has not come.
struct Visit {
    visitor: Visitor,
    until: Instant,
}

/// The session of a command that is connected. A session of `start` has none: it is the running session.
struct Recording {
    visitor: Visitor,
    shared: Arc<Shared>,
}

/// Serves the socket until it ends.
pub(super) fn serve(door: &Door) {
    let mut visits: Vec<Visit> = Vec::new();
    let mut recording: Option<Recording> = None;
    while !LISTENER.ends() {
        let longest = match (&recording, visits.is_empty()) {
            (None, true) => None,
            _ => Some(LOOK),
        };
        let visitors =
            recording.iter().map(|of| &of.visitor).chain(visits.iter().map(|visit| &visit.visitor));
        let ready = door.wait(visitors, longest);
        if LISTENER.ends() {
            break;
        }
        let mut has_something = ready.visitors.into_iter();
        let is_ready = recording.as_ref().map(|_| has_something.next() == Some(true));
        recording = recording.and_then(|of| of.go_on(is_ready == Some(true)));
        visits = go_on(visits, has_something, &mut recording);
        if ready.door && accept(door, &mut visits).is_err() {
            std::thread::sleep(PAUSE);
        }
    }
    match recording {
        Some(of) => of.end(),
        None => drop(started().map(|shared| shared.stop_or_report())),
    }
}

/// Takes the connections that wait.
fn accept(door: &Door, visits: &mut Vec<Visit>) -> std::io::Result<()> {
    while let Some(visitor) = door.accept()? {
        if visitor.may_command() && visits.len() < MOST_VISITORS {
            visits.push(Visit { visitor, until: Instant::now() + Duration::from_millis(PATIENCE_MS) });
        } // otherwise the connection ends here
    }
    Ok(())
}

/// Answers the visitors whose packets have come. Returns the others.
fn go_on(
    visits: Vec<Visit>,
    mut has_something: impl Iterator<Item = bool>,
    recording: &mut Option<Recording>,
) -> Vec<Visit> {
    let now = Instant::now();
    let mut waiting = Vec::new();
    for visit in visits {
        if has_something.next() != Some(true) {
            if visit.until > now {
                waiting.push(visit);
            }
            continue;
        }
        let mut bytes = [0; LONGEST];
        match visit.visitor.receive(&mut bytes) {
            Received::Nothing if visit.until > now => waiting.push(visit),
            Received::Nothing | Received::End => {}
            Received::Packet(len, file) => {
                let request = Packet::parse(&bytes[..len]);
                answer(visit.visitor, request.as_ref(), file, recording);
            }
        }
    }
    waiting
}

fn answer(
    visitor: Visitor,
    request: Option<&Packet>,
    file: Option<std::fs::File>,
    recording: &mut Option<Recording>,
) {
    let reply = match request.map(|request| (&*request.word, request)) {
        Some(("record", request)) => match lent(request, file).and_then(start) {
            Ok(shared) => {
                let of = Recording { visitor, shared };
                // A command that does not take the answer is not there.
                let before = if of.visitor.send(&of.status().to_bytes()) {
                    recording.replace(of) // its session has just ended by itself
                } else {
                    Some(of)
                };
                if let Some(over) = before {
                    over.end();
                }
                return;
            }
            Err(e) => refusal(e, recording.as_ref()),
        },
        Some(("start", request)) => match at_path(request).and_then(start) {
            Ok(shared) => {
                // A command that does not take the answer cannot tell its user of the session.
                if !visitor.send(&status(&shared).to_bytes()) {
                    drop(shared.stop_unless_stuck());
                }
                return;
            }
            Err(e) => refusal(e, recording.as_ref()),
        },
        Some(("stop", _)) => match (&recording, started()) {
            (Some(of), _) => error(format!("the process {} records it: end that command", of.visitor.pid())),
            (None, Some(shared)) => ended(&shared),
            (None, None) if current::running().is_some() => {
                error("its session is that of the program or of its environment, and not of a `start`")
            }
            (None, None) => error("nothing is recorded"),
        },
        Some(("status", _)) => match (&recording, current::running()) {
            (Some(of), _) => of.status(),
            (None, Some(shared)) => status(&shared),
            (None, None) => Packet::new("idle"),
        },
        Some(("filter", request)) => match filter(request) {
            Ok(()) => Packet::new("done"),
            Err(e) => error(e.to_string()),
        },
        Some(("trigger", _)) => triggered(),
        Some((word, _)) => {
            error(format!("the request {word:?} is not known: the process has another version"))
        }
        None => error("this is no request".to_owned()),
    };
    visitor.send(&reply.to_bytes());
}

fn error(why: impl ToString) -> Packet {
    Packet::new("error").with("why", why)
}

/// Says why no session has started.
fn refusal(e: Error, recording: Option<&Recording>) -> Packet {
    match e {
        Error::AlreadyRunning => error(busy(recording)),
        e => error(env::with_variable(e)),
    }
}

/// The settings of a session that writes to the file.
fn lent(request: &Packet, file: Option<std::fs::File>) -> Result<Config, Error> {
    let path = request.get("HAIRLINE").unwrap_or_default();
    let Some(file) = file.filter(door::is_empty_output) else {
        return refused("output", path, "an empty regular file must come with the request");
    };
    let mut config = config(request, path)?;
    if config.overflow == Overflow::Overwrite {
        return refused(
            "HAIRLINE_OVERFLOW",
            "overwrite",
            "a flight recorder has no command that waits for it",
        );
    }
    config.output = OutputConfig::Lent(file, Path::new(path).to_owned());
    Ok(config)
}

/// The settings of a session that opens its output itself, and outlives the command.
fn at_path(request: &Packet) -> Result<Config, Error> {
    let path = request.get("HAIRLINE").unwrap_or_default();
    if !Path::new(path).is_absolute() {
        return refused("output", path, "use an absolute path, as this process sees it");
    }
    config(request, path)
}

fn config(request: &Packet, path: &str) -> Result<Config, Error> {
    for (name, _) in &request.lines {
        if !is_known(name) || REFUSED.contains(&&**name) {
            return refused("setting", name, "a command cannot set it in a running process");
        }
    }
    env::settings_of(Source::Request(request), OsString::from(path))?.into_config()
}

fn refused<T>(what: &'static str, value: &str, expected: &'static str) -> Result<T, Error> {
    Err(Error::Value { what, value: value.to_owned(), expected })
}

fn start(config: Config) -> Result<Arc<Shared>, Error> {
    start::start(Config { requester: Requester::Command, ..config })
}

/// The running session, if a command has started it, in this process or in that of which it is a fork.
fn started() -> Option<Arc<Shared>> {
    current::running().filter(|shared| shared.settings.requester == Requester::Command)
}

fn filter(request: &Packet) -> Result<(), Error> {
    let shared = current::running().ok_or(Error::NoSession)?;
    let filter = request.get("HAIRLINE_CATEGORIES").map(Filter::parse).transpose()?;
    let level = request.get("HAIRLINE_LEVEL").map(|level| env::level(level.to_owned())).transpose()?;
    registry::set_filter(shared.epoch(), filter, level);
    Ok(())
}

/// Requests a snapshot, as `trigger!` does.
fn triggered() -> Packet {
    match current::running() {
        Some(shared) if shared.recorder().is_some() => {
            trigger::trigger();
            match &shared.settings.path {
                Some(path) => Packet::new("done").with("output", path.display()),
                None => Packet::new("done"),
            }
        }
        Some(_) => error("no flight recorder runs: `hairline snapshot` writes the trace until now"),
        None => error(Error::NoSession),
    }
}

/// Says who records.
fn busy(recording: Option<&Recording>) -> String {
    let by = match (recording, started()) {
        (Some(of), _) => Some(format!(" for the process {}", of.visitor.pid())),
        (None, Some(_)) => Some(", until `hairline stop`".to_owned()),
        (None, None) => None,
    };
    let to = current::running().and_then(|shared| shared.settings.path.clone());
    let to = to.map(|path| format!(", to {}", path.display()));
    format!("it is recorded already{}{}", by.unwrap_or_default(), to.unwrap_or_default())
}

fn status(shared: &Shared) -> Packet {
    let packet = Packet::new("recording").with("for_ms", shared.elapsed().as_millis());
    match &shared.settings.path {
        Some(path) => packet.with("output", path.display()),
        None => packet,
    }
}

impl Recording {
    fn status(&self) -> Packet {
        status(&self.shared).with("by", self.visitor.pid())
    }

    /// Ends the session if the command asks for that, or has gone. `None`: the session has ended.
    fn go_on(self, is_ready: bool) -> Option<Self> {
        let is_over = is_ready && {
            let received = self.visitor.receive(&mut [0; LONGEST]);
            !matches!(received, Received::Nothing)
        };
        if is_over || self.shared.has_ended() {
            self.end();
            return None;
        }
        Some(self)
    }

    fn end(self) {
        self.visitor.send(&ended(&self.shared).to_bytes());
    }
}

/// Ends the session. Returns what a command hears of it.
fn ended(shared: &Shared) -> Packet {
    let ended = |summary: &Summary| {
        let packet = Packet::new("ended")
            .with("records", summary.records)
            .with("bytes", summary.bytes)
            .with("lost", summary.lost.total());
        let packet = match &summary.path {
            Some(path) => packet.with("output", path.display()),
            None => packet,
        };
        summary.notes.iter().fold(packet, |packet, note| packet.with("note", note))
    };
    match shared.stop_unless_stuck() {
        Some(Ok(summary)) => ended(&summary),
        Some(Err(Error::Write { source, summary })) => ended(&summary).with("why", source),
        Some(Err(e)) => error(e),
        None => error("the output takes no bytes: the trace has no end"),
    }
}
