//! Settings that have no effect beside the session's other settings.

use crate::builder::{Config, OutputConfig, Requester};
use crate::on::base::stderr;
use crate::options::{Format, Overflow};

/// A setting without effect: its variable, what the program calls it, and what the session is instead.
type Idle = (&'static str, &'static str, Reason);

#[derive(Clone, Copy)]
enum Reason {
    NoFlightRecorder,
    FlightRecorder,
    Fxt,
    NoFile,
    NoPath,
    NoLocks,
}

impl Reason {
    fn text(self, has_variables: bool) -> &'static str {
        match self {
            Self::NoFlightRecorder if has_variables => {
                "the session is no flight recorder; set HAIRLINE_OVERFLOW=overwrite"
            }
            Self::NoFlightRecorder => {
                "the session is no flight recorder; start it with `Overflow::Overwrite`"
            }
            Self::FlightRecorder => {
                "the session is a flight recorder, whose snapshots are as large as its ring"
            }
            Self::Fxt => "an FXT trace is not compressed; TrackEvent (.pftrace) is",
            Self::NoFile => "the output is no regular file",
            Self::NoPath => "the output is no file, beside which a window could be written",
            Self::NoLocks => "build hairline with the feature `sync`",
        }
    }
}

/// Returns a note for each setting that has no effect. Those of the environment are on stderr too.
///
/// `is_file`: whether the output is a regular file.
pub(crate) fn notes(config: &Config, format: Format, is_file: bool) -> Vec<String> {
    let has_variables = config.requester.has_variables();
    let note = |(variable, name, reason): Idle| {
        let what = if has_variables { variable } else { name };
        let note = format!("{what} has no effect: {}", reason.text(has_variables));
        say(&note, config.requester);
        note
    };
    idle(config, format, is_file).map(note).collect()
}

/// Prints a note of a session whose summary nobody reads.
pub(crate) fn say(note: &str, requester: Requester) {
    if requester.reads_stderr() {
        stderr::write(stderr::Level::Error, format_args!("{note}"));
    }
}

fn idle(config: &Config, format: Format, is_file: bool) -> impl Iterator<Item = Idle> {
    let is_recorder = config.overflow == Overflow::Overwrite;
    let has_trigger = config.trigger_on_panic
        || config.trigger_on_signal.is_some()
        || !config.slow.is_empty() && !config.slow_stacks;
    #[cfg(feature = "compress")]
    let compress = config.compress;
    #[cfg(not(feature = "compress"))]
    let compress = false;
    let triggers = match config.output {
        _ if !has_trigger => None,
        _ if !is_recorder => Some(Reason::NoFlightRecorder),
        OutputConfig::Path(_) => None,
        _ => Some(Reason::NoPath),
    };
    let rotate = match config.rotate {
        Some(_) if is_recorder => Some(Reason::FlightRecorder),
        Some(_) if !is_file => Some(Reason::NoFile),
        _ => None,
    };
    let limit = (config.max_file_size.is_some() && is_recorder).then_some(Reason::FlightRecorder);
    let compress = match (compress, format) {
        (true, _) if is_recorder => Some(Reason::FlightRecorder),
        (true, Format::Fxt) => Some(Reason::Fxt),
        _ => None,
    };
    let hold = (config.hold_limit.is_some() && !cfg!(feature = "sync")).then_some(Reason::NoLocks);
    [
        triggers.map(|reason| ("HAIRLINE_TRIGGER", "a trigger", reason)),
        rotate.map(|reason| ("HAIRLINE_ROTATE", "`rotate`", reason)),
        limit.map(|reason| ("HAIRLINE_MAX_FILE_SIZE", "`max_file_size`", reason)),
        compress.map(|reason| ("HAIRLINE_COMPRESS", "`compress`", reason)),
        hold.map(|reason| ("HAIRLINE_HOLD", "`hold_limit`", reason)),
    ]
    .into_iter()
    .flatten()
}
