//! The folder of a trace in each table: `date=2026-11-23/service=web/trace=6b0c...`. Its parts come from the
//! trace, so every character that could mean something else in a path or on a terminal is written as Hive
//! does: `%2F`.

use std::hash::{DefaultHasher, Hasher};
use std::path::PathBuf;

use crate::summary::Facts;

/// What engines read as null.
const HIVE_NULL: &str = "__HIVE_DEFAULT_PARTITION__";
/// The limit for a part of the path, in bytes. File systems allow 255.
const LONGEST: usize = 120;

/// Where the rows of a trace come from: the levels of its folder, and columns in SQL. As parts of a path,
/// each is encoded.
///
/// ```
/// use hairline_tables::{Facts, Place};
///
/// let facts = Facts { executable: Some("web".to_owned()), content: 7, ..Facts::default() };
/// let folder = Place::of(&facts, None).folder();
/// assert_eq!(folder.to_str(), Some("date=unknown/service=web/trace=0000000000000007"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The day of the first event, UTC; `unknown` if the trace does not say it, or has no event.
    pub date: String,
    /// The service; `unknown` if there is none.
    pub service: String,
    /// The trace's UUID, or a hash of all that it says.
    pub trace: String,
}

impl Place {
    /// The place of a trace. The service is `service` if that is not empty, or the name of the trace's
    /// process.
    #[must_use]
    pub fn of(facts: &Facts, service: Option<&str>) -> Self {
        let start = facts.since_1970.zip(facts.span).and_then(|(since, (start, _))| since.checked_add(start));
        let date = start.and_then(date);
        let names = [service, facts.executable.as_deref()];
        let service = names.into_iter().flatten().find(|name| !name.is_empty());
        let trace = facts.uuid_text().unwrap_or_else(|| format!("{:016x}", facts.content));
        Self {
            date: date.unwrap_or_else(|| "unknown".to_owned()),
            service: service.map_or_else(|| "unknown".to_owned(), encoded),
            trace,
        }
    }

    /// The path in the folder of a table.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        let Self { date, service, trace } = self;
        [format!("date={date}"), format!("service={service}"), format!("trace={trace}")].iter().collect()
    }
}

/// A text as a part of a path. A long one is cut, and a hash of the whole keeps it distinct.
fn encoded(text: &str) -> String {
    if text == HIVE_NULL {
        return text.replacen('_', "%5F", 1);
    }
    let mut out = String::new();
    for character in text.chars() {
        let before = out.len();
        if character.is_alphanumeric() || "-_. +,@~()!$&;".contains(character) {
            out.push(character);
        } else {
            let mut bytes = [0; 4];
            for byte in character.encode_utf8(&mut bytes).bytes() {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        if out.len() > LONGEST {
            out.truncate(before);
            let mut hasher = DefaultHasher::new();
            hasher.write(text.as_bytes());
            return format!("{out}-{:016x}", hasher.finish());
        }
    }
    out
}

/// The date of a time since 1970 in ns. `None` outside of the years 1970 to 9999.
fn date(ns: i64) -> Option<String> {
    const DAY: i64 = 86_400_000_000_000;
    if ns < 0 {
        return None;
    }
    // Years begin in March, so that a leap day is the last day of one. 400 years have 146,097 days.
    let days = ns / DAY + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_the_date_of_utc() {
        let second = 1_000_000_000;
        let dates = [0, 951_782_399, 951_782_400, 951_868_800, 1_795_391_999, 4_102_444_800];
        assert_eq!(
            dates.map(|time| date(time * second).unwrap()),
            ["1970-01-01", "2000-02-28", "2000-02-29", "2000-03-01", "2026-11-22", "2100-01-01"]
        );
        assert_eq!(date(-1), None);
    }

    #[test]
    fn what_a_trace_does_not_say_is_unknown() {
        let empty =
            Facts { since_1970: Some(1 << 60), executable: Some("web".to_owned()), ..Facts::default() };
        let place = Place::of(&empty, Some(""));
        assert_eq!((&*place.date, &*place.service), ("unknown", "web"));
        let begun = Facts { span: Some((0, 1)), ..empty };
        assert_eq!(Place::of(&begun, None).date, "2006-07-14");
        assert_eq!(Place::of(&Facts::default(), Some("")).service, "unknown");
        assert_eq!(Place::of(&begun, Some(HIVE_NULL)).service, "%5F_HIVE_DEFAULT_PARTITION__");
    }

    #[test]
    fn a_name_is_one_part_of_a_path_whatever_it_is() {
        assert_eq!(encoded("web-1.2"), "web-1.2");
        assert_eq!(encoded("../a/b=\u{1b}[0m\\%"), "..%2Fa%2Fb%3D%1B%5B0m%5C%25");
        assert_eq!(encoded("größe\u{202e}"), "größe%E2%80%AE");
        let (a, b) = ("a".repeat(1 << 16), "a".repeat(1 << 15));
        assert!(encoded(&a).len() < 150 && encoded(&a) != encoded(&b));
        let facts = Facts { executable: Some("..".to_owned()), content: 7, ..Facts::default() };
        let folder = Place::of(&facts, None).folder();
        assert_eq!(folder, PathBuf::from("date=unknown/service=../trace=0000000000000007"));
    }
}
