//! Which counters of the process a session records, and how often.

use std::time::Duration;

use crate::error::Error;

/// A group of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    Rss,
    Cpu,
    Faults,
    Switches,
    Threads,
    Files,
    Io,
    Hardware,
}

const NAMES: [(&str, Group); 8] = [
    ("rss", Group::Rss),
    ("cpu", Group::Cpu),
    ("faults", Group::Faults),
    ("switches", Group::Switches),
    ("threads", Group::Threads),
    ("fds", Group::Files),
    ("io", Group::Io),
    ("hw", Group::Hardware),
];

/// Samples in a second, unless the text names another number.
const PER_SECOND: u32 = 10;
const MOST_PER_SECOND: u32 = 1000;

/// The counters of a session, and the time between two samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessCounters {
    /// A bit for each [`Group`].
    groups: u8,
    per_second: u32,
}

impl ProcessCounters {
    /// Reads `rss,cpu`, `all` or `rss@100`.
    ///
    /// # Errors
    /// [`Error::Value`] about `what` if the text is malformed.
    pub(crate) fn parse(what: &'static str, text: &str) -> Result<Self, Error> {
        let expected = "use all, or rss, cpu, faults, switches, threads, fds, io and hw with commas between \
             them; and @100 at the end for 100 samples in a second (1 to 1000)";
        let wrong = || Error::Value { what, value: text.to_owned(), expected };
        let (names, per_second) = match text.split_once('@') {
            Some((names, number)) => (names, number.trim().parse().map_err(|_| wrong())?),
            None => (text, PER_SECOND),
        };
        if !(1..=MOST_PER_SECOND).contains(&per_second) {
            return Err(wrong());
        }
        let mut groups = 0;
        for name in names.split(',').map(str::trim) {
            let of_name = |known: &&(&str, Group)| known.0.eq_ignore_ascii_case(name);
            match NAMES.iter().find(of_name) {
                Some((_, group)) => groups |= group.bit(),
                None if name.eq_ignore_ascii_case("all") => groups = u8::MAX,
                None => return Err(wrong()),
            }
        }
        Ok(Self { groups, per_second })
    }
}

/// Checks a list of process counters, such as [`SessionBuilder::counters`](crate::SessionBuilder::counters)
/// and the variable `HAIRLINE_COUNTERS` take, for a program that passes it on.
///
/// ```
/// hairline::check_counters("rss,cpu@100")?;
/// assert!(hairline::check_counters("memory").is_err());
/// # Ok::<(), hairline::Error>(())
/// ```
///
/// # Errors
/// [`Error::Value`] if a group is unknown, or the number of samples in a second is not 1 to 1000.
pub fn check_counters(list: &str) -> Result<(), Error> {
    ProcessCounters::parse("counters", list).map(drop)
}

#[cfg_attr(not(feature = "enable"), allow(dead_code))]
impl ProcessCounters {
    pub(crate) fn has(self, group: Group) -> bool {
        self.groups & group.bit() != 0
    }

    /// Returns whether it has all groups.
    pub(crate) fn are_all(self) -> bool {
        self.groups == u8::MAX
    }

    /// The time between two samples.
    pub(crate) fn period(self) -> Duration {
        Duration::from_secs(1) / self.per_second
    }
}

impl Group {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_named_and_may_have_a_rate() {
        let parse = |text| ProcessCounters::parse("counters", text);
        let two = parse(" rss, CPU").unwrap();
        assert!(two.has(Group::Rss) && two.has(Group::Cpu) && !two.has(Group::Io));
        assert_eq!(two.period(), Duration::from_millis(100));
        let all = parse("all@50").unwrap();
        assert!(NAMES.iter().all(|(_, group)| all.has(*group)));
        assert_eq!(all.period(), Duration::from_millis(20));
        for bad in ["", "rss,", "rss@", "rss@0", "rss@1001", "rss@-1", "memory", "@10", "rss@1@2"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
