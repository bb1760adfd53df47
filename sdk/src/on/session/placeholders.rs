//! The placeholders in the path of an output.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::on::base::platform;
use crate::on::base::platform::process;

/// The placeholders, for messages.
pub(crate) const KNOWN: &str = "%p, %e, %h, %t, %u and %n";

/// The values of the placeholders in a session's path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placeholders {
    pid: u32,
    /// The start of the session, in seconds since 1970.
    time: u64,
    random: u32,
}

impl Placeholders {
    /// Returns the values for a session that starts now.
    pub(crate) fn now() -> Self {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { pid: process::id(), time, random: u32::from_le_bytes(process::random()) }
    }

    /// Replaces the placeholders in `template`: see [`expand_path`](crate::expand_path). `%n` becomes `serial`.
    pub(crate) fn expand(self, template: &Path, serial: u64) -> PathBuf {
        self.expand_for(template, serial, process::name)
    }

    fn expand_for<'p>(self, template: &Path, serial: u64, program: impl Fn() -> &'p str) -> PathBuf {
        let Some(text) = template.to_str().filter(|t| t.contains('%')) else { return template.to_owned() };
        let mut out = String::with_capacity(text.len() + 32);
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            let mut ahead = rest.clone();
            match (c, ahead.next()) {
                ('%', Some('p')) => out.push_str(&self.pid.to_string()),
                ('%', Some('n')) => out.push_str(&serial.to_string()),
                ('%', Some('e')) => out.push_str(program()),
                ('%', Some('h')) => out.push_str(&platform::machine().host.replace(['/', '\\'], "_")),
                ('%', Some('t')) => out.push_str(&utc(self.time)),
                ('%', Some('u')) => out.push_str(&format!("{:08x}", self.random)),
                ('%', Some('%')) => out.push('%'),
                _ => {
                    out.push(c);
                    continue;
                }
            }
            rest = ahead;
        }
        PathBuf::from(out)
    }
}

/// Replaces the placeholders in the path of an output, as a session of this process does that starts now.
///
/// | placeholder | value |
/// |---|---|
/// | `%p` | the id of this process |
/// | `%e` | `program`; in the path of a session, the name of the executable |
/// | `%h` | the name of the host |
/// | `%t` | the time of the start in UTC, `20261126-192746` |
/// | `%u` | a random number of eight hexadecimal digits |
/// | `%n` | `number`; in the path of a session, the number of a flight recorder's snapshot, from 1 |
/// | `%%` | `%` |
///
/// A `%` before another character stays.
///
/// ```
/// let path = hairline::expand_path("100%%-%p-%e-%n.fxt", "server", 3);
/// # if cfg!(feature = "enable") {
/// assert_eq!(path.to_str().unwrap(), format!("100%-{}-server-3.fxt", std::process::id()));
/// # }
/// ```
#[must_use]
pub fn expand_path(template: impl AsRef<Path>, program: &str, number: u64) -> PathBuf {
    Placeholders::now().expand_for(template.as_ref(), number, || program)
}

/// Whether each snapshot has a path of its own.
pub(crate) fn has_serial(template: &Path) -> bool {
    contains(template, "n")
}

/// Whether each process has a path of its own.
pub(crate) fn has_process(template: &Path) -> bool {
    contains(template, "pu")
}

/// Says how each process gets a file of its own.
pub(crate) fn advice(template: &Path) -> &'static str {
    match (contains(template, "p"), contains(template, "hu")) {
        (false, false) => "with %p in the path each process has its own",
        (true, false) => {
            "processes of several containers have the same %p; with %h (the host's name) or %u (a random \
             number) in the path too each has its own"
        }
        (_, true) => "with %u (a random number) in the path each has its own",
    }
}

fn contains(template: &Path, placeholders: &str) -> bool {
    let text = template.to_str().unwrap_or_default();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c == '%' && rest.next().is_some_and(|next| placeholders.contains(next)) {
            return true;
        }
    }
    false
}

/// Returns the first `%` of a path, and the character after it, that is no placeholder.
pub(crate) fn unknown(template: &str) -> Option<&str> {
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        let after = &rest[at + 1..];
        match after.chars().next() {
            Some('p' | 'n' | 'e' | 'h' | 't' | 'u' | '%') => rest = &after[1..],
            c => return rest.get(at..at + 1 + c.map_or(0, char::len_utf8)),
        }
    }
    None
}

/// Returns the date and the time of day: `20261126-192746`.
fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // The years begin in March, so that a leap day is the last one: Howard Hinnant's `civil_from_days`.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_name_the_process_the_host_the_time_and_a_random_number() {
        let values = Placeholders { time: 1_795_721_266, random: 0x1a, ..Placeholders::now() };
        let of = |t: &str| values.expand(Path::new(t), 7).to_string_lossy().into_owned();
        assert_eq!(of("a-%p.fxt"), format!("a-{}.fxt", std::process::id()));
        assert_eq!(of("%e"), process::name());
        assert_eq!(of("%t-%u"), "20261126-192746-0000001a");
        assert!(!of("%h").is_empty());
        assert_eq!(of("100%%.fxt"), "100%.fxt");
        assert_eq!(of("%n.fxt"), "7.fxt");
        assert!(has_serial(Path::new("%n.fxt")) && !has_serial(Path::new("%%n.fxt")));
        assert!(
            has_process(Path::new("a-%u")) && has_process(Path::new("%p")) && !has_process(Path::new("%t%h"))
        );
        assert_eq!(of("50%x-%"), "50%x-%");
        let unknown = ["%p-%%q-%e%n%h%t%u.fxt", "%p-%q.fxt", "%%%é", "a%"].map(unknown);
        assert_eq!(unknown, [None, Some("%q"), Some("%é"), Some("%")]);
    }

    #[test]
    fn a_time_is_its_date_in_utc() {
        assert_eq!(
            [0, 951_782_399, 951_782_400, 4_107_542_400].map(utc),
            ["19700101-000000", "20000228-235959", "20000229-000000", "21000301-000000",]
        );
    }

    #[test]
    fn what_gives_each_process_a_file_is_not_what_the_path_has_already() {
        let advice = |template: &str| advice(Path::new(template));
        assert!(advice("t.fxt").contains("%p in the path"));
        assert!(advice("t-%p.fxt").contains("%h (the"));
        assert!(advice("t-%p-%h.fxt").starts_with("with %u"));
    }
}
