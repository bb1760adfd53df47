//! Outputs that fail, fill up, get stuck or go away: the program goes on, ends, and is told once.

#![allow(unsafe_code)] // setrlimit, in a child before its exec

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use hairline::{Error, Format, Overflow, Session, trace_instant, trace_scope};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension, turn};

use crate::program::{Run, has_the_work, run, run_in};

/// Fails with an error of the system's from its third write on.
struct Failing(u32, i32);

impl Write for Failing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += 1;
        if self.0 > 2 { Err(io::Error::from_raw_os_error(self.1)) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_error_of_the_system_is_kept_and_returned_by_flush_and_stop() {
    for format in FORMATS {
        for code in [libc::EIO, libc::ENOSPC, libc::EPIPE, libc::EDQUOT] {
            let _turn = turn();
            let builder = Session::builder().output_writer(Failing(0, code)).format(format);
            let session = builder.start().expect("a session");
            let mut told = 0;
            for _ in 0..4 {
                (0..100).for_each(|n| trace_instant!("t", "into the void", n));
                match session.flush() {
                    Ok(()) => assert_eq!(told, 0, "once failed, for good"),
                    Err(Error::Write { source, .. }) => {
                        assert_eq!(source.raw_os_error(), Some(code));
                        told += 1;
                    }
                    other => panic!("{other:?}"),
                }
            }
            match session.stop() {
                Err(Error::Write { source, summary, .. }) => {
                    assert_eq!((source.raw_os_error(), told >= 2), (Some(code), true));
                    assert!(summary.lost.output > 0, "{summary:?}");
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn a_file_that_is_removed_or_replaced_is_noted() {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.pftrace");
    let session = Session::builder().output(&path).start().expect("a session");
    trace_instant!("t", "before");
    session.flush().expect("flushed");
    std::fs::remove_file(&path).expect("removed");
    trace_instant!("t", "after");
    let summary = session.stop().expect("stopped");
    assert_eq!((summary.records, summary.notes.len()), (2, 1), "{:?}", summary.notes);

    let builder = Session::builder().output(&path).overflow(Overflow::Overwrite);
    let recorder = builder.start().expect("a session");
    trace_instant!("t", "nowhere to go");
    drop(directory);
    assert!(matches!(recorder.snapshot(&path), Err(Error::Create { .. })));
    assert!(recorder.stop().is_err());
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

/// The reading end, without waiting for who writes.
fn reader(path: &Path) -> File {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).expect("opened")
}

#[test]
fn a_fifo_without_a_reader_is_an_error_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    fifo(&directory.path().join("t.pftrace"));
    let began = Instant::now();
    let run = run_in(directory, &["return"], &[("HAIRLINE", "t.pftrace")]);
    assert_eq!((run.output.status.code(), run.said().len()), (Some(0), 1), "{:?}", run.output);
    assert!(run.said()[0].contains("FIFO"), "{:?}", run.said());
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_fifo_that_is_read_has_the_whole_trace() {
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(&name);
        fifo(&path);
        let mut from = reader(&path);
        let (whole, ended) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let (mut bytes, mut part) = (Vec::new(), [0; 65536]);
            loop {
                match from.read(&mut part) {
                    Ok(0) if !bytes.is_empty() => break,
                    Ok(n) => bytes.extend_from_slice(&part[..n]),
                    Err(_) => {}
                }
                thread::sleep(Duration::from_micros(100));
            }
            whole.send(bytes)
        });
        let run = run_in(directory, &["much"], &[("HAIRLINE", &name)]);
        assert_eq!((run.output.status.code(), run.said().len()), (Some(0), 0), "{:?}", run.output);
        let copy = run.path("copy");
        std::fs::write(&copy, ended.recv().expect("bytes")).expect("written");
        has_the_work(&copy);
    }
}

#[test]
fn a_fifo_whose_reader_sleeps_does_not_keep_the_process_from_exiting() {
    for way in ["much", "much-exit"] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("t.fxt");
        fifo(&path);
        let asleep = reader(&path);
        let began = Instant::now();
        let run = run_in(directory, &[way], &[("HAIRLINE", "t.fxt")]);
        let took = began.elapsed();
        assert_eq!(run.output.status.code(), Some(if way == "much" { 0 } else { 7 }), "{:?}", run.output);
        assert!(took < Duration::from_secs(12), "{took:?}");
        assert!(run.said().len() == 1 && run.said()[0].contains("stuck"), "{:?}", run.said());
        std::fs::remove_file(run.region().expect("a region to recover from")).expect("removed");
        drop(asleep);
    }
}

#[test]
fn a_fifo_whose_reader_goes_is_an_error_and_kills_nobody() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.pftrace");
    fifo(&path);
    let mut from = reader(&path);
    let going = thread::spawn(move || {
        let mut part = [0; 512];
        while !matches!(from.read(&mut part), Ok(1..)) {
            thread::sleep(Duration::from_micros(100));
        }
    });
    let run = run_in(directory, &["much"], &[("HAIRLINE", "t.pftrace")]);
    going.join().expect("read");
    assert_eq!((run.output.status.code(), run.said().len()), (Some(0), 1), "{:?}", run.output);
    assert!(run.said()[0].to_lowercase().contains("broken pipe"), "{:?}", run.said());
}

/// `ending` started by a shell that first does `prepare`, as root of namespaces of its own. None where that
/// is not allowed.
fn in_namespace(prepare: &str, way: &str, variables: &[(&str, &str)]) -> Option<std::process::Output> {
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
        command.env_remove("HAIRLINE").stdin(Stdio::null());
        command
    };
    if !unshare("mount -t tmpfs none /mnt").output().is_ok_and(|o| o.status.success()) {
        eprintln!("no namespaces here: not tested");
        return None;
    }
    let mut command = unshare(&format!("{prepare} && {} {way}", env!("CARGO_BIN_EXE_ending")));
    Some(command.envs(variables.iter().copied()).output().expect("it ran"))
}

fn said(output: &std::process::Output) -> Vec<String> {
    let all = String::from_utf8_lossy(&output.stderr);
    all.lines().filter(|l| l.starts_with("hairline: ")).map(str::to_owned).collect()
}

#[test]
fn a_file_system_that_fills_up_is_one_line() {
    let small = "mount -t tmpfs -o size=64k none /mnt";
    let Some(output) = in_namespace(small, "much", &[("HAIRLINE", "/mnt/t.fxt")]) else { return };
    assert_eq!((output.status.code(), said(&output).len()), (Some(0), 1), "{output:?}");
    assert!(said(&output)[0].contains("No space left"), "{output:?}");
}

/// What a trace of `ending much` has when its file took `room` bytes at most.
fn has_what_had_room(trace: &Path, room: u64, variables: &[(&str, &str)]) {
    let len = std::fs::metadata(trace).expect("a trace").len();
    // But for the chunk that did not fit, and the room of the tail.
    assert!(len <= room && len + (24 << 10) >= room, "{variables:?}: {len} of {room}");
    let sql = [
        "select count(*), count(*) filter (where dur >= 0) from slice where name = 'step'",
        "select count(*) from slice where name = 'lost in all'",
    ];
    let verdict = judge::load(trace, &sql);
    let of_loss = |c: &hairline_tests::Stat| c.name == "traced_buf_trace_writer_packet_loss";
    assert!(verdict.complaints.iter().all(of_loss), "{:?}", verdict.complaints);
    assert!(
        verdict.results[0].text().parse::<u64>().is_err() && verdict.results[1].text() == "1",
        "{variables:?}"
    );
    if cfg!(not(feature = "command")) {
        return;
    }
    let hairline = env!("CARGO_BIN_EXE_hairline_command");
    let validated = Command::new(hairline).arg("validate").arg(trace).output().expect("it ran");
    assert_eq!(validated.status.code(), Some(1), "{validated:?}");
    assert!(String::from_utf8_lossy(&validated.stdout).contains("events are missing"), "{validated:?}");
}

#[test]
fn a_file_that_is_full_keeps_what_it_had_room_for_and_tells_of_the_rest() {
    // Packed, all of it takes some 160,000 bytes.
    const ROOM: u64 = 120_000;
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        for settings in [&[][..], &[("HAIRLINE_COMPRESS", "on")]] {
            let settings = if format == Format::Fxt { &[] } else { settings };
            let variables = [&[("HAIRLINE", &*name), ("HAIRLINE_BUFFER", "4M")], settings].concat();
            let limit = |command: &mut Command| {
                let limit = libc::rlimit { rlim_cur: ROOM, rlim_max: ROOM };
                // SAFETY: the closure makes one system call, with a pointer to a value of its own.
                unsafe {
                    command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) {
                        0 => Ok(()),
                        _ => Err(io::Error::last_os_error()),
                    })
                };
            };
            let directory = tempfile::tempdir().expect("a directory");
            let mut run =
                Run::start_with(env!("CARGO_BIN_EXE_ending"), directory, &["much"], &variables, limit);
            run.end(Duration::from_secs(60)).expect("its end");
            assert_eq!((run.output.status.code(), run.said().len()), (Some(0), 1), "{:?}", run.output);
            has_what_had_room(&run.path(&name), ROOM, settings);
        }
        let small = "mount -t tmpfs -o size=1m none /mnt";
        let path = format!("/mnt/{name}");
        let copy = tempfile::tempdir().expect("a directory");
        let way = format!("much; cp {path} {}", copy.path().display());
        let Some(output) = in_namespace(small, &way, &[("HAIRLINE", &path)]) else { return };
        assert_eq!(said(&output).len(), 1, "{output:?}");
        has_what_had_room(&copy.path().join(&name), 1 << 20, &[("tmpfs", "")]);
    }
}

#[test]
fn shared_memory_that_is_full_or_closed_is_done_without() {
    for prepare in ["mount -t tmpfs -o size=1m none /dev/shm", "mount -t tmpfs -o ro none /dev/shm"] {
        for format in FORMATS {
            let directory = tempfile::tempdir().expect("a directory");
            let trace = directory.path().join(format!("t.{}", extension(format)));
            let variables = [("HAIRLINE", trace.to_str().expect("UTF-8")), ("HAIRLINE_LOG", "info")];
            let Some(output) = in_namespace(prepare, "return", &variables) else { return };
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            assert!(said(&output).iter().any(|line| line.contains("/dev/shm")), "{output:?}");
            has_the_work(&trace);
        }
    }
}

#[test]
fn a_limit_of_the_systems_on_files_kills_nobody() {
    let limited = |blocks: u32, variables: &[(&str, &str)]| {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("sh");
        let script = format!("ulimit -f {blocks} && exec {} much", env!("CARGO_BIN_EXE_ending"));
        command.args(["-c", &script]).current_dir(directory.path()).env_remove("HAIRLINE");
        command.envs(variables.iter().copied()).output().expect("it ran")
    };
    // The ring does not get its file either. A flight recorder cannot write its snapshot then.
    for variables in
        [vec![("HAIRLINE", "t.fxt")], vec![("HAIRLINE", "t.fxt"), ("HAIRLINE_OVERFLOW", "overwrite")]]
    {
        let output = limited(64, &variables);
        assert_eq!((output.status.code(), said(&output).len()), (Some(0), 1), "{output:?}");
        assert!(said(&output)[0].contains("too large"), "{output:?}");
    }
    let output = limited(0, &[("HAIRLINE", "t.fxt")]);
    assert_eq!((output.status.code(), said(&output).len()), (Some(0), 1), "{output:?}");
}

#[test]
fn a_program_that_goes_to_another_directory_finds_its_output_again() {
    for format in FORMATS {
        let name = format!("t.{}", extension(format));
        let ways: [&[(&str, &str)]; 3] =
            [&[], &[("HAIRLINE_ROTATE", "64K,2")], &[("HAIRLINE_OVERFLOW", "overwrite")]];
        for variables in ways {
            let variables = [variables, &[("HAIRLINE", &name)]].concat();
            let run = run(&["elsewhere"], &variables);
            assert_eq!((run.output.status.code(), run.said().len()), (Some(0), 0), "{:?}", run.output);
            let files = 1 + usize::from(variables[0].0 == "HAIRLINE_ROTATE");
            assert_eq!(run.files().len(), files, "{variables:?}: {:?}", run.files());
            judge::load(run.path(&name), &[]).require_clean();
        }
    }
}

#[test]
fn an_output_with_a_greatest_size_ends_there_and_is_whole() {
    for format in FORMATS {
        for (limit, compress) in [(64 << 10, false), (1 << 20, false), (3 << 20, true)] {
            let _turn = turn();
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join(format!("t.{}", extension(format)));
            let compress = compress && format == Format::TrackEvent;
            let builder = Session::builder().output(&path).max_file_size(limit).compress(compress);
            let session = builder.start().expect("a session");
            for n in 0..1_000_000_u64 {
                trace_scope!("t", "step", n);
                if n % 1000 == 0 {
                    session.flush().expect("no error");
                }
            }
            let summary = session.stop().expect("no error");
            let len = std::fs::metadata(&path).expect("a file").len();
            assert_eq!(len, summary.bytes);
            assert!(len <= limit && len > limit / 2, "{format:?}: {len} of {limit}");
            assert_eq!(summary.notes.len(), 1, "{:?}", summary.notes);
            assert!(summary.lost.output > 0);
            let sql = [
                "select count(*) from slice where name = 'step'",
                "select count(*) from slice where name = 'lost in all'",
            ];
            let verdict = judge::load(&path, &sql);
            assert!(
                verdict.complaints.iter().all(|c| c.name == "traced_buf_trace_writer_packet_loss"),
                "{:?}",
                verdict.complaints
            );
            let records = summary.records / 2;
            assert!((records..=records + 1).contains(&(verdict.results[0].single_i64() as u64)));
            assert_eq!(verdict.results[1].single_i64(), 1, "the tail");
        }
    }
}

#[test]
fn a_greatest_size_below_the_least_is_an_error() {
    let _turn = turn();
    let builder = Session::builder().output_memory(&hairline::MemoryOutput::new()).max_file_size(1000);
    assert!(matches!(builder.start(), Err(Error::Value { .. })));
    let run = run(&["return"], &[("HAIRLINE", "t.fxt"), ("HAIRLINE_MAX_FILE_SIZE", "1K")]);
    assert_eq!((run.said().len(), run.files().len()), (1, 0));
}

/// The process's own tables of the ring are memory of the heap. No size of the ring aborts the program,
/// but for one limit at most: that at which the ring leaves not even a page, so that no allocation succeeds,
/// neither of the program nor of a library's thread.
#[test]
fn a_ring_for_which_there_is_no_memory_is_one_line() {
    let (mut without, mut exhausted) = (0, 0);
    // From the ring alone to the ring, its tables (10 MB) and all that the program needs, in KiB.
    for limit in (0..).map(|n| (16 << 20) + n * (8 << 10)).take(30) {
        let directory = tempfile::tempdir().expect("a directory");
        let script = format!("ulimit -v {limit} && exec {} return", env!("CARGO_BIN_EXE_ending"));
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(directory.path());
        let output = command.env("HAIRLINE", "t.fxt").env("HAIRLINE_BUFFER", "16G").output().expect("it ran");
        let (code, lines) = (output.status.code(), said(&output));
        match (code, lines.len()) {
            (Some(0), 0) => break,
            (Some(0), 1) => without += 1,
            // It records, and has no memory left for a thread of its own, whose start it expects.
            (Some(101), 0) => {}
            (None, 0) => exhausted += 1,
            _ => panic!("{limit} KiB: {output:?}"),
        }
    }
    assert!(without > 1 && exhausted <= 1, "{without} {exhausted}");
}

/// A file that the program opens gets the lowest free descriptor, which may be that of stderr.
#[test]
fn an_output_is_never_the_stderr_of_a_program_that_has_closed_it() {
    for format in FORMATS {
        for variables in [&[][..], &[("HAIRLINE_ROTATE", "64K")], &[("HAIRLINE_OVERFLOW", "overwrite")]] {
            let name = format!("t.{}", extension(format));
            let directory = tempfile::tempdir().expect("a directory");
            let variables = [&[("HAIRLINE", &*name)], variables].concat();
            let run = run_in(directory, &["closed"], &variables);
            assert_eq!(run.output.status.code(), Some(0), "{:?}", run.output);
            for file in hairline_tests::mortal::files(&run.path(&name)) {
                let bytes = std::fs::read(&file).expect("a trace");
                let noise = bytes.windows(5).any(|part| part == b"noise");
                assert!(!noise, "{variables:?}: {}", file.display());
            }
            has_the_work(&run.path(&name));
        }
    }
}
