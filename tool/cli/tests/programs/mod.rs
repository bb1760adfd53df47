//! Programs that a test writes, to execute them.
//!
//! Another process writes them: a child that another thread forks meanwhile would have this process's open
//! file, and nobody can execute a file that somebody may write ("Text file busy").

#![allow(dead_code)] // each test uses its part

use std::path::Path;
use std::process::Command;

/// Writes a shell script.
pub(crate) fn script(path: &Path, text: &str) {
    let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$0" && chmod 755 "$0""#;
    let written = Command::new("sh").args(["-c", write]).arg(path).arg(text).status();
    assert!(written.expect("sh runs").success());
}

/// Copies a program.
pub(crate) fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to.as_ref()).status();
    assert!(copied.expect("cp runs").success());
}
