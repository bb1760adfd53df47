//! Compressed traces: zstd, xz and zip open like gzip. What does not open names the command that unpacks it.
//!
//! The folder `packed` has a trace with one slice, written by `zstd --check`, `xz`, `zip` and `bzip2`;
//! `frames.zst` has it in two frames after a skippable one, `stored.zip` uncompressed below a folder.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn packed(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packed").join(name)
}

fn stats(trace: &Path, stdin: Stdio) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command.args(["stats", "--by", "name", "--csv"]).arg(trace).stdin(stdin).output().expect("it ran")
}

#[test]
fn each_compression_opens_from_a_file_and_from_a_pipe() {
    for name in ["t.json.zst", "frames.zst", "t.json.xz", "t.json.zip", "stored.zip"] {
        let path = packed(name);
        let from_file = stats(&path, Stdio::null());
        let said = String::from_utf8_lossy(&from_file.stderr).into_owned();
        let table = String::from_utf8_lossy(&from_file.stdout).into_owned();
        assert!(from_file.status.success() && said.is_empty(), "{name}: {said}");
        assert!(table.ends_with("slice,,1,1000,1000,1000,1000,1000,1000,1000\n"), "{name}: {table}");
        let from_pipe = stats(Path::new("-"), File::open(&path).expect("opened").into());
        if name.ends_with(".zip") {
            let said = String::from_utf8_lossy(&from_pipe.stderr).into_owned();
            assert!(said.contains("cannot be read from a pipe: unpack it with `unzip`"), "{name}: {said}");
        } else {
            assert_eq!(String::from_utf8_lossy(&from_pipe.stdout), table, "{name}");
        }
    }
}

#[test]
fn what_does_not_open_names_the_command_that_unpacks_it() {
    for (name, said) in [
        ("two.zip", "it is a zip archive of 2 files, not of one: unpack it with `unzip "),
        ("encrypted.zip", "it is an encrypted zip archive: unpack it with `unzip "),
        ("t.json.bz2", "a kind that this command cannot read: unpack it with `bunzip2`"),
    ] {
        let output = stats(&packed(name), Stdio::null());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{name}: {error}");
        assert!(error.contains(said), "{name}: {error}");
    }
}

#[test]
fn a_damaged_or_cut_file_is_an_error_of_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["t.json.zst", "frames.zst", "t.json.xz", "t.json.zip"] {
        let whole = fs::read(packed(name)).expect("read");
        let path = folder.path().join(name);
        // Between two frames it is a whole file, and JSON needs no closing bracket.
        for len in (1..whole.len()).filter(|_| name != "frames.zst") {
            fs::write(&path, &whole[..len]).expect("written");
            let output = stats(&path, Stdio::null());
            let error = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{name} {len}: {error}");
        }
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            fs::write(&path, &damaged).expect("written");
            let output = stats(&path, Stdio::null());
            let error = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code().is_some_and(|code| code < 2), "{name} {at}: {error}");
            assert!(error.lines().count() <= 1 && !error.contains("panicked"), "{name} {at}: {error}");
        }
    }
}
