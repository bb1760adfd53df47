//! A process that listens, as a command talks to it.

use std::fmt;
use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use hairline::wire::Packet;

use crate::outcome::Outcome;
use crate::platform::{self, Socket};
use crate::text::{complain, failed, who};

/// The longest wait for an answer. The process may be writing the end of another recording.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest wait for the end of a session: its disk may be slow.
const PATIENCE_AT_END: Duration = Duration::from_secs(60);

/// A connection to a process that listens. The process answers one packet.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) pid: u32,
    pub(crate) name: String,
    socket: Socket,
}

/// What a process answers.
#[derive(Debug)]
pub(crate) enum Answer {
    Packet(Packet),
    /// Nothing yet.
    Nothing,
    /// The connection has ended.
    End,
}

/// The processes that a name or a pid stands for.
///
/// # Errors
/// If there is none.
pub(crate) fn processes_of(wanted: &str) -> Result<Vec<u32>, String> {
    if let Ok(pid) = wanted.parse() {
        return Ok(vec![pid]);
    }
    let own = std::process::id();
    let named: Vec<u32> = platform::processes_named(wanted).into_iter().filter(|pid| *pid != own).collect();
    let listening = |pid: &u32| matches!(Socket::of(*pid), Ok(Some(_)));
    let listening: Vec<u32> = named.iter().copied().filter(listening).collect();
    match (listening.is_empty(), named.first()) {
        (false, _) => Ok(listening),
        // Its own failure says why.
        (true, Some(first)) => Ok(vec![*first]),
        (true, None) => Err(format!(
            "there is no process of this user with the name {wanted}; name another one by its pid"
        )),
    }
}

/// Asks the processes that a name or a pid stands for, and passes on their answers.
pub(crate) fn ask_each(
    wanted: &str,
    request: &Packet,
    mut take: impl FnMut(&Listener, &Packet) -> Outcome,
) -> Outcome {
    let not_found = |why: String| {
        complain(why);
        Outcome::NotFound
    };
    let mut ask = |pid: u32| match Listener::connect(pid) {
        Ok(listener) => match listener.ask(request, None) {
            Ok(answer) => take(&listener, &answer),
            Err(why) => failed(why),
        },
        Err(why) => not_found(why),
    };
    match processes_of(wanted) {
        Ok(processes) => processes.into_iter().map(&mut ask).max().unwrap_or_default(),
        Err(why) => not_found(why),
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", who(self.pid, &self.name))
    }
}

impl Listener {
    /// Connects to a process.
    ///
    /// # Errors
    /// What is missing, and how to get it.
    pub(crate) fn connect(pid: u32) -> Result<Self, String> {
        let name = platform::name_of(pid);
        match Socket::of(pid) {
            Ok(Some(socket)) => Ok(Self { pid, name, socket }),
            Ok(None) => Err(format!(
                "process {} does not listen: start it with HAIRLINE=listen in its environment (it listens from \
                 its first event on), or call hairline::listen() in it",
                who(pid, &name)
            )),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                Err(format!("process {} does not answer: too many commands wait", who(pid, &name)))
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => Err(format!("there is no process {pid}")),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                let user = platform::user_of(pid)
                    .map_or(String::new(), |user| format!(": that has the number {user}"));
                Err(format!("process {}: only its user, and root, can do that{user}", who(pid, &name)))
            }
            Err(e) => Err(format!("process {}: {e}", who(pid, &name))),
        }
    }

    /// Sends a packet.
    pub(crate) fn send(&self, packet: &Packet, file: Option<&File>) -> io::Result<()> {
        let bytes = packet.to_bytes();
        if Packet::parse(&bytes).as_ref() != Some(packet) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the settings have more than 16 KiB"));
        }
        self.socket.send(&bytes, file)
    }

    /// Receives an answer within a time.
    pub(crate) fn receive(&self, within: Duration) -> Answer {
        match self.socket.receive(within) {
            Ok(None) => Answer::Nothing,
            Ok(Some(bytes)) => Packet::parse(&bytes).map_or(Answer::End, Answer::Packet),
            Err(_) => Answer::End,
        }
    }

    /// Sends a packet, and returns the answer.
    ///
    /// # Errors
    /// If the process refuses it, or does not answer.
    pub(crate) fn ask(&self, packet: &Packet, file: Option<&File>) -> Result<Packet, String> {
        let at = |why: &str| format!("{self}: {why}");
        self.send(packet, file).map_err(|e| at(&e.to_string()))?;
        let until = Instant::now() + if packet.word == "stop" { PATIENCE_AT_END } else { PATIENCE };
        while Instant::now() < until {
            match self.receive(Duration::from_millis(100)) {
                Answer::Packet(answer) if answer.word == "error" => {
                    return Err(at(answer.get("why").unwrap_or("it refuses that")));
                }
                Answer::Packet(answer) => return Ok(answer),
                Answer::End => return Err(at("it has ended, or refuses the connection")),
                Answer::Nothing => {}
            }
        }
        Err(at("it does not answer"))
    }
}
