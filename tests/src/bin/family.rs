//! A program that records, alone or with children, for the tests of the command `hairline`. It starts no
//! session: the environment does.
//!
//! ```text
//! family parent CHILDREN KILLED   starts so many of itself one after the other, and kills so many of them
//!                                 when they have recorded
//! family child N [stay]           100 slices `step` on each of two threads; and stays until it is killed
//! family busy THREADS [PAUSE]     slices without end, a hundred every PAUSE milliseconds
//! family daemon                   starts one that stays, and leaves it; prints its number
//! family late MS                   starts one that records after so many milliseconds, and leaves it
//! family delayed MS                records after so many milliseconds
//! family interrupted IGNORED      records, says "ready", and ends with 3 at the Ctrl-C after so many
//! family exit CODE                records and ends so
//! family abort                    aborts, and has recorded nothing
//! family ready                    stays until it is killed, and records nothing
//! ```

#![allow(unsafe_code)] // signals

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use hairline::{trace_counter, trace_scope};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|a| a.parse().ok()).unwrap_or_default();
    match arguments.first().map(String::as_str) {
        Some("parent") => parent(number(1), number(2)),
        Some("child") => {
            work(number(1));
            if arguments.len() > 2 {
                stay();
            }
        }
        Some("busy") => busy(number(1), Duration::from_millis(number(2).into())),
        Some("daemon") => {
            #[allow(clippy::zombie_processes)] // it outlives this program
            let child = start(&["child", "0", "stay"]);
            println!("{}", child.id());
        }
        Some("late") => {
            #[allow(clippy::zombie_processes)] // it outlives this program
            drop(start(&["delayed", &number(1).to_string()]));
        }
        Some("delayed") => {
            std::thread::sleep(Duration::from_millis(number(1).into()));
            work(0);
        }
        Some("interrupted") => interrupted(number(1)),
        Some("exit") => {
            work(0);
            std::process::exit(i32::try_from(number(1)).unwrap_or(0));
        }
        Some("abort") => std::process::abort(),
        Some("ready") => stay(),
        _ => {}
    }
}

fn steps(child: u32) {
    trace_scope!("family", "life", child);
    for n in 0..100 {
        trace_scope!("family", "step", n, child);
        trace_counter!("family", "progress", n);
    }
}

fn work(child: u32) {
    steps(child);
    let other = std::thread::Builder::new().name("other".to_owned()).spawn(move || steps(child));
    other.expect("a thread").join().expect("joined");
}

/// Says so, and waits to be killed.
fn stay() {
    println!("ready");
    std::io::stdout().flush().expect("written");
    std::thread::sleep(Duration::from_secs(600));
}

fn start(arguments: &[&str]) -> Child {
    let me = std::env::current_exe().expect("a path");
    // Of those that outlive this program nobody waits for an end of what they say.
    let mut command = Command::new(me);
    let mut child =
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a child");
    if arguments.contains(&"stay") {
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut line).expect("a line");
    }
    child
}

fn parent(children: u32, killed: u32) {
    trace_scope!("family", "parent");
    for n in 0..children {
        trace_scope!("family", "start", n);
        let number = n.to_string();
        let mut child =
            if n < killed { start(&["child", &number, "stay"]) } else { start(&["child", &number]) };
        if n < killed {
            child.kill().expect("killed");
        }
        child.wait().expect("its end");
    }
}

fn busy(threads: u32, pause: Duration) {
    let (started, all_started) = mpsc::channel();
    for thread in 0..threads {
        let name = format!("busy-{thread}");
        let started = started.clone();
        let work = move || {
            trace_scope!("family", "outer", thread);
            for n in 0_u64.. {
                trace_scope!("family", "step", n);
                if n == 1 {
                    started.send(()).expect("it is waited for");
                }
                if !pause.is_zero() && n % 100 == 0 {
                    std::thread::sleep(pause);
                }
            }
        };
        std::thread::Builder::new().name(name).spawn(work).expect("a thread");
    }
    assert_eq!(all_started.iter().take(threads as usize).count(), threads as usize);
    std::thread::sleep(Duration::from_millis(100));
    stay();
}

static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    INTERRUPTS.fetch_add(1, Ordering::SeqCst);
}

fn interrupted(ignored: u32) {
    // SAFETY: the handler touches an atomic alone.
    unsafe { libc::signal(libc::SIGINT, count as *const () as libc::sighandler_t) };
    work(0);
    println!("ready");
    std::io::stdout().flush().expect("written");
    while INTERRUPTS.load(Ordering::SeqCst) <= ignored {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::process::exit(3);
}
