//! The command `hairline`, before the judge: what it leaves loads without complaint, and is what was recorded.

mod looks;
mod record;
mod snapshot;
mod splice;
mod top;

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// The command, in a folder.
fn hairline(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
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

/// A program that goes on until it is killed: by the test, or when that fails.
struct Killed(Child);

impl Deref for Killed {
    type Target = Child;
    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Killed {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
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
