//! What a session does not do to the program.

use std::fs;
use std::process::Command;

use hairline::{Format, Overflow, Session, trace_scope};
use hairline_tests::recording::{FORMATS, turn};

/// Calls `f` while a session records all it can to a file, or in memory.
fn in_sessions(f: impl Fn(&str)) {
    for format in FORMATS {
        for overflow in [Overflow::Drop, Overflow::Overwrite] {
            let _turn = turn();
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join(if format == Format::Fxt { "t.fxt" } else { "t.pftrace" });
            let builder = Session::builder().output(path).format(format).overflow(overflow);
            let session = builder.scheduling(true).sampling(99).start().expect("a session");
            {
                trace_scope!("t", "work");
                f(&format!("{format:?}, {overflow:?}"));
            }
            drop(session);
        }
    }
}

/// The threads of Hairline, with the signals that they do not block.
fn own_threads() -> Vec<(String, Vec<u32>)> {
    let threads = fs::read_dir("/proc/self/task").expect("procfs").flatten();
    let of = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let name = field("Name:").filter(|name| name.starts_with("hairline"))?.to_owned();
        let blocked = u64::from_str_radix(field("SigBlk:")?, 16).ok()?;
        // Nobody can block those of the kernel and of the C library.
        let signals = (1..=64).filter(|signal| ![9, 19, 32, 33].contains(signal));
        Some((name, signals.filter(|signal| blocked & 1 << (signal - 1) == 0).collect()))
    };
    threads.filter_map(of).collect()
}

#[test]
fn a_thread_of_hairline_takes_no_signal_of_the_program() {
    in_sessions(|of| {
        let threads = own_threads();
        assert!(!threads.is_empty(), "{of}");
        assert!(threads.iter().all(|(_, open)| open.is_empty()), "{of}: {threads:?}");
    });
}

/// What the descriptors of a child lead to.
fn of_a_child() -> Vec<String> {
    let script = "for fd in /proc/self/fd/*; do readlink $fd; done | grep -v '^/proc\\|^pipe:'";
    let out = Command::new("sh").args(["-c", script]).output().expect("a shell").stdout;
    String::from_utf8(out).expect("UTF-8").lines().map(str::to_owned).collect()
}

#[test]
fn no_child_inherits_a_descriptor() {
    let before = of_a_child();
    in_sessions(|of| assert_eq!(of_a_child(), before, "{of}"));
}

/// It wakes Hairline's thread when a part of the ring is full. At any other call the kernel would kill the
/// program, which records 140,000 events with a ring whose memory it has used before.
#[test]
fn a_thread_that_records_makes_no_system_call_but_a_wake() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["t.fxt", "t.pftrace"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_filtered"));
        let status = program.current_dir(&directory).arg(name).status().expect("a program");
        assert!(status.success(), "{name}: {status}");
    }
}
