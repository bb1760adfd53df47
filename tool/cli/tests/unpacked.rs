//! Compressed traces: zstd, xz and zip open like gzip. What does not open names the command that unpacks it.
//!
//! The folder `packed` has a trace with one slice, written by `zstd --check`, `xz`, `zip` and `bzip2`;
//! `frames.zst` has it in two frames after a skippable one, `stored.zip` uncompressed below a folder.

use std::fs::{self, File};
use std::io::Write;
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

/// A file that was made longer before it was written has zeros at its end.
#[test]
fn zeros_after_a_compressed_trace_are_no_fault() {
    let folder = tempfile::tempdir().expect("a folder");
    let zipped = |name: &str| {
        let trace = fs::read(packed(name)).expect("read");
        let from_file = stats(&packed(name), Stdio::null());
        (trace, from_file.stdout)
    };
    let plain = br#"[{"ph":"X","name":"slice","pid":1,"tid":1,"ts":1,"dur":1}]"#;
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain).expect("memory");
    let gzip = gzip.finish().expect("memory");
    let (zstd, table) = zipped("t.json.zst");
    for (name, whole) in [("t.json.gz", gzip), ("t.json.zst", zstd), ("t.json.xz", zipped("t.json.xz").0)] {
        for zeros in [4, 1 << 17] {
            let path = folder.path().join(name);
            fs::write(&path, [&whole[..], &vec![0; zeros]].concat()).expect("written");
            let read = stats(&path, Stdio::null());
            let said = String::from_utf8_lossy(&read.stderr).into_owned();
            assert!(read.status.success() && said.is_empty(), "{name}: {said}");
            assert_eq!(read.stdout, table, "{name}");
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

/// The windows of both are larger than what this command gives a decoder.
#[test]
fn what_needs_much_memory_names_the_command_that_unpacks_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut xz = fs::read(packed("t.json.xz")).expect("read");
    // The block's header: its length, flags, the filter LZMA2, one byte of properties, padding, a checksum.
    let properties = 12 + 4;
    assert_eq!(xz[12..16], [2, 0, 0x21, 1]);
    xz[properties] = 36; // 1 GiB
    let header = xz[12..20].to_vec();
    xz[20..24].copy_from_slice(&crc32(&header).to_le_bytes());
    fs::write(folder.path().join("t.xz"), xz).expect("written");
    // A frame's header: no content size, a window of 1 GiB; and a block that is empty and the last one.
    let zstd = [0x28, 0xb5, 0x2f, 0xfd, 0, 20 << 3, 1, 0, 0];
    fs::write(folder.path().join("t.zst"), zstd).expect("written");
    for (name, command) in [("t.xz", "unxz"), ("t.zst", "unzstd --long=31")] {
        let output = stats(&folder.path().join(name), Stdio::null());
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), error.lines().count()), (Some(1), 1), "{name}: {error}");
        assert!(error.contains(&format!("more than 128 MiB: unpack it with `{command}`")), "{name}: {error}");
    }
}

fn crc32(bytes: &[u8]) -> u32 {
    let byte = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 * (crc & 1)))
    };
    !bytes.iter().fold(u32::MAX, byte)
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

/// The decoder has the bytes of its window, which were lost with the end of the frame.
#[test]
fn of_a_cut_zstd_file_all_before_the_cut_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let event = |n: u64| format!(r#"{{"name":"{n}","ph":"X","pid":1,"tid":1,"ts":{n},"dur":{}}}"#, n % 7);
    let events: Vec<_> = (0..20_000).map(event).collect();
    let whole = zstd::encode_all(format!("[{}]", events.join(",\n")).as_bytes(), 19).expect("memory");
    let path = folder.path().join("cut.json.zst");
    fs::write(&path, &whole[..whole.len() * 3 / 4]).expect("written");
    let output = stats(&path, Stdio::null());
    let (rows, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(rows.lines().count() > 8_000, "{} {said}", rows.lines().count());
}
