//! The command `hairline`, before the judge: what it leaves loads without complaint, and is what was
//! recorded.

mod at_once;
mod awaited;
mod causes;
mod diff;
mod doctor;
mod explain;
mod export;
mod export_places;
mod in_spans;
mod json;
mod looks;
mod order;
mod others;
mod otlp;
mod plain;
mod record;
mod requests;
mod running;
mod selection;
mod snapshot;
mod splice;
mod stacks;
mod started;
mod top;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The command, in a folder.
fn hairline(folder: &Path) -> Command {
    prepared(Command::new(env!("CARGO_BIN_EXE_hairline_command")), folder)
}

/// The same, with no signal ignored, whatever `nohup` or a shell that starts the tests in the background has
/// told them to ignore.
fn hairline_that_heeds_signals(folder: &Path) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal", env!("CARGO_BIN_EXE_hairline_command")]);
    prepared(command, folder)
}

fn prepared(mut command: Command, folder: &Path) -> Command {
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    without_tracing(&mut command);
    command
}

/// The program that records.
const FAMILY: &str = env!("CARGO_BIN_EXE_family");

fn without_tracing(command: &mut Command) {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HAIRLINE")) {
        command.env_remove(name);
    }
}

fn run(command: &mut Command) -> Output {
    command.output().expect("it ran")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The program `family`, traced, that goes on until it is killed: by the test, or at its end. Its region is
/// cleared away.
struct Traced(Child);

impl Traced {
    /// Started, with `trace` as its output, and told that it records.
    fn start(arguments: &[&str], trace: &Path, variables: &[(&str, &str)]) -> Self {
        let mut program = Command::new(FAMILY);
        without_tracing(&mut program);
        program.args(arguments).env("HAIRLINE", trace).envs(variables.iter().copied()).stdout(Stdio::piped());
        let mut traced = Self(program.spawn().expect("it starts"));
        assert_eq!(first_line(&mut traced.0), "ready");
        traced
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    fn kill(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.kill();
        run(hairline(&std::env::temp_dir()).args(["recover", &self.pid()]));
    }
}

/// The first line of what a program says.
fn first_line(child: &mut Child) -> String {
    use std::io::{BufRead, BufReader};
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
    line.trim().to_owned()
}

/// What is in a folder, sorted.
fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).expect("a folder").flatten().map(|e| e.file_name());
    let mut names: Vec<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
