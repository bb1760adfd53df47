//! Programs of known behaviour, compiled as users do.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The source of the program that burns.
pub(crate) const BURN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/burn.rs");
const CALLER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/caller.rs");

/// Compiles `source` with optimisation and these flags into `folder`.
fn compile(source: &str, folder: &Path, flags: &[&str]) {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.current_dir(folder).args(["--edition=2024", "-O", "-Cdebuginfo=line-tables-only"]);
    assert!(command.args(flags).arg(source).status().expect("rustc runs").success());
}

/// The program that burns, with these flags.
pub(crate) fn burn(folder: &Path, flags: &[&str]) -> PathBuf {
    compile(BURN, folder, flags);
    folder.join("burn")
}

/// The program that calls the library that burns.
pub(crate) fn caller(folder: &Path) -> PathBuf {
    compile(BURN, folder, &["--crate-type=cdylib"]);
    let here = folder.to_str().expect("UTF-8");
    compile(CALLER, folder, &["-L", here, &format!("-Clink-arg=-Wl,-rpath,{here}")]);
    folder.join("caller")
}

/// The number of the line of the program's source that has this text.
pub(crate) fn line(text: &str) -> i64 {
    let source = std::fs::read_to_string(BURN).expect("the source");
    let at = source.lines().position(|line| line.contains(text)).expect("a line with the text");
    i64::try_from(at).expect("a small number") + 1
}
