//! Recording that the environment asks for: `HAIRLINE=trace.pftrace ./program`.
//!
//! | variable              | meaning                                                                    |
//! |-----------------------|----------------------------------------------------------------------------|
//! | `HAIRLINE`            | the output; `.pftrace` or `.fxt`; `%p` is the process's id, `%e` its name    |
//! | `HAIRLINE_CATEGORIES` | as [`SessionBuilder::categories`](crate::SessionBuilder::categories)       |
//! | `HAIRLINE_BUFFER`     | bytes of the ring: `4M`, `64MiB`                                           |
//! | `HAIRLINE_OVERFLOW`   | `drop`, `block` (1 s), `block:500ms` or `overwrite`                        |
//! | `HAIRLINE_MAX_FILE_SIZE` | as [`SessionBuilder::max_file_size`](crate::SessionBuilder::max_file_size): `1G` |
//! | `HAIRLINE_ROTATE`     | as [`SessionBuilder::rotate`](crate::SessionBuilder::rotate): `100M`, or `100M,10` to keep the newest ten |
//! | `HAIRLINE_SIGNALS`    | `on`: [`finish_on_signals`](crate::SessionBuilder::finish_on_signals)      |
//! | `HAIRLINE_TRIGGER`    | `panic`, a signal's number, or both: what triggers a snapshot              |
//! | `HAIRLINE_CLOCK`      | `counter` or `system`                                                      |
//! | `HAIRLINE_THREAD_TIME`, `HAIRLINE_SOURCE_LOCATIONS` | `on` or `off` (default), as the builder's methods   |
//! | `HAIRLINE_COMPRESS`   | `on` or `off` (default); with the feature `compress`                       |
//! | `HAIRLINE_LOG`        | `error` (default): what goes wrong, on stderr; `info`: also start and end; `off` |
//!
//! Read at the process's first event. A value that makes no sense is one line on stderr, and nothing is recorded.
//!
//! A program that has more rights than its caller (setuid, setgid, file capabilities) reads none of them: the
//! caller chose the values.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::fork;
use super::process;
use crate::builder::{Config, SessionBuilder};
use crate::error::Error;
use crate::options::{ClockSource, Summary, parse_size};
use crate::session::Session;

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Off,
    Error,
    Info,
}

/// Whether the environment has been heeded.
static STATE: AtomicU32 = AtomicU32::new(UNHEEDED);
const UNHEEDED: u32 = 0;
/// A thread is at it.
const STARTING: u32 = 1;
const HEEDED: u32 = 2;

/// The longest that an event waits while another thread starts the session, which takes some 20 ms. Not for ever: the thread that
/// starts it may need something that the waiting one holds, such as the lock of the program's allocator.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Time between two looks whether the session has started.
const LOOK: Duration = Duration::from_micros(100);

/// Starts the session that the environment asks for, if it does, at the first call. A call that comes meanwhile waits for it. No lock
/// is held.
pub(crate) fn start_once() {
    match STATE.compare_exchange(UNHEEDED, STARTING, Ordering::Acquire, Ordering::Acquire) {
        Ok(_) => {
            let begun = fork::inherited().map_or_else(start, start_inherited);
            STATE.store(HEEDED, Ordering::Release);
            if let Err(e) = begun {
                say(Level::Error, format_args!("{e}; not tracing"));
            }
        }
        Err(STARTING) => wait_for_start(),
        Err(_) => {}
    }
}

#[cold]
fn wait_for_start() {
    let until = Instant::now() + LONGEST_WAIT;
    while STATE.load(Ordering::Acquire) == STARTING && Instant::now() < until {
        std::thread::sleep(LOOK);
    }
}

/// The environment is not heeded any more: the program has started a session in its place.
pub(super) fn set_heeded() {
    STATE.store(HEEDED, Ordering::Release);
}

/// In a forked child: the environment is heeded anew, with what the child has inherited if that `is_pending`; or since the thread
/// that was at it does not exist here.
pub(super) fn heed_in_child(is_pending: bool) {
    if is_pending || STATE.load(Ordering::Relaxed) == STARTING {
        STATE.store(UNHEEDED, Ordering::Release);
    }
}

/// The session of a forked child.
fn start_inherited(config: Config) -> Result<(), Error> {
    match Session::start(config) {
        Ok(session) => std::mem::forget(session), // the exit handler stops it
        Err(Error::AlreadyRunning) => {}
        Err(e) => return Err(e),
    }
    Ok(())
}

fn start() -> Result<(), Error> {
    let Some(path) = read("HAIRLINE") else { return Ok(()) };
    log_level()?;
    let mut builder = Session::builder().output(path);
    if let Some(filter) = variable("HAIRLINE_CATEGORIES")? {
        builder = builder.categories(&filter);
    }
    if let Some(size) = variable("HAIRLINE_BUFFER")? {
        builder = builder.buffer_size(parse_size(&size)?);
    }
    if let Some(policy) = variable("HAIRLINE_OVERFLOW")? {
        builder = builder.overflow(policy.parse()?);
    }
    if let Some(size) = variable("HAIRLINE_MAX_FILE_SIZE")? {
        builder = builder.max_file_size(parse_size(&size)?);
    }
    if let Some(rotate) = variable("HAIRLINE_ROTATE")? {
        let (size, keep) = rotate.split_once(',').unwrap_or((&rotate, "0"));
        let expected = "use the size of a file, or that and the number of files to keep: 100M,10";
        let wrong = |_| Error::Value { what: "HAIRLINE_ROTATE", value: rotate.clone(), expected };
        builder = builder.rotate(parse_size(size)?, keep.trim().parse().map_err(wrong)?);
    }
    if let Some(on) = variable("HAIRLINE_SIGNALS")? {
        builder = builder.finish_on_signals(one_of("HAIRLINE_SIGNALS", on, &ON_OFF, "use on or off")?);
    }
    if let Some(triggers) = variable("HAIRLINE_TRIGGER")? {
        for trigger in triggers.split(',').map(str::trim) {
            builder = match trigger.parse() {
                Ok(signal) => builder.trigger_on_signal(signal),
                Err(_) if trigger.eq_ignore_ascii_case("panic") => builder.trigger_on_panic(true),
                Err(_) => {
                    let expected = "use panic, the number of a signal, or both between commas";
                    return Err(Error::Value {
                        what: "HAIRLINE_TRIGGER",
                        value: trigger.to_owned(),
                        expected,
                    });
                }
            };
        }
    }
    if let Some(clock) = variable("HAIRLINE_CLOCK")? {
        let known = [("counter", ClockSource::Counter), ("system", ClockSource::System)];
        builder = builder.clock(one_of("HAIRLINE_CLOCK", clock, &known, "use counter or system")?);
    }
    if let Some(on) = variable("HAIRLINE_THREAD_TIME")? {
        builder = builder.thread_time(one_of("HAIRLINE_THREAD_TIME", on, &ON_OFF, "use on or off")?);
    }
    if let Some(on) = variable("HAIRLINE_SOURCE_LOCATIONS")? {
        builder =
            builder.source_locations(one_of("HAIRLINE_SOURCE_LOCATIONS", on, &ON_OFF, "use on or off")?);
    }
    if let Some(on) = variable("HAIRLINE_COMPRESS")? {
        builder = compress(builder, one_of("HAIRLINE_COMPRESS", on, &ON_OFF, "use on or off")?)?;
    }
    match builder.start() {
        // It belongs to the process: the exit handler stops it.
        Ok(session) => std::mem::forget(session),
        // The program's own session came first; it decides.
        Err(Error::AlreadyRunning) => return Ok(()),
        Err(e) => return Err(e),
    }
    IS_ENVIRONMENTS.store(true, Ordering::Relaxed);
    say(Level::Info, format_args!("tracing"));
    Ok(())
}

#[cfg(feature = "compress")]
#[allow(clippy::unnecessary_wraps)] // its twin may fail
fn compress(builder: SessionBuilder, on: bool) -> Result<SessionBuilder, Error> {
    Ok(builder.compress(on))
}

#[cfg(not(feature = "compress"))]
fn compress(builder: SessionBuilder, on: bool) -> Result<SessionBuilder, Error> {
    if on {
        let expected = "build hairline with the feature `compress`";
        return Err(Error::Value { what: "HAIRLINE_COMPRESS", value: "on".to_owned(), expected });
    }
    Ok(builder)
}

const ON_OFF: [(&str, bool); 4] = [("on", true), ("1", true), ("off", false), ("0", false)];

/// Set when the running session came from the environment.
static IS_ENVIRONMENTS: AtomicBool = AtomicBool::new(false);

/// Tells how the session ended, if `HAIRLINE_LOG=info` asks for it.
pub(crate) fn report(summary: &Summary) {
    if IS_ENVIRONMENTS.load(Ordering::Relaxed) {
        let path = summary.path.as_deref().unwrap_or("".as_ref()).display();
        let Summary { records, bytes, lost, .. } = summary;
        say(
            Level::Info,
            format_args!("{path}: {records} records, {bytes} bytes, {} events lost", lost.total()),
        );
        summary.notes.iter().for_each(|note| say(Level::Info, format_args!("{note}")));
    }
}

/// One line on stderr for a snapshot that could not be written.
pub(crate) fn complain_of(e: &std::io::Error) {
    say(Level::Error, format_args!("cannot write a snapshot: {e}"));
}

/// One line on stderr for an output that the process does not wait for any longer.
pub(crate) fn complain_of_stuck(path: Option<&std::path::Path>) {
    let path = path.unwrap_or("the output".as_ref()).display();
    say(Level::Error, format_args!("{path} is stuck: the trace is not complete; see `hairline recover`"));
}

/// One line on stderr for something that went wrong.
pub(crate) fn complain(e: &Error) {
    say(Level::Error, format_args!("{e}"));
}

fn say(level: Level, what: std::fmt::Arguments<'_>) {
    if level <= log_level().unwrap_or(Level::Error) {
        process::write_to_stderr(&format!("hairline: {what}\n"));
    }
}

fn log_level() -> Result<Level, Error> {
    match variable("HAIRLINE_LOG")? {
        None => Ok(Level::Error),
        Some(level) => {
            let known = [("off", Level::Off), ("error", Level::Error), ("info", Level::Info)];
            one_of("HAIRLINE_LOG", level, &known, "use off, error or info")
        }
    }
}

/// The value of an environment variable. `None` if it is not set, is empty, or was set by a caller with fewer
/// rights. Every variable that this crate heeds is read here.
fn read(name: &str) -> Option<std::ffi::OsString> {
    if process::is_privileged() {
        return None;
    }
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn variable(name: &'static str) -> Result<Option<String>, Error> {
    let Some(value) = read(name) else { return Ok(None) };
    let wrong = |v: std::ffi::OsString| Error::Value {
        what: name,
        value: v.to_string_lossy().into_owned(),
        expected: "use UTF-8",
    };
    value.into_string().map(Some).map_err(wrong)
}

fn one_of<T: Copy>(
    what: &'static str,
    value: String,
    known: &[(&str, T)],
    expected: &'static str,
) -> Result<T, Error> {
    let found = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(&value));
    found.map(|(_, t)| *t).ok_or(Error::Value { what, value, expected })
}
