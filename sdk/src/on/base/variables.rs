//! The environment variables that Hairline reads.

use std::ffi::OsString;

use hairline_formats::truncate_utf8;

use crate::error::Error;
use crate::on::base::platform::process;
use crate::wire::Packet;

/// The names of all variables that this crate reads.
const KNOWN: [&str; 24] = [
    "HAIRLINE",
    "HAIRLINE_BUFFER",
    "HAIRLINE_CATEGORIES",
    "HAIRLINE_CLOCK",
    "HAIRLINE_COMPRESS",
    "HAIRLINE_COUNTERS",
    "HAIRLINE_FRAME_POINTERS",
    "HAIRLINE_HEAP",
    "HAIRLINE_HOLD",
    "HAIRLINE_LEVEL",
    "HAIRLINE_LOG",
    "HAIRLINE_MAX_FILE_SIZE",
    "HAIRLINE_MODE",
    "HAIRLINE_OVERFLOW",
    "HAIRLINE_PANICS",
    "HAIRLINE_POLL",
    "HAIRLINE_ROTATE",
    "HAIRLINE_SAMPLE",
    "HAIRLINE_SCHED",
    "HAIRLINE_SIGNALS",
    "HAIRLINE_SOURCE_LOCATIONS",
    "HAIRLINE_STACKS",
    "HAIRLINE_THREAD_TIME",
    "HAIRLINE_TRIGGER",
];

/// The start of the names of all variables but `HAIRLINE`.
const PREFIX: &str = "HAIRLINE_";

/// Returns the value of an environment variable. `None` if it is not set, is empty, or was set by a caller
/// with fewer rights. This crate reads all its variables here.
pub(crate) fn read(name: &'static str) -> Option<OsString> {
    debug_assert!(KNOWN.contains(&name), "{name} is not in the list");
    if process::is_privileged() {
        return None;
    }
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the variable with which Perfetto's own SDKs find the tracing service. As [`read`].
pub(crate) fn of_perfetto() -> Option<OsString> {
    if process::is_privileged() {
        return None;
    }
    std::env::var_os("PERFETTO_PRODUCER_SOCK_NAME").filter(|value| !value.is_empty())
}

/// Returns the value of a variable of the environment that must be UTF-8.
pub(crate) fn variable(name: &'static str) -> Result<Option<String>, Error> {
    Source::Environment.variable(name)
}

/// Where the values of variables come from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'s> {
    Environment,
    /// The request of a command.
    Request(&'s Packet),
}

impl Source<'_> {
    /// Returns the value of a variable. See [`read`].
    pub(crate) fn read(self, name: &'static str) -> Option<OsString> {
        match self {
            Self::Environment => read(name),
            Self::Request(request) => request.get(name).filter(|value| !value.is_empty()).map(OsString::from),
        }
    }

    /// Returns the value of a variable that must be UTF-8.
    pub(crate) fn variable(self, name: &'static str) -> Result<Option<String>, Error> {
        let Some(value) = self.read(name) else { return Ok(None) };
        let not_utf8 = |v: OsString| Error::Value {
            what: name,
            value: v.to_string_lossy().into_owned(),
            expected: "use UTF-8",
        };
        value.into_string().map(Some).map_err(not_utf8)
    }
}

/// Whether this is the name of a variable.
pub(crate) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}

/// Returns the value whose name in `known` is `value`, in any case of letters.
pub(crate) fn one_of<T: Copy>(
    what: &'static str,
    value: String,
    known: &[(&str, T)],
    expected: &'static str,
) -> Result<T, Error> {
    let found = known.iter().find(|(name, _)| name.eq_ignore_ascii_case(&value));
    found.map(|(_, t)| *t).ok_or(Error::Value { what, value, expected })
}

/// The longest name, in bytes, for which the nearest known one is looked for: the time grows with the length.
/// A longer one is cut in messages.
const LONGEST: usize = 64;

/// Returns the names of the environment that look like variables of this crate, but are not, as messages have
/// them. Each comes with advice which one may be meant. Returns none if a caller with fewer rights set them.
pub(crate) fn unknown() -> Vec<(String, String)> {
    if process::is_privileged() {
        return Vec::new();
    }
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unknown = names.filter(|name| name.starts_with(PREFIX) && !KNOWN.contains(&name.as_str()));
    let advised = unknown.map(|name| match nearest(&name) {
        Some(known) => (printable(&name), format!("do you mean {known}?")),
        None => (printable(&name), format!("known are {}", KNOWN.join(", "))),
    });
    advised.collect()
}

/// Returns a name with escapes in place of control characters, which a terminal would obey, and cut to
/// [`LONGEST`] bytes.
fn printable(name: &str) -> String {
    let kept = truncate_utf8(name, LONGEST);
    let cut = if kept.len() < name.len() { "..." } else { "" };
    format!("{}{cut}", kept.escape_debug())
}

/// Returns the known name that is nearest to `name`, unless more than half of `name` differs.
fn nearest(name: &str) -> Option<&'static str> {
    if name.len() > LONGEST {
        return None;
    }
    // Without the prefix, which all names have in common.
    let of = name.strip_prefix(PREFIX)?.to_ascii_uppercase();
    let own = |known: &'static str| Some((distance(&of, known.strip_prefix(PREFIX)?), known));
    let (far, known) = KNOWN.into_iter().filter_map(own).min()?;
    (far <= (of.chars().count() / 2).max(2)).then_some(known)
}

/// Returns the number of characters to insert, remove or replace that turns `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, to) in b.chars().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_changed_characters() {
        for (a, b, n) in
            [("", "", 0), ("a", "", 1), ("", "ab", 2), ("LEVEL", "LEVLE", 2), ("kitten", "sitting", 3)]
        {
            assert_eq!((distance(a, b), distance(b, a)), (n, n), "{a} {b}");
        }
    }

    #[test]
    fn a_mistyped_name_has_the_meant_one_nearest() {
        for (name, known) in [
            ("HAIRLINE_CATEGORY", "HAIRLINE_CATEGORIES"),
            ("HAIRLINE_BUFFER_SIZE", "HAIRLINE_BUFFER"),
            ("HAIRLINE_LEVLE", "HAIRLINE_LEVEL"),
            ("HAIRLINE_SIGNAL", "HAIRLINE_SIGNALS"),
            ("HAIRLINE_log", "HAIRLINE_LOG"),
        ] {
            assert_eq!(nearest(name), Some(known), "{name}");
        }
        for name in ["HAIRLINE_OUTPUT", "HAIRLINE_FILE", "HAIRLINE_"] {
            assert_eq!(nearest(name), None, "{name}");
        }
    }
}
