//! `hairline query`, asked as its users ask. Traces are recorded with the public API; whether the tables are
//! true, `tests/conversion/tables.rs` asks the judge.

mod answers;
mod hostile;
mod inputs;
mod memory;
mod views;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use hairline::{Session, trace_counter, trace_instant, trace_scope};
use serde_json::Value;

/// A trace of four slices and an instant, as JSON.
const SMALL: &str = r#"[
{"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"web"}},
{"name":"outer","cat":"app,net","ph":"X","ts":0,"dur":10,"pid":1,"tid":1,"args":{"n":1,"list":[1,"a"]}},
{"name":"inner","cat":"db","ph":"X","ts":2,"dur":3,"pid":1,"tid":1},
{"name":"inner","cat":"db","ph":"X","ts":6,"dur":1,"pid":1,"tid":1},
{"name":"note","cat":"app","ph":"i","ts":3,"pid":1,"tid":1,"s":"t"},
{"name":"open","cat":"app","ph":"B","ts":20,"pid":1,"tid":1}
]"#;

/// A folder that is gone after the test.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// A recording, in the format of the name.
    fn session(&self, name: &str, program: impl FnOnce()) -> PathBuf {
        static TURN: Mutex<()> = Mutex::new(());
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner); // one session in a process
        let path = self.path().join(name);
        let session = Session::builder().output(&path).start().expect("a session");
        program();
        let summary = session.stop().expect("a trace");
        assert_eq!(summary.lost.total(), 0);
        path
    }

    /// A recording of 300 requests on two threads, in the format of the name.
    fn record(&self, name: &str) -> PathBuf {
        self.session(name, || {
            std::thread::scope(|threads| {
                for thread in 0..2 {
                    threads.spawn(move || (0..150).for_each(|n| request(thread, n)));
                }
            });
        })
    }

    /// `hairline ARGUMENTS` in this folder, which succeeds.
    fn hairline(&self, arguments: &[&str]) {
        let output = self.of(arguments).output().expect("the command runs");
        assert!(output.status.success(), "{}", stderr(&output));
    }

    fn of(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
        command.args(arguments).current_dir(self.path()).stdin(Stdio::null());
        command
    }

    /// `hairline query ARGUMENTS` in this folder.
    fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = self.of(&["query"]);
        command.args(arguments);
        command
    }

    fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Output {
        self.command(arguments).output().expect("the program runs")
    }

    /// The rows of an answer that has everything and comes without a word.
    fn rows(&self, arguments: &[&str]) -> Vec<Value> {
        let output = self.run(&[arguments, &["--json"]].concat());
        assert!(output.status.success() && output.stderr.is_empty(), "{arguments:?}: {}", stderr(&output));
        rows_of(&output)
    }
}

fn request(thread: u32, n: u32) {
    trace_scope!("net", "request", n, path = "/a");
    trace_counter!("net", "in flight", thread + 1);
    {
        trace_scope!("db", "query", rows = 0.5);
        trace_instant!("db", "row");
    }
}

fn rows_of(output: &Output) -> Vec<Value> {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(output)))
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
