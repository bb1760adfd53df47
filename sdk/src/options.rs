//! The options of a session.

use std::path::Path;
use std::time::Duration;

use crate::error::Error;

/// The format of a trace. Both open in the Perfetto UI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Perfetto's protobuf format, `TrackEvent` packets: `.pftrace`.
    TrackEvent,
    /// Fuchsia's trace format: `.fxt`. The cheapest to write.
    Fxt,
}

impl Format {
    /// Returns the format for the extension of a path: `.pftrace`, `.perfetto-trace` or `.fxt`.
    ///
    /// ```
    /// use hairline::Format;
    ///
    /// assert_eq!(Format::from_path("app.pftrace".as_ref()), Some(Format::TrackEvent));
    /// assert_eq!(Format::from_path("app.json".as_ref()), None);
    /// ```
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "pftrace" | "perfetto-trace" => Some(Self::TrackEvent),
            "fxt" => Some(Self::Fxt),
            _ => None,
        }
    }

    /// Checks that the extension of `path` is none of another format.
    #[cfg(feature = "enable")]
    pub(crate) fn check_extension(self, path: &Path) -> Result<(), Error> {
        if Self::from_path(path).is_none_or(|named| named == self) {
            return Ok(());
        }
        let (format, extension) = match self {
            Self::TrackEvent => ("TrackEvent", ".pftrace"),
            Self::Fxt => ("FXT", ".fxt"),
        };
        Err(Error::WrongExtension { path: path.to_owned(), format, extension })
    }

    /// Returns the format with this number in a region.
    #[cfg(feature = "enable")]
    #[cfg(feature = "recovery")]
    pub(crate) fn from_number(number: u32) -> Option<Self> {
        [Self::TrackEvent, Self::Fxt].into_iter().find(|format| *format as u32 == number)
    }
}

/// What happens to an event if the ring has no room for it.
///
/// ```
/// use hairline::Overflow;
/// use std::time::Duration;
///
/// assert_eq!("block:500ms".parse::<Overflow>()?, Overflow::Block(Duration::from_millis(500)));
/// # Ok::<(), hairline::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overflow {
    /// The event is dropped and counted, a scope with both its ends. The application never waits.
    #[default]
    Drop,
    /// The thread waits for the drain thread, at most for this time. A day or more means no limit.
    ///
    /// If there is still no room, the event is dropped and counted. Then no thread waits again before the
    /// output has accepted bytes: an output that is stuck delays the program once, not at each event. No
    /// thread waits in the output's own code, while the session stops, or after its output has failed. An
    /// event in a signal handler may wait too.
    Block(Duration),
    /// The flight recorder: new events overwrite the oldest ones. The output is written by
    /// [`Session::snapshot`](crate::Session::snapshot), by [`trigger!`](crate::trigger), and at the session's
    /// end.
    ///
    /// An event is dropped and counted only if threads own all chunks of the ring. The chunk of an idle
    /// thread is then recalled, unless the thread has open slices.
    Overwrite,
}

/// The waiting time of `block` without a time.
const BLOCK: Duration = Duration::from_secs(1);

impl std::str::FromStr for Overflow {
    type Err = Error;

    /// Parses `drop`, `overwrite`, `block` or `block:500ms`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let name = text.to_ascii_lowercase();
        let policy = match name.split_once(':') {
            None if name == "drop" => Some(Self::Drop),
            None if name == "overwrite" => Some(Self::Overwrite),
            None if name == "block" => Some(Self::Block(BLOCK)),
            Some(("block", time)) => parse_duration(time).map(Self::Block),
            _ => None,
        };
        policy.ok_or_else(|| Error::Value {
            what: "overflow policy",
            value: text.to_owned(),
            expected: "use drop, block, block:500ms or overwrite",
        })
    }
}

/// Parses a time: a number with `ns`, `us`, `ms` or `s`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..unit_at].parse().ok()?;
    let ns: u64 = match text[unit_at..].trim_start() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(ns).map(Duration::from_nanos)
}

/// The clock that events read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ClockSource {
    /// The processor's time-stamp counter if it is invariant, otherwise [`System`](ClockSource::System).
    #[default]
    Counter,
    /// `clock_gettime(CLOCK_BOOTTIME)`.
    System,
}

/// Parses a size in bytes: `4096`, `64K`, `16MiB`, `1G`. Units are powers of 1024.
///
/// ```
/// assert_eq!(hairline::parse_size("64K")?, 65_536);
/// assert!(hairline::parse_size("1.5M").is_err());
/// # Ok::<(), hairline::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`] if the text is no size, or the size does not fit 64 bits.
pub fn parse_size(text: &str) -> Result<u64, Error> {
    let wrong = || Error::Value {
        what: "size",
        value: text.to_owned(),
        expected: "use a number of bytes, or one with K, M or G (KiB, MiB, GiB)",
    };
    let digits = text.trim();
    let unit_at = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number: u64 = digits[..unit_at].parse().map_err(|_| wrong())?;
    let factor: u64 = match digits[unit_at..].trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(factor).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_of_sizes_are_powers_of_1024() {
        for (text, size) in
            [("0", 0), ("4096", 4096), ("64K", 65536), ("16 MiB", 16 << 20), ("1g", 1 << 30), (" 7b ", 7)]
        {
            assert_eq!(parse_size(text).unwrap(), size, "{text}");
        }
        for bad in ["", "M", "-1", "1.5M", "12x", "99999999999999999999", "18446744073709551615K"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_policy_block_has_an_optional_time() {
        let ms = |n| Some(Overflow::Block(Duration::from_millis(n)));
        for (text, policy) in [
            ("drop", Some(Overflow::Drop)),
            ("Overwrite", Some(Overflow::Overwrite)),
            ("block", ms(1000)),
            ("block:500ms", ms(500)),
            ("BLOCK:2s", ms(2000)),
            ("block:3000us", ms(3)),
        ] {
            assert_eq!(text.parse::<Overflow>().ok(), policy, "{text}");
        }
        for bad in
            ["", "block:", "block:5", "block:ms", "block:-1s", "drop:1s", "block:99999999999999999999s"]
        {
            assert!(bad.parse::<Overflow>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_extension_names_the_format() {
        let of = |p| Format::from_path(Path::new(p));
        assert_eq!(of("a/b.pftrace"), Some(Format::TrackEvent));
        assert_eq!(of("b.perfetto-trace"), Some(Format::TrackEvent));
        assert_eq!(of("b.fxt"), Some(Format::Fxt));
        assert_eq!((of("b.txt"), of("b"), of("fxt")), (None, None, None));
    }
}
