//! Recording that the environment asks for: `HAIRLINE=trace.pftrace ./program`.
//!
//! The table of the variables stands in the guide: `docs/guide/sessions.md`.
//!
//! Read at the process's first event. A value that makes no sense is one line on stderr, and nothing is recorded.
//!
//! A program that has more rights than its caller (setuid, setgid, file capabilities) reads none of them: the
//! caller chose the values.

use crate::builder::SessionBuilder;
use crate::error::Error;
use crate::on::base::stderr::log_level;
use crate::on::base::variables::{one_of, read, variable};
use crate::options::{ClockSource, parse_size};

/// The session that the environment asks for, if it does.
///
/// # Errors
/// When a variable makes no sense.
pub(crate) fn settings() -> Result<Option<SessionBuilder>, Error> {
    let Some(path) = read("HAIRLINE") else { return Ok(None) };
    log_level()?;
    let mut builder = SessionBuilder::new().output(path);
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
    Ok(Some(builder))
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
