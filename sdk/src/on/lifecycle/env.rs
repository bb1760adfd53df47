//! Sessions that the environment requests: `HAIRLINE=trace.pftrace ./program`.
//!
//! The guide has the table of the variables: `docs/guide/sessions.md`.
//!
//! The process's first event reads the variables. If a value is invalid, the process writes one line to
//! stderr and records nothing. A name that is not known is one line too, and the process records.
//!
//! A program with more rights than its caller (setuid, setgid, file capabilities) reads no variable, because
//! the caller chose the values.

use std::ffi::OsString;
use std::time::Duration;

use hairline_shm::RegionError;

use crate::builder::SessionBuilder;
use crate::error::Error;
use crate::filter::Filter;
use crate::heap_profile::HeapProfile;
use crate::on::base::stderr::{self, log_level};
use crate::on::base::variables::{self, Source, one_of, read, variable};
use crate::on::session::{output, placeholders};
use crate::options::{ClockSource, Format, parse_duration, parse_size};
use crate::sampling::Sampling;
use crate::vocabulary::Level;

/// Reports variables whose names begin like those of this crate, but are not known.
pub(crate) fn report_unknown() {
    for (name, advice) in variables::unknown() {
        stderr::write(stderr::Level::Error, format_args!("{name} is unknown and has no effect; {advice}"));
    }
}

/// The words of `HAIRLINE` that ask for no session, but to wait for one: of a command, or of the tracing
/// service. Both are `listen,traced`.
const LISTEN: &str = "listen";
const TRACED: &str = "traced";

/// Whether the environment asks the process to listen for commands.
pub(crate) fn asks_to_listen() -> bool {
    doors().is_some_and(|doors| doors.0)
}

/// Whether the environment asks the process to register with the tracing service.
pub(crate) fn asks_for_traced() -> bool {
    doors().is_some_and(|doors| doors.1)
}

/// Returns whether `HAIRLINE` has each of the two words. `None`: it has something else.
fn doors() -> Option<(bool, bool)> {
    let value = read("HAIRLINE")?.into_string().ok()?;
    value.split(',').map(str::trim).try_fold((false, false), |(listen, traced), word| match word {
        LISTEN => Some((true, traced)),
        TRACED => Some((listen, true)),
        _ => None,
    })
}

/// Returns the path of the trace that the environment requests. `None`: it requests no session.
fn requested_path() -> Option<OsString> {
    read("HAIRLINE").filter(|_| doors().is_none())
}

/// Returns the session that the environment requests. `None`: it requests no session.
///
/// # Errors
/// When a variable has an invalid value.
pub(crate) fn settings() -> Result<Option<SessionBuilder>, Error> {
    let Some(path) = requested_path() else { return Ok(None) };
    log_level()?;
    mode()?; // the bridge of `tracing` applies it
    settings_of(Source::Environment, path).map(Some)
}

/// Returns the session of these variables, with the trace at `path`.
///
/// # Errors
/// When a variable has an invalid value.
pub(crate) fn settings_of(source: Source<'_>, path: OsString) -> Result<SessionBuilder, Error> {
    if Format::from_path(path.as_ref()).is_none() {
        let expected = "use a file with the extension .pftrace, .perfetto-trace or .fxt, or the words listen \
                        and traced";
        let value = path.to_string_lossy().into_owned();
        return Err(Error::Value { what: "HAIRLINE", value, expected });
    }
    // A command's path is final.
    let template = path.to_str().filter(|_| matches!(source, Source::Environment));
    if let Some(unknown) = template.and_then(placeholders::unknown) {
        stderr::write(
            stderr::Level::Error,
            format_args!(
                "HAIRLINE: {unknown:?} is not replaced; known are {}, and %% is a percent sign",
                placeholders::KNOWN
            ),
        );
    }
    settings_to(SessionBuilder::new().output(path), source)
}

/// Returns the settings of a session that the tracing service may start.
///
/// # Errors
/// When a variable has an invalid value.
pub(crate) fn settings_for_service() -> Result<SessionBuilder, Error> {
    log_level()?;
    settings_to(SessionBuilder::new(), Source::Environment)
}

fn settings_to(mut builder: SessionBuilder, source: Source<'_>) -> Result<SessionBuilder, Error> {
    if let Some(filter) = source.variable("HAIRLINE_CATEGORIES")? {
        builder.config.filter = of("HAIRLINE_CATEGORIES", Filter::parse(&filter))?;
    }
    if let Some(level) = source.variable("HAIRLINE_LEVEL")? {
        builder = builder.level(self::level(level)?);
    }
    if let Some(size) = source.variable("HAIRLINE_BUFFER")? {
        builder = builder.buffer_size(of("HAIRLINE_BUFFER", parse_size(&size))?);
    }
    if let Some(policy) = source.variable("HAIRLINE_OVERFLOW")? {
        builder = builder.overflow(of("HAIRLINE_OVERFLOW", policy.parse())?);
    }
    if let Some(size) = source.variable("HAIRLINE_MAX_FILE_SIZE")? {
        builder = builder.max_file_size(of("HAIRLINE_MAX_FILE_SIZE", parse_size(&size))?);
    }
    if let Some(rotation) = source.variable("HAIRLINE_ROTATE")? {
        builder = rotate(builder, &rotation)?;
    }
    if let Some(on) = on_or_off(source, "HAIRLINE_SIGNALS")? {
        builder = builder.finish_on_signals(on);
    }
    if let Some(on) = on_or_off(source, "HAIRLINE_PANICS")? {
        builder = builder.record_panics(on);
    }
    if let Some(triggers) = source.variable("HAIRLINE_TRIGGER")? {
        builder = triggers.split(',').map(str::trim).try_fold(builder, trigger)?;
    }
    if let Some(clock) = source.variable("HAIRLINE_CLOCK")? {
        let known = [("counter", ClockSource::Counter), ("system", ClockSource::System)];
        builder = builder.clock(one_of("HAIRLINE_CLOCK", clock, &known, "use counter or system")?);
    }
    if let Some(counters) = source.variable("HAIRLINE_COUNTERS")? {
        builder = builder.counters_of("HAIRLINE_COUNTERS", &counters)?;
    }
    if let Some(on) = on_or_off(source, "HAIRLINE_SCHED")? {
        builder = builder.scheduling(on);
    }
    if let Some(samples) = source.variable("HAIRLINE_SAMPLE")? {
        builder.config.sampling = of("HAIRLINE_SAMPLE", Sampling::parse(&samples))?;
    }
    if let Some(filter) = source.variable("HAIRLINE_STACKS")? {
        builder.config.stacks = Some(of("HAIRLINE_STACKS", Filter::parse(&filter))?);
    }
    if let Some(on) = on_or_off(source, "HAIRLINE_FRAME_POINTERS")? {
        builder = builder.frame_pointers(on);
    }
    if let Some(limit) = limit(source, "HAIRLINE_HOLD")? {
        builder = builder.hold_limit(limit);
    }
    if let Some(limit) = limit(source, "HAIRLINE_POLL")? {
        builder = builder.poll_limit(limit);
    }
    if let Some(profile) = source.variable("HAIRLINE_HEAP")? {
        builder.config.heap_profile = HeapProfile::parse("HAIRLINE_HEAP", &profile)?;
    }
    if let Some(on) = on_or_off(source, "HAIRLINE_THREAD_TIME")? {
        builder = builder.thread_time(on);
    }
    if let Some(on) = on_or_off(source, "HAIRLINE_SOURCE_LOCATIONS")? {
        builder = builder.source_locations(on);
    }
    if let Some(on) = on_or_off(source, "HAIRLINE_COMPRESS")? {
        builder = compress(builder, on)?;
    }
    Ok(builder)
}

/// Returns the limit that a variable sets.
fn limit(source: Source<'_>, what: &'static str) -> Result<Option<Duration>, Error> {
    let Some(value) = source.variable(what)? else { return Ok(None) };
    match parse_duration(&value).filter(|limit| !limit.is_zero()) {
        None => Err(Error::Value { what, value, expected: "use a limit above 0, like 1ms" }),
        limit => Ok(limit),
    }
}

/// Names the variable in the error of its value.
fn of<T>(variable: &'static str, parsed: Result<T, Error>) -> Result<T, Error> {
    parsed.map_err(|e| match e {
        Error::Value { value, expected, .. } => Error::Value { what: variable, value, expected },
        Error::Filter { filter, what } => Error::Value { what: variable, value: filter, expected: what },
        e => e,
    })
}

/// Names the variable in an error of the start that comes from its value.
pub(crate) fn with_variable(e: Error) -> Error {
    let variable = match &e {
        Error::Value { what, .. } if *what == output::LIMIT_OF_OUTPUT => "HAIRLINE_MAX_FILE_SIZE",
        Error::Value { what, .. } if *what == output::LIMIT_OF_FILE => "HAIRLINE_ROTATE",
        Error::Buffer(of_region) => {
            let is_size = matches!(of_region.downcast_ref(), Some(RegionError::BufferSize { .. }));
            return if is_size { Error::Buffer(format!("HAIRLINE_BUFFER: {of_region}").into()) } else { e };
        }
        _ => return e,
    };
    match e {
        Error::Value { value, expected, .. } => Error::Value { what: variable, value, expected },
        e => e,
    }
}

fn on_or_off(source: Source<'_>, name: &'static str) -> Result<Option<bool>, Error> {
    let known = [("on", true), ("1", true), ("off", false), ("0", false)];
    source.variable(name)?.map(|value| one_of(name, value, &known, "use on or off")).transpose()
}

/// `HAIRLINE_MODE`: the name of the mode in which spans of `tracing` are recorded. `None` without `HAIRLINE`.
pub(crate) fn mode() -> Result<Option<&'static str>, Error> {
    if read("HAIRLINE").is_none() {
        return Ok(None);
    }
    let known = ["auto", "threads", "lifetimes"].map(|name| (name, name));
    let of = |name| one_of("HAIRLINE_MODE", name, &known, "use auto, threads or lifetimes");
    variable("HAIRLINE_MODE")?.map(of).transpose()
}

/// `HAIRLINE_LEVEL`.
pub(crate) fn level(name: String) -> Result<Level, Error> {
    let known = [Level::Trace, Level::Debug, Level::Info, Level::Warn, Level::Error];
    let known = known.map(|level| (level.name(), level));
    one_of("HAIRLINE_LEVEL", name, &known, "use trace, debug, info, warn or error")
}

/// Whether the environment names the level of the session.
pub(crate) fn names_level() -> bool {
    read("HAIRLINE_LEVEL").is_some()
}

/// Returns the level of the session that the environment requests. `None`: it requests no session. A wrong
/// name is reported when the session starts.
#[cfg(feature = "subscriber")]
pub(crate) fn requested_level() -> Option<Level> {
    requested_path()?;
    let name = variable("HAIRLINE_LEVEL").ok().flatten();
    Some(name.and_then(|name| level(name).ok()).unwrap_or(Level::Info))
}

/// `HAIRLINE_ROTATE`: the size of a file, and the number of files to keep.
fn rotate(builder: SessionBuilder, rotation: &str) -> Result<SessionBuilder, Error> {
    let (size, keep) = rotation.split_once(',').unwrap_or((rotation, "0"));
    let expected = "use the size of a file, or that and the number of files to keep: 100M,10";
    let wrong = |_| Error::Value { what: "HAIRLINE_ROTATE", value: rotation.to_owned(), expected };
    Ok(builder.rotate(of("HAIRLINE_ROTATE", parse_size(size))?, keep.trim().parse().map_err(wrong)?))
}

/// `HAIRLINE_TRIGGER`: one of its parts.
fn trigger(mut builder: SessionBuilder, trigger: &str) -> Result<SessionBuilder, Error> {
    let expected = "use panic, the number of a signal, slow:CATEGORY/NAME:LIMIT, stack, every:TIME, keep:FILES, \
                    or several of them with commas between them";
    let wrong = || Error::Value { what: "HAIRLINE_TRIGGER", value: trigger.to_owned(), expected };
    match trigger.split_once(':') {
        Some(("slow", rule)) => {
            of("HAIRLINE_TRIGGER", builder.config.slow.add_text(rule))?;
            Ok(builder)
        }
        Some(("every", time)) => Ok(builder.trigger_interval(parse_duration(time).ok_or_else(wrong)?)),
        Some(("keep", files)) => Ok(builder.keep_snapshots(files.trim().parse().map_err(|_| wrong())?)),
        Some(_) => Err(wrong()),
        None if trigger.eq_ignore_ascii_case("panic") => Ok(builder.trigger_on_panic(true)),
        None if trigger.eq_ignore_ascii_case("stack") => Ok(builder.slow_stacks(true)),
        None => Ok(builder.trigger_on_signal(trigger.parse().map_err(|_| wrong())?)),
    }
}

#[cfg(feature = "compress")]
#[allow(clippy::unnecessary_wraps)] // without the feature it can fail
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
