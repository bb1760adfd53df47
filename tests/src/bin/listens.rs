//! A program that listens for commands, by a call in its code, until its input ends. Then it returns from
//! `main`.
//!
//! ```text
//! listens              slices on four threads
//! listens forks        the same, and a forked child that does the same
//! listens full         the same, without a pause
//! listens quiet        no slice
//! listens own FILE     a session of its own starts and ends as often as a line comes
//! listens later        the same as without a word, and at a line a forked child records on one thread
//! listens ended        its session ends, and then a forked child records
//! listens connect DOOR connects to the socket of another process, and says how that went
//! listens squat DOOR   makes such a socket, says so, and waits until its input ends
//! ```
//!
//! It says "ready", the bytes by which listening made it larger, and the child's number.

#![allow(unsafe_code)] // fork

use std::io::{BufRead, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hairline::{Session, trace_instant, trace_scope};
use hairline_tests::children;

static IS_OVER: AtomicBool = AtomicBool::new(false);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().map_or("", String::as_str);
    if let ("connect" | "squat", Some(door)) = (mode, arguments.get(1)) {
        return use_door(door, mode == "connect");
    }
    let before = resident();
    let _listening = hairline::listen().expect("it listens");
    let grown = resident().saturating_sub(before);
    if mode == "ended" {
        return fork_after_session();
    }
    // SAFETY: the child records, sleeps and ends, and this process has one thread of its own so far.
    let child = if mode == "forks" { unsafe { children::fork() } } else { -1 };
    let mut threads: Vec<_> =
        (0..if mode == "quiet" { 0 } else { 4 }).map(|n| work(n, mode == "full")).collect();
    if child != 0 {
        println!("ready {grown} {child}");
        std::io::stdout().flush().expect("said");
    }
    if let ("own", Some(file)) = (mode, arguments.get(1)) {
        for _ in std::io::stdin().lock().lines() {
            let session = Session::builder().output(file).start();
            println!("{}", session.as_ref().map_or_else(ToString::to_string, |_| "started".to_owned()));
            let stopped = session.map(|session| session.stop().is_ok());
            println!("{stopped:?}");
        }
    }
    if mode == "later" {
        let _ = std::io::stdin().read_exact(&mut [0]);
        // SAFETY: the child records and ends, and the C library lets it allocate.
        if unsafe { children::fork() } == 0 {
            std::mem::take(&mut threads).into_iter().for_each(std::mem::forget); // the parent's
            threads.push(work(0, false));
            println!("{}", std::process::id());
        }
    }
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    IS_OVER.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().expect("joined"));
}

fn fork_after_session() {
    let session = Session::builder().output("unused.fxt").start().expect("the environment's");
    trace_instant!("listens", "before");
    session.stop().expect("whole");
    // SAFETY: the child records and ends, and this process has one thread of its own.
    let child = unsafe { children::fork() };
    if child == 0 {
        trace_instant!("listens", "after");
        return;
    }
    println!("ready");
    children::expect_success(child, Duration::from_secs(20));
}

/// Connects to a socket, or makes one.
fn use_door(door: &str, connects: bool) {
    // SAFETY: takes numbers, and a struct of numbers, for which zeros are valid.
    let (socket, mut address): (_, libc::sockaddr_un) =
        unsafe { (libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET, 0), std::mem::zeroed()) };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    for (to, byte) in address.sun_path.iter_mut().zip(door.bytes()) {
        *to = byte.cast_signed();
    }
    let len = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    let address = (&raw const address).cast();
    // SAFETY: the address has this length.
    let done = unsafe {
        if connects {
            libc::connect(socket, address, len)
        } else {
            libc::bind(socket, address, len) | libc::listen(socket, 0)
        }
    };
    let e = std::io::Error::last_os_error();
    println!("{}", if done == 0 { "done".to_owned() } else { e.to_string() });
    std::io::stdout().flush().expect("said");
    if !connects {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
}

/// Slices with consecutive numbers.
fn work(thread: u32, without_pause: bool) -> std::thread::JoinHandle<()> {
    let work = move || {
        for n in 0_u64.. {
            {
                trace_scope!("listens", "step", n, thread);
            }
            if IS_OVER.load(Ordering::Relaxed) {
                break;
            }
            if n % 100 == 0 && !without_pause {
                std::thread::sleep(Duration::from_millis(2));
            }
        }
    };
    std::thread::Builder::new().name(format!("worker-{thread}")).spawn(work).expect("a thread")
}

/// The memory of this process that no file has, in bytes: pages of the code are shared with other processes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) << 10
}
