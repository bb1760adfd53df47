//! Programs that a test writes, to execute them.

use std::path::Path;
use std::process::Command;

/// Copies a program, by another process: a child that another thread forks meanwhile would have this
/// process's open file, and nobody can execute a file that somebody may write ("Text file busy").
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to.as_ref()).status();
    assert!(copied.expect("cp runs").success());
}
