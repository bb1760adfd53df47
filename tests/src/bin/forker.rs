//! A program that records on several threads and makes children meanwhile, in every way there is; for the
//! torture of forks.
//!
//! ```text
//! forker seed=N children=N threads=N kinds=fork,_fork,clone,spawn,exec,handler,returned,_handler
//!        mode=environment|steady|coming|recorder template=t-%p.fxt subscriber=own|layer
//! forker return
//! ```
//!
//! | kind | child |
//! |---|---|
//! | `fork` | of `fork()`. Records whatever there is, starts threads, has children of its own |
//! | `_fork` | of `_Fork()`, which runs no `pthread_atfork` handlers. Records scopes and instants, no more |
//! | `clone` | of the system call, of which the C library knows nothing. As `_fork` |
//! | `spawn` | of `posix_spawn`: this program, with `return` |
//! | `exec` | of `fork()`, and then `exec` at once: as `spawn` |
//! | `handler` | of `fork()` in a signal handler, on a thread that records. Ends there |
//! | `returned` | the same, but the child goes on as the interrupted thread, perhaps in the midst of an event |
//! | `_handler` | of `_Fork()` in a signal handler, on a thread that records. As `_fork` |
//!
//! | mode | session |
//! |---|---|
//! | `environment` | as the environment asks |
//! | `steady` | one, from before the first child until after the last |
//! | `coming` | one after the other, for some milliseconds each |
//! | `recorder` | one flight recorder, of which snapshots are taken all the time |
//!
//! Every process appends a line to the file `told` before it ends: `PID PARENT KIND END THREAD:STEPS ...`,
//! the scopes `step` that it recorded as a process of its own. What goes wrong is a line on stdout that
//! begins with `failure`.

#![allow(unsafe_code)] // forks, signals

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::CString;
use std::io::Write;
use std::os::fd::IntoRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Barrier, Mutex, OnceLock};
use std::time::{Duration, Instant};

use hairline::{Overflow, Session, trace_counter, trace_instant};
use hairline_tests::forked::{MAGIC, describe};
use hairline_tests::marking::{MarkingAlloc, is_allocating};
use hairline_tests::torture::Random;

thread_local! {
    /// This thread's number, in its steps.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
    /// Its next step, in all sessions and processes.
    static NEXT: Cell<u64> = const { Cell::new(0) };
    /// Steps that it recorded, and the depth of the process in which it did. A handler may fork between a look at the number and the
    /// next one's store, which then belongs to the parent.
    static RECORDED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

#[global_allocator]
static MARKING: MarkingAlloc = MarkingAlloc;

/// No thread begins another step.
static STOP: AtomicBool = AtomicBool::new(false);
/// Counts the forks between the first process and this one.
static DEPTH: AtomicU32 = AtomicU32::new(0);
/// Where every process tells what it recorded.
static TOLD: AtomicI32 = AtomicI32::new(-1);
/// Children still to be made.
static LEFT: AtomicI64 = AtomicI64::new(0);
static FAILURES: AtomicU32 = AtomicU32::new(0);

/// Longer than a child can take, on a machine with much else to do. A session's end alone may take 3 s.
const PATIENCE: Duration = Duration::from_secs(20);
/// Threads that fork.
const FORKERS: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Fork,
    BareFork,
    Clone,
    Spawn,
    Exec,
    Handler,
    Returned,
    BareHandler,
}

const KINDS: [(Kind, &str); 8] = [
    (Kind::Fork, "fork"),
    (Kind::BareFork, "_fork"),
    (Kind::Clone, "clone"),
    (Kind::Spawn, "spawn"),
    (Kind::Exec, "exec"),
    (Kind::Handler, "handler"),
    (Kind::Returned, "returned"),
    (Kind::BareHandler, "_handler"),
];

impl Kind {
    fn name(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Whether the child may do only what a signal handler may.
    fn is_bare(self) -> bool {
        matches!(self, Self::BareFork | Self::Clone | Self::BareHandler)
    }
}

struct Orders {
    kinds: Vec<Kind>,
    mode: String,
    template: String,
    extension: String,
}

static ORDERS: OnceLock<Orders> = OnceLock::new();

fn orders() -> &'static Orders {
    ORDERS.get().expect("set by main")
}

fn process() -> libc::pid_t {
    // SAFETY: takes nothing. Not `std`'s, nor glibc's older ones, which remember it.
    unsafe { libc::syscall(libc::SYS_getpid) as libc::pid_t }
}

/// `_Fork`, where the C library has it.
fn bare_fork() -> Option<extern "C" fn() -> libc::pid_t> {
    static BARE_FORK: OnceLock<usize> = OnceLock::new();
    // SAFETY: a name that ends with NUL.
    let at =
        *BARE_FORK.get_or_init(|| unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_Fork".as_ptr()) as usize });
    // SAFETY: `pid_t _Fork(void)` since glibc 2.34.
    (at != 0).then(|| unsafe { std::mem::transmute::<usize, extern "C" fn() -> libc::pid_t>(at) })
}

// ---- what a process records

/// Steps that this thread recorded in the process of this depth.
fn recorded_at(depth: u32) -> u64 {
    let (of, recorded) = RECORDED.get();
    if of == u64::from(depth) { recorded } else { 0 }
}

/// Steps that this thread recorded in this process.
fn recorded() -> u64 {
    recorded_at(DEPTH.load(SeqCst))
}

/// A scope `step`, counted if it was recorded.
fn step() {
    let (n, depth) = (NEXT.get(), DEPTH.load(SeqCst));
    let scope = hairline::scope!("forker", "step", n = n, thread = NUMBER.get(), magic = MAGIC);
    let is_recorded = scope.is_recorded();
    drop(scope);
    if is_recorded {
        NEXT.set(n + 1);
        // A handler may have forked meanwhile: then the begin was the parent's.
        RECORDED.set((u64::from(depth), recorded_at(depth) + u64::from(DEPTH.load(SeqCst) == depth)));
    }
}

/// What a signal handler may do.
fn record_bare() {
    step();
    trace_instant!("forker", "bare");
    trace_counter!("forker", "bare count", NEXT.get());
}

/// Whatever there is.
fn record(random: &Random) {
    step();
    match random.below(9) {
        0 => trace_instant!("forker", "instant", text = "some text", half = 0.5),
        1 => trace_instant!("forker", "formatted", value = ?Some(random.below(9))),
        2 => trace_counter!("forker", "count", random.below(1000)),
        3 => {
            let mut interval = hairline::trace_async!("forker", "interval");
            interval.arg("by", NUMBER.get());
        }
        4 => {
            let track = hairline::Track::process().child("a track");
            hairline::trace_begin!("forker", "on a track", track: &track);
            step();
            hairline::trace_end!(&track);
        }
        5 => {
            let span = tracing::info_span!("span", text = "of a field");
            span.in_scope(|| {
                tracing::info!("in the span");
                step();
            });
        }
        6 => log::info!("logged by {}", NUMBER.get()),
        7 => {
            let name = format!("dynamic {}", random.below(50));
            trace_instant!("forker", "named", name: &name);
        }
        _ => record_bare(),
    }
}

/// Appends this process's line to `told`. Allocates nothing.
fn tell(parent: libc::pid_t, kind: &str, end: &str, steps: &[(u64, u64)]) {
    let mut line = [0_u8; 256];
    let mut rest = &mut line[..];
    let _ = write!(rest, "{} {parent} {kind} {end}", process());
    for (thread, recorded) in steps {
        let _ = write!(rest, " {thread}:{recorded}");
    }
    let _ = rest.write_all(b"\n");
    let len = 256 - rest.len();
    // SAFETY: the bytes are there; one write, which is whole and alone in a file that was opened to append.
    unsafe { libc::write(TOLD.load(SeqCst), line.as_ptr().cast(), len) };
}

fn fail(what: &str) {
    FAILURES.fetch_add(1, SeqCst);
    println!("failure: {}", what.replace('\n', "\n    "));
}

// ---- the life of a child

/// How a child ends.
fn end(random: &Random, kind: Kind) -> &'static str {
    let ends: &[&str] = if kind.is_bare() { &["_exit", "killed"] } else { &["exit", "_exit", "killed"] };
    ends[random.below(ends.len() as u64) as usize]
}

fn leave(end: &str) -> ! {
    // SAFETY: takes numbers.
    unsafe {
        match end {
            "exit" => libc::exit(0),
            "killed" => libc::kill(process(), libc::SIGKILL),
            _ => 0,
        };
        libc::_exit(0)
    }
}

/// All that a child of this kind does, until its end.
fn live(parent: libc::pid_t, kind: Kind, random: &Random, depth: u32) -> ! {
    let end = end(random, kind);
    let number = NUMBER.get();
    if kind.is_bare() {
        (0..random.below(20)).for_each(|_| record_bare());
        tell(parent, kind.name(), end, &[(number, recorded())]);
        leave(end);
    }
    let lived = catch_unwind(AssertUnwindSafe(|| {
        (0..random.below(20)).for_each(|_| record(random));
        let mut own = None;
        if random.one_in(4) {
            // There is none if the parent had none.
            let name = format!("own-%p.{}", orders().extension);
            own = Session::builder().output(name).buffer_size(BUFFER).start().ok();
            (0..random.below(20)).for_each(|_| record(random));
        }
        let other = random.one_in(3).then(|| Thread::start(number + 100, random.next()));
        if depth > 1 && random.one_in(3) {
            make(Kind::Fork, random, depth - 1);
        }
        let others = other.map_or(0, Thread::join);
        (0..random.below(5)).for_each(|_| record(random));
        tell(parent, kind.name(), end, &[(number, recorded()), (number + 100, others)]);
        if end == "exit" {
            drop(own);
        } else {
            std::mem::forget(own);
        }
    }));
    if lived.is_err() {
        tell(parent, kind.name(), "panicked", &[]);
        // SAFETY: takes a number.
        unsafe { libc::_exit(101) };
    }
    leave(end)
}

/// A thread of a child. Not the standard library's, whose threads take a lock of the process when they start
/// and end: a fork may leave that locked for ever (`std::sys::pal::unix::stack_overflow::thread_info`).
struct Thread {
    id: libc::pthread_t,
    /// Number, seed, and in the end the steps that it recorded.
    life: Box<[u64; 3]>,
}

impl Thread {
    fn start(number: u64, seed: u64) -> Self {
        extern "C" fn run(life: *mut libc::c_void) -> *mut libc::c_void {
            // SAFETY: `start` gave it, and `join` waits.
            let life = unsafe { &mut *life.cast::<[u64; 3]>() };
            NUMBER.set(life[0]);
            let random = Random::new(life[1]);
            (0..random.below(50)).for_each(|_| record(&random));
            life[2] = recorded();
            std::ptr::null_mut()
        }
        let mut thread = Self { id: 0, life: Box::new([number, seed, 0]) };
        let life = (&raw mut *thread.life).cast();
        // SAFETY: a function of this program; what it is given lives until `join`.
        let error = unsafe { libc::pthread_create(&raw mut thread.id, std::ptr::null(), run, life) };
        assert_eq!(error, 0, "a thread");
        thread
    }

    fn join(self) -> u64 {
        // SAFETY: joined once.
        unsafe { libc::pthread_join(self.id, std::ptr::null_mut()) };
        self.life[2]
    }
}

/// In a child, at once.
fn begin_child() {
    DEPTH.fetch_add(1, SeqCst);
    RECORDED.set((u64::from(DEPTH.load(SeqCst)), 0));
}

// ---- how children are made and waited for

/// Waits for a child. One that crashes stops first, by the handler of `main`, so that it can be looked at.
fn wait_for(child: libc::pid_t, what: &str, depth: u32) {
    // Its own children are reported by the child, which takes some time for that.
    let patience = PATIENCE + (depth - 1) * Duration::from_secs(15);
    let began = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid, the pid is our child's.
        let found = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
        if found == child {
            break;
        }
        if found < 0 {
            return fail(&format!("{what}: there is no child {child}: {}", std::io::Error::last_os_error()));
        }
        if began.elapsed() > patience {
            fail(&format!("{what}: the child {child} hangs\n{}", describe(child)));
            return kill(child);
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    let is_killed = libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGKILL;
    if libc::WIFSTOPPED(status) {
        fail(&format!("{what}: the child {child} crashed\n{}", describe(child)));
        kill(child);
    } else if !is_killed && status != 0 {
        fail(&format!("{what}: the child {child} ended with {status:#x}"));
    }
}

fn kill(child: libc::pid_t) {
    let mut status = 0;
    // SAFETY: our child's pid; `status` is valid.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, &raw mut status, 0);
    }
}

/// Makes a child, and waits for its end.
fn make(kind: Kind, random: &Random, depth: u32) {
    let what = format!("{} in {}, {}", kind.name(), orders().mode, orders().template);
    let (parent, of_child) = (process(), Random::new(random.next()));
    let child = match kind {
        Kind::Fork | Kind::Exec => {
            let again = again();
            let _open = hairline::scope!("forker", "open at the fork");
            // SAFETY: glibc makes what the child does possible, this library says that it does.
            let child = unsafe { libc::fork() };
            if child == 0 {
                begin_child();
                if kind == Kind::Exec {
                    // SAFETY: two strings and a null.
                    unsafe { libc::execv(again[0], again.as_ptr()) };
                    leave("_exit");
                }
                live(parent, kind, &of_child, depth);
            }
            child
        }
        Kind::BareFork => {
            let Some(bare_fork) = bare_fork() else { return };
            let child = bare_fork();
            if child == 0 {
                begin_child();
                live(parent, kind, &of_child, 1);
            }
            child
        }
        Kind::Clone => {
            // SAFETY: as fork, with which it shares the flags and the null stack; the C library hears nothing
            // of it.
            let child = unsafe { libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0) as libc::pid_t };
            if child == 0 {
                begin_child();
                live(parent, kind, &of_child, 1);
            }
            child
        }
        Kind::Spawn => {
            let again = again();
            let mut child = 0;
            // SAFETY: valid pointers, lists that end with null; no attributes.
            let error = unsafe {
                let (actions, attributes) = (std::ptr::null(), std::ptr::null());
                let arguments = again.as_ptr().cast::<*mut libc::c_char>();
                libc::posix_spawn(&raw mut child, again[0], actions, attributes, arguments, environ)
            };
            if error == 0 { child } else { -1 }
        }
        Kind::Handler | Kind::Returned | Kind::BareHandler => return make_in_handler(kind, random, &what),
    };
    if child < 0 {
        return fail(&format!("{what}: no child: {}", std::io::Error::last_os_error()));
    }
    wait_for(child, &what, depth);
}

unsafe extern "C" {
    static environ: *const *mut libc::c_char;
}

/// The arguments of this program for a program that records a little and ends, made before a fork.
fn again() -> [*const libc::c_char; 3] {
    static ME: OnceLock<CString> = OnceLock::new();
    let path = || std::env::current_exe().expect("a path").into_os_string().into_encoded_bytes();
    let me = ME.get_or_init(|| CString::new(path()).expect("no NUL"));
    [me.as_ptr(), c"return".as_ptr(), std::ptr::null()]
}

// ---- forks in a signal handler

/// Threads that record, to be interrupted.
static RECORDERS: Mutex<Vec<libc::pthread_t>> = Mutex::new(Vec::new());
/// One at a time.
static TURN: Mutex<()> = Mutex::new(());
static HANDLER_SEED: AtomicU64 = AtomicU64::new(0);
static HANDLER_KIND: AtomicU32 = AtomicU32::new(0);
/// What came of it: a pid, -1 if there was no fork.
static HANDLED: AtomicI32 = AtomicI32::new(0);
/// In a child that goes on as the thread that was interrupted: the steps it still has.
static STEPS_LEFT: AtomicI64 = AtomicI64::new(-1);
static HANDLER_PARENT: AtomicI32 = AtomicI32::new(0);

fn make_in_handler(kind: Kind, random: &Random, what: &str) {
    let turn = TURN.lock().expect("no panic");
    HANDLER_SEED.store(random.next(), SeqCst);
    HANDLER_KIND.store(kind as u32, SeqCst);
    HANDLED.store(0, SeqCst);
    {
        let recorders = RECORDERS.lock().expect("no panic");
        let thread = recorders[random.below(recorders.len() as u64) as usize];
        // SAFETY: the recorders end when all children are made.
        unsafe { libc::pthread_kill(thread, libc::SIGUSR1) };
    }
    let began = Instant::now();
    while HANDLED.load(SeqCst) == 0 {
        if STOP.load(SeqCst) {
            return; // a thread that records has panicked
        }
        if began.elapsed() > PATIENCE {
            return fail(&format!("{what}: the handler hangs\n{}", describe(process())));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    let child = HANDLED.load(SeqCst);
    drop(turn);
    if child > 0 {
        wait_for(child, what, 1);
    }
}

extern "C" fn handle(_: libc::c_int) {
    let random = Random::new(HANDLER_SEED.load(SeqCst));
    let number = HANDLER_KIND.load(SeqCst);
    let kind =
        KINDS.iter().map(|(kind, _)| *kind).find(|kind| *kind as u32 == number).unwrap_or(Kind::BareHandler);
    let parent = process();
    let child = match (kind, bare_fork()) {
        (Kind::BareHandler, Some(bare_fork)) => bare_fork(),
        // SAFETY: not from inside of the allocator, whose locks `fork` takes.
        (Kind::Handler | Kind::Returned, _) if !is_allocating() => unsafe { libc::fork() },
        _ => -1,
    };
    if child != 0 {
        return HANDLED.store(child, SeqCst);
    }
    begin_child();
    if kind == Kind::Returned {
        HANDLER_PARENT.store(parent, SeqCst);
        STEPS_LEFT.store(random.below(20) as i64, SeqCst);
        return;
    }
    (0..random.below(5)).for_each(|_| record_bare());
    let end = if random.one_in(2) { "_exit" } else { "killed" };
    tell(parent, kind.name(), end, &[(NUMBER.get(), recorded())]);
    leave(end);
}

/// A crash: whoever waits for this process looks at it, and kills it.
extern "C" fn stop(_: libc::c_int) {
    // SAFETY: takes numbers.
    unsafe { libc::kill(process(), libc::SIGSTOP) };
}

fn handle_signals() {
    for (signal, handler) in [
        (libc::SIGUSR1, handle as *const () as usize),
        (libc::SIGSEGV, stop as *const () as usize),
        (libc::SIGBUS, stop as *const () as usize),
        (libc::SIGILL, stop as *const () as usize),
        (libc::SIGABRT, stop as *const () as usize),
    ] {
        // SAFETY: the handlers do what a handler may, on whatever stack; the struct is valid.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(signal, &raw const action, std::ptr::null_mut());
        }
    }
}

// ---- the parent

/// Bytes of a ring. Small, since what killed children leave stays until the end.
const BUFFER: u64 = 1 << 20;

/// Records until it is told to stop, or in a child that a handler made, as long as that says.
fn recorder(number: u64, seed: u64, ready: &Barrier) -> (u64, u64) {
    let random = Random::new(seed);
    let _stop = StopOnPanic;
    NUMBER.set(number);
    // All callsites of `tracing` and `log` are known before the first fork: those crates have locks of their
    // own.
    (0..200).for_each(|_| record(&random));
    // SAFETY: takes nothing.
    RECORDERS.lock().expect("no panic").push(unsafe { libc::pthread_self() });
    ready.wait();
    while !STOP.load(SeqCst) {
        record(&random);
        if random.one_in(16) && DEPTH.load(SeqCst) == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
        if DEPTH.load(SeqCst) > 0 && STEPS_LEFT.fetch_sub(1, SeqCst) <= 0 {
            let end = end(&random, Kind::Returned);
            tell(HANDLER_PARENT.load(SeqCst), Kind::Returned.name(), end, &[(number, recorded())]);
            leave(end);
        }
    }
    (number, recorded())
}

/// Nobody waits for a thread that is no more.
struct StopOnPanic;

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            STOP.store(true, SeqCst);
        }
    }
}

fn forker(number: u64, seed: u64, ready: &Barrier) -> (u64, u64) {
    let random = Random::new(seed);
    NUMBER.set(number);
    (0..200).for_each(|_| record(&random));
    let _stop = StopOnPanic;
    ready.wait();
    while LEFT.fetch_sub(1, SeqCst) > 0 && FAILURES.load(SeqCst) < 5 {
        let kinds = &orders().kinds;
        (0..random.below(20)).for_each(|_| record(&random));
        make(kinds[random.below(kinds.len() as u64) as usize], &random, 3);
        std::thread::sleep(Duration::from_micros(random.below(1500)));
    }
    (number, recorded())
}

fn builder(path: &str) -> hairline::SessionBuilder {
    let orders = orders();
    let builder = Session::builder().output(path).buffer_size(BUFFER);
    if orders.mode == "recorder" { builder.overflow(Overflow::Overwrite) } else { builder }
}

/// Sessions that come and go, or snapshots of one, until it is told to stop.
fn manager(session: Option<&Session>, ready: &Barrier) {
    ready.wait();
    let orders = orders();
    for n in 0_u64.. {
        if STOP.load(SeqCst) {
            break;
        }
        match (orders.mode.as_str(), session) {
            ("coming", _) => {
                let session = builder(&format!("s{n}-{}", orders.template)).start().expect("a session");
                std::thread::sleep(Duration::from_millis(3 + n % 7));
                session.stop().expect("stopped");
                std::thread::sleep(Duration::from_millis(n % 4));
            }
            ("recorder", Some(session)) => {
                session.snapshot(format!("snap{n}.{}", orders.extension)).expect("a snapshot");
                hairline::trigger!("a trigger");
                std::thread::sleep(Duration::from_millis(20));
            }
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("return") {
        (0..5).for_each(|_| step());
        return;
    }
    let arguments: HashMap<String, String> = std::env::args()
        .skip(1)
        .filter_map(|a| a.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned())))
        .collect();
    let number = |name: &str| arguments[name].parse::<u64>().expect("a number");
    let kinds = KINDS.iter().filter(|(_, name)| arguments["kinds"].split(',').any(|kind| kind == *name));
    let template = arguments["template"].clone();
    let orders = Orders {
        kinds: kinds.map(|(kind, _)| *kind).collect(),
        mode: arguments["mode"].clone(),
        extension: template.rsplit('.').next().unwrap_or_default().to_owned(),
        template,
    };
    assert!(!orders.kinds.is_empty(), "no kinds");
    ORDERS.get_or_init(|| orders);
    bare_fork();
    again();
    let told = std::fs::File::options().append(true).create(true).open("told").expect("a file");
    TOLD.store(told.into_raw_fd(), SeqCst);
    LEFT.store(number("children").cast_signed(), SeqCst);
    handle_signals();

    hairline::Logger::new().install().expect("the logger");
    if arguments["subscriber"] == "own" {
        tracing::subscriber::set_global_default(hairline::Subscriber::new()).expect("the subscriber");
    } else {
        use tracing_subscriber::layer::SubscriberExt;
        let layers = tracing_subscriber::registry().with(hairline::layer());
        tracing::subscriber::set_global_default(layers).expect("the subscriber");
    }
    let mode = arguments["mode"].as_str();
    let has_one = matches!(mode, "steady" | "recorder");
    let session = has_one.then(|| builder(&arguments["template"]).start().expect("a session"));

    let random = Random::new(number("seed"));
    let recorders = number("threads");
    let ready = Barrier::new((recorders + FORKERS + 1) as usize);
    let steps = std::thread::scope(|threads| {
        let ready = &ready;
        let recorders: Vec<_> = (0..recorders)
            .map(|n| (n, random.next()))
            .map(|(n, s)| threads.spawn(move || recorder(n, s, ready)))
            .collect();
        let forkers: Vec<_> = (20..20 + FORKERS)
            .map(|n| (n, random.next()))
            .map(|(n, s)| threads.spawn(move || forker(n, s, ready)))
            .collect();
        let session = session.as_ref();
        threads.spawn(move || manager(session, ready));
        let mut steps: Vec<_> = forkers.into_iter().map(|thread| thread.join().expect("joined")).collect();
        STOP.store(true, SeqCst);
        steps.extend(recorders.into_iter().map(|thread| thread.join().expect("joined")));
        steps
    });
    tell(0, "parent", mode, &steps);
    if let Some(session) = session {
        session.stop().expect("stopped");
    }
    std::process::exit(i32::from(FAILURES.load(SeqCst) > 0));
}
