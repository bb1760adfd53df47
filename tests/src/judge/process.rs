//! The Node process behind the judge.

use std::error::Error;
use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::verdict::{Verdict, verdict_of};

/// No trace of a test takes long (a million events load in 3 s): what does has hung.
const TIMEOUT: Duration = Duration::from_secs(120);

/// One a process: an engine holds some 200 MB, and two cores do not run several.
static JUDGE: Mutex<Option<Judge>> = Mutex::new(None);

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JudgeError {
    /// The importer did not accept the trace, or the file cannot be read.
    Load(String),
    /// A query is wrong.
    Sql(String),
    /// The judge itself is missing, crashed or hung.
    Engine(String),
}

impl fmt::Display for JudgeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Load(why) => write!(f, "the trace does not load: {why}"),
            Self::Sql(why) => write!(f, "SQL: {why}"),
            Self::Engine(why) => write!(f, "the judge failed: {why}"),
        }
    }
}

impl Error for JudgeError {}

impl JudgeError {
    /// The error in an answer: its kind, a colon, the text.
    fn of_answer(error: &str) -> Self {
        match error.split_once(": ") {
            Some(("load", why)) => Self::Load(why.to_owned()),
            Some(("sql", why)) => Self::Sql(why.to_owned()),
            Some(("engine", why)) => Self::Engine(why.to_owned()),
            _ => Self::Engine(error.to_owned()),
        }
    }
}

/// A running trace_processor. One serves all tests of a process, in turn.
#[derive(Debug)]
pub struct Judge {
    child: Child,
    stdin: ChildStdin,
    /// Lines of the child's stdout; a thread of their own reads them, so that waiting can time out.
    lines: Receiver<String>,
    next_id: u64,
}

impl Judge {
    /// Loads `trace`, runs each query of `sql`, and says what the importer complained about.
    ///
    /// # Panics
    /// If the trace does not load, a query is wrong or the judge is not to be had.
    #[track_caller]
    pub fn load(trace: impl AsRef<Path>, sql: &[&str]) -> Verdict {
        let trace = trace.as_ref();
        match Self::try_load(trace, sql) {
            Ok(verdict) => verdict,
            Err(error) => panic!("{}: {error}", trace.display()),
        }
    }

    /// Loads a trace that may be a broken one.
    ///
    /// # Errors
    /// [`JudgeError::Load`] if the trace is not accepted; the others are the test's fault or the judge's.
    pub fn try_load(trace: impl AsRef<Path>, sql: &[&str]) -> Result<Verdict, JudgeError> {
        // A test that panicked with the lock in hand left no request half done that matters: `ask` is over
        // or has given the process up.
        let mut slot = JUDGE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut judge = match slot.take() {
            Some(judge) => judge,
            None => Self::start()?,
        };
        let answer = judge.ask(trace.as_ref(), sql)?;
        *slot = Some(judge); // only a judge that answered is asked again
        drop(slot);
        match answer["error"].as_str() {
            Some(error) => Err(JudgeError::of_answer(error)),
            None => Ok(verdict_of(answer)),
        }
    }

    fn start() -> Result<Self, JudgeError> {
        let mut child = Command::new("node")
            .arg(oracle_dir().join("judge.mjs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| engine_error(format!("node (18 or newer) is needed on PATH: {error}")))?;
        let stdin = child.stdin.take().expect("stdin is piped");
        let lines = read_lines(child.stdout.take().expect("stdout is piped"));
        let mut judge = Self { child, stdin, lines, next_id: 0 };
        let hello = judge.receive()?;
        match hello["ready"].is_string() {
            true => Ok(judge),
            false => Err(engine_error(hello["error"].as_str().unwrap_or("no hello").to_owned())),
        }
    }

    fn ask(&mut self, trace: &Path, sql: &[&str]) -> Result<Value, JudgeError> {
        self.next_id += 1;
        let trace = std::path::absolute(trace).map_err(|error| JudgeError::Load(error.to_string()))?;
        let request = json!({"id": self.next_id, "trace": trace.to_str().expect("a UTF-8 path"), "sql": sql});
        writeln!(self.stdin, "{request}").map_err(|error| engine_error(format!("it is gone: {error}")))?;
        let answer = self.receive()?;
        assert_eq!(answer["id"], self.next_id, "an answer to another request");
        Ok(answer)
    }

    fn receive(&mut self) -> Result<Value, JudgeError> {
        let line = self.lines.recv_timeout(TIMEOUT).map_err(|error| {
            engine_error(match error {
                RecvTimeoutError::Timeout => format!("no answer in {} s", TIMEOUT.as_secs()),
                RecvTimeoutError::Disconnected => "it ended without an answer".to_owned(),
            })
        })?;
        serde_json::from_str(&line).map_err(|error| engine_error(format!("{error} in its answer {line:?}")))
    }
}

impl Drop for Judge {
    /// A judge that is given up is not waited for (at the end of the test process nothing is dropped, and the
    /// child ends because its stdin does).
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may have ended by itself
        let _ = self.child.wait();
    }
}

pub(super) fn oracle_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle")
}

fn engine_error(why: String) -> JudgeError {
    JudgeError::Engine(why)
}

fn read_lines(stdout: ChildStdout) -> Receiver<String> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_died_says_so() {
        let mut judge = Judge::start().unwrap();
        judge.child.kill().unwrap();
        judge.child.wait().unwrap();
        let error = judge.ask(Path::new("any"), &[]).unwrap_err();
        assert!(matches!(error, JudgeError::Engine(_)), "{error}");
    }

    #[test]
    fn an_error_is_told_by_its_kind() {
        assert_eq!(JudgeError::of_answer("load: cut: here"), JudgeError::Load("cut: here".to_owned()));
        assert_eq!(JudgeError::of_answer("sql: no"), JudgeError::Sql("no".to_owned()));
        assert_eq!(JudgeError::of_answer("engine: aborted"), JudgeError::Engine("aborted".to_owned()));
        assert_eq!(JudgeError::of_answer("what?"), JudgeError::Engine("what?".to_owned()));
    }
}
