//! A program that records and then ends, or multiplies, in one of many ways; for the tests of what is left of
//! its trace.
//!
//! ```text
//! ending WAY [OUTPUT]
//! ```
//!
//! Ten scopes `work` on the main thread and ten on the thread `other` come first. `OUTPUT` is that of a
//! session of the program's own; without it, the environment asks for one.

#![allow(unsafe_code)] // fork, signals

use std::ffi::CString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hairline::{Overflow, Session, trace_scope};
use hairline_tests::children;

fn work() {
    for n in 0..10 {
        trace_scope!("ending", "work", n);
    }
}

fn work_on_two_threads() {
    work();
    let other = std::thread::Builder::new().name("other".to_owned()).spawn(work);
    other.expect("a thread").join().expect("joined");
}

static STOP: AtomicBool = AtomicBool::new(false);

/// Records until it is told to stop, with new callsites, tracks and threads now and then, so that every lock
/// is taken.
fn busy(seed: u64) {
    for n in 0_u64.. {
        if STOP.load(Ordering::Relaxed) {
            break;
        }
        trace_scope!("ending", "busy", seed, n);
        let name = format!("dynamic {}", n % 50);
        hairline::trace_instant!("ending", "named", name: &name);
        drop(hairline::trace_async!("ending", "interval"));
        let track = hairline::Track::process().child("a track");
        hairline::trace_begin!("ending", "on a track", track: &track);
        hairline::trace_end!(&track);
        log::info!("logged {n}");
        let span = tracing::info_span!("span", n);
        span.in_scope(|| tracing::info!("in the span"));
        if n % 1000 == 0 {
            std::thread::spawn(work).join().expect("joined");
        }
        if n % 16 == 0 {
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

/// The longest that a child may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// Forks; the child records, has a child of its own, so deep, and exits.
fn fork(depth: u32) {
    let open = hairline::scope!("ending", "open at the fork");
    // SAFETY: the child records, which it may, and allocates, which the C library lets it.
    let child = unsafe { children::fork() };
    assert!(child >= 0, "forked");
    if child > 0 {
        return children::expect_success(child, PATIENCE);
    }
    STOP.store(true, Ordering::Relaxed);
    drop(open); // the parent's: the child's trace has neither its begin nor its end
    work_on_two_threads();
    log::info!("of the child");
    tracing::info_span!("span", depth).in_scope(|| tracing::info!("of the child"));
    if depth > 1 {
        fork(depth - 1);
    }
    // SAFETY: takes a number.
    unsafe { libc::exit(0) }
}

fn fork_many(children: u32) {
    use tracing_subscriber::layer::SubscriberExt;
    hairline::Logger::new().install().expect("the logger");
    let layers = tracing_subscriber::registry().with(hairline::layer());
    tracing::subscriber::set_global_default(layers).expect("the subscriber");
    // A child that is forked while another thread makes what the registry makes once would wait for ever.
    tracing::info_span!("first").in_scope(|| {});
    std::thread::scope(|threads| {
        (0..3).for_each(|seed| drop(threads.spawn(move || busy(seed))));
        std::thread::sleep(Duration::from_millis(5));
        for n in 0..children {
            fork(1 + n % 2);
        }
        STOP.store(true, Ordering::Relaxed);
    });
}

/// A child of a process whose session is over starts one.
fn fork_later(output: &str) {
    // SAFETY: as in `fork`.
    let child = unsafe { children::fork() };
    assert!(child >= 0, "forked");
    if child > 0 {
        return children::expect_success(child, PATIENCE);
    }
    let session = Session::builder().output(output).start().expect("a session");
    work_on_two_threads();
    session.stop().expect("stopped");
    children::exit_at_once(0)
}

/// Starts this program anew, with the environment as it is.
fn run_another() {
    std::thread::scope(|threads| {
        threads.spawn(|| busy(0));
        for _ in 0..5 {
            let me = std::env::current_exe().expect("a path");
            let status = Command::new(me).arg("return").stdout(std::process::Stdio::null()).status();
            assert!(status.expect("it ran").success());
        }
        STOP.store(true, Ordering::Relaxed);
    });
}

/// Closes all descriptors, opens files of its own, and goes on recording.
fn close_all(one_by_one: bool) {
    if one_by_one {
        for number in 3..1024 {
            // SAFETY: takes a number. Nothing of this process owns the descriptor.
            unsafe { libc::close(number) };
        }
    } else {
        // SAFETY: takes numbers. Nothing of this process owns these descriptors.
        assert_eq!(unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 0) }, 0);
    }
    let own: Vec<(String, std::fs::File)> = (0..8)
        .map(|n| {
            let name = format!("own-{n}");
            (
                name.clone(),
                std::fs::File::options().read(true).append(true).create_new(true).open(name).expect("a file"),
            )
        })
        .collect();
    for n in 0..300 {
        (0..100).for_each(|_| drop(hairline::scope!("ending", "after", n)));
        for (name, file) in &own {
            use std::io::Write;
            let mut file = file;
            writeln!(file, "{name} {n}").expect("its own file is open");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    for (name, _) in &own {
        let content: String = (0..300).map(|n| format!("{name} {n}\n")).collect();
        assert_eq!(std::fs::read_to_string(name).expect("its content"), content);
    }
}

/// Ends when the ring has had the records of each thread many times, but for those of a last thread, if there
/// is one.
fn late(has_thread: bool) {
    for n in 0..20_000 {
        trace_scope!("ending", "step", n);
        if n % 100 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let late = || {
        for n in 0..10 {
            trace_scope!("ending", "late", n);
        }
        std::process::abort();
    };
    if !has_thread {
        std::process::abort();
    }
    let thread = std::thread::Builder::new().name("late".to_owned()).spawn(late);
    thread.expect("a thread").join().expect("joined");
}

/// Records when its thread is being torn down.
struct AtThreadExit;

impl Drop for AtThreadExit {
    fn drop(&mut self) {
        trace_scope!("ending", "in a destructor");
    }
}

thread_local! {
    static AT_EXIT: AtThreadExit = const { AtThreadExit };
}

fn end_threads() {
    for order in 0..2 {
        let thread = move || {
            if order == 0 {
                AT_EXIT.with(|_| ());
            }
            work();
            AT_EXIT.with(|_| ());
            std::mem::forget(hairline::scope!("ending", "open at the thread's end"));
        };
        std::thread::spawn(thread).join().expect("joined");
    }
    // Detached: alive when the process ends.
    (0..3).for_each(|seed| drop(std::thread::spawn(move || busy(seed))));
    std::thread::sleep(Duration::from_millis(20));
}

/// Loads a library that has its own copy of Hairline; both record, on both threads.
fn load(stop: bool, waits: bool) {
    let variable = |name| CString::new(std::env::var(name).expect("set")).expect("no NUL");
    let (library, output) = (variable("PLUGIN"), variable("PLUGIN_OUTPUT"));
    // SAFETY: `plugin` has these three functions, with these arguments.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        assert!(!handle.is_null(), "loaded");
        let start: extern "C" fn(*const libc::c_char) -> bool =
            std::mem::transmute(libc::dlsym(handle, c"plugin_start".as_ptr()));
        let record: extern "C" fn() = std::mem::transmute(libc::dlsym(handle, c"plugin_work".as_ptr()));
        let end: extern "C" fn() = std::mem::transmute(libc::dlsym(handle, c"plugin_stop".as_ptr()));
        assert!(start(output.as_ptr()), "a session");
        record();
        std::thread::spawn(move || record()).join().expect("joined");
        if stop {
            end();
        }
        if waits {
            std::fs::write("ready", "").expect("written");
            std::thread::sleep(Duration::from_secs(60));
        }
        libc::dlclose(handle);
    }
    trace_scope!("ending", "after the library");
}

/// The program's own handler of SIGTERM.
extern "C" fn handle(_: libc::c_int) {
    // SAFETY: takes a number.
    unsafe { libc::_exit(9) }
}

fn raise(signal: libc::c_int) {
    // SAFETY: takes numbers.
    unsafe { libc::kill(libc::getpid(), signal) };
    std::thread::sleep(Duration::from_secs(20)); // it comes
}

fn session(way: &str, output: &str) -> Session {
    let builder = Session::builder().output(output);
    let builder = match way {
        "recorder-panic" | "recorder-panic-caught" => {
            builder.overflow(Overflow::Overwrite).trigger_on_panic(true)
        }
        "recorder-signal" => builder.overflow(Overflow::Overwrite).trigger_on_signal(libc::SIGUSR2),
        "own-handler" | "sigterm" | "sigint" => builder.finish_on_signals(true),
        _ => builder,
    };
    builder.start().expect("a session")
}

fn main() {
    // Not Rust's default, but that of programs in other languages: nobody is to be killed by a pipe that
    // closes. And a shell's background job inherits that Ctrl-C is ignored.
    // SAFETY: takes numbers.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGINT, libc::SIG_DFL);
    };
    let mut arguments = std::env::args().skip(1);
    let way = arguments.next().unwrap_or_default();
    if way == "own-handler" {
        // SAFETY: the handler calls `_exit` alone.
        unsafe { libc::signal(libc::SIGTERM, handle as *const () as libc::sighandler_t) };
    }
    if way == "closed" {
        // As a program has it that was started without them and has no runtime that opens them.
        for descriptor in 0..3 {
            // SAFETY: takes a number. Nothing of this process owns the descriptor.
            unsafe { libc::close(descriptor) };
        }
    }
    let session = arguments.next().map(|output| session(&way, &output));
    if way == "alone" {
        return work();
    }
    work_on_two_threads();
    match way.as_str() {
        "fork" => fork_many(12),
        "fork-later" => {
            drop(session);
            return fork_later("child.pftrace");
        }
        "exec" => run_another(),
        "elsewhere" => {
            std::env::set_current_dir("/").expect("changed");
            (0..10_000).for_each(|n| drop(hairline::scope!("ending", "elsewhere", n)));
        }
        // 3 s, 4 MB of trace a second.
        "long" => (0..3000).for_each(|_| {
            (0..200).for_each(|n| drop(hairline::scope!("ending", "step", n)));
            std::thread::sleep(Duration::from_millis(1));
        }),
        "closed" => {
            for descriptor in 0..3 {
                // SAFETY: the pointer and the length are those of the literal.
                unsafe { libc::write(descriptor, b"noise".as_ptr().cast(), 5) };
            }
        }
        "threads" => end_threads(),
        "plugin" | "plugin-stop" | "plugin-waits" => load(way == "plugin-stop", way == "plugin-waits"),
        "exec-self" => {
            let me = std::env::current_exe().expect("a path");
            panic!("{}", Command::new(me).arg("return").exec());
        }
        "close-all" | "close-one-by-one" => close_all(way == "close-one-by-one"),
        "late" | "late-alone" => late(way == "late"),
        "pause" => std::thread::sleep(Duration::from_millis(500)),
        "much" | "much-exit" => (0..100_000).for_each(|n| {
            trace_scope!("ending", "step", n);
            if n % 1000 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }),
        _ => {}
    }
    println!("done");
    match way.as_str() {
        "exit" | "much-exit" => std::process::exit(7),
        "panic" | "recorder-panic" => panic!("on purpose"),
        "abort-in-panic" => {
            let _ = std::panic::take_hook();
            std::panic::set_hook(Box::new(|_| std::process::abort()));
            panic!("on purpose");
        }
        "recorder-panic-caught" => {
            let _ = std::panic::catch_unwind(|| panic!("on purpose"));
            std::process::abort();
        }
        "abort" => std::process::abort(),
        "sigterm" | "own-handler" => raise(libc::SIGTERM),
        "sigint" => raise(libc::SIGINT),
        // SAFETY: nothing is ever mapped there, so this ends the process, as it is meant to.
        "segv" => unsafe { std::ptr::without_provenance_mut::<u8>(1).write_volatile(1) },
        "recorder-signal" => {
            // SAFETY: takes numbers.
            unsafe { libc::raise(libc::SIGUSR2) };
            std::thread::sleep(Duration::from_secs(1));
            std::process::abort();
        }
        _ => {}
    }
    if way == "notes"
        && let Some(session) = session
    {
        println!("{:?}", session.stop().expect("stopped").notes);
    }
}
