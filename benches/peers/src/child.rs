//! Processes of this same binary, one for each measurement.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use hairline_benches::service;
use serde_json::Value;

use crate::peer::Failure;

/// A command for this binary, without arguments.
pub fn command() -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.stdin(Stdio::null()).envs(service::variables());
    Ok(command)
}

/// Runs a child. Returns the JSON that it prints.
pub fn said(command: &mut Command) -> Result<Value, Failure> {
    let output = command.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("{}", output.status).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The file that a child writes. Only one child runs at a time.
pub fn file() -> PathBuf {
    std::env::temp_dir().join(format!("hairline-peers-{}.trace", std::process::id()))
}
