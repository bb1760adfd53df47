//! Which events an instance of the data source wants: Perfetto's `TrackEventConfig`.

use hairline_formats::proto::{FieldValue, Fields};

use crate::filter::{Effect, Filter};
use crate::vocabulary::Level;

/// The most patterns of a list, and the most bytes of one. Further ones are ignored.
const MOST_PATTERNS: usize = 100;
const LONGEST_PATTERN: usize = 200;

/// What an instance wants.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) filter: Filter,
    pub(crate) level: Level,
    /// Whether it asks for the CPU time of threads.
    pub(crate) thread_time: bool,
}

impl Wanted {
    /// Reads a `TrackEventConfig`.
    ///
    /// Perfetto's order: exact names before patterns before `*` alone, and of each kind what is enabled before
    /// what is disabled. What nothing matches is enabled. In a filter the last pattern that matches decides, so
    /// it has these in the opposite order.
    ///
    /// Events of the level DEBUG have Perfetto's tag `debug`, those of TRACE the tags `debug` and `slow`. By
    /// default both tags are disabled.
    pub(crate) fn of(config: &[u8]) -> Self {
        let (mut disabled, mut enabled, mut disabled_tags, mut enabled_tags) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut thread_time = false;
        for field in fields(config) {
            let list = match field.0 {
                1 => &mut disabled,
                2 => &mut enabled,
                3 => &mut disabled_tags,
                4 => &mut enabled_tags,
                8 => {
                    thread_time = matches!(field.1, FieldValue::Varint(1..));
                    continue;
                }
                _ => continue,
            };
            if let FieldValue::Bytes { bytes, .. } = field.1
                && let Ok(pattern) = std::str::from_utf8(bytes)
                && pattern.len() <= LONGEST_PATTERN
                && list.len() < MOST_PATTERNS
            {
                list.push(pattern);
            }
        }
        let mut patterns = vec![("*".to_owned(), Effect::Include)];
        for kind in [Kind::All, Kind::Prefix, Kind::Name] {
            for (list, effect) in [(&disabled, Effect::Exclude), (&enabled, Effect::Include)] {
                let of_kind = list.iter().filter(|pattern| Kind::of(pattern) == kind);
                patterns.extend(of_kind.map(|pattern| ((*pattern).to_owned(), effect)));
            }
        }
        let is_tag_on = |tag: &str| is_tag_on(tag, &enabled_tags, &disabled_tags);
        let level = match (is_tag_on("debug"), is_tag_on("slow")) {
            (true, true) => Level::Trace,
            (true, false) => Level::Debug,
            _ => Level::Info,
        };
        Self { filter: Filter::of(patterns), level, thread_time }
    }
}

/// Whether the lists enable a tag. The default of `disabled` is `slow` and `debug`.
fn is_tag_on(tag: &str, enabled: &[&str], disabled: &[&str]) -> bool {
    for kind in [Kind::Name, Kind::Prefix, Kind::All] {
        for (list, is_on) in [(enabled, true), (disabled, false)] {
            let matches = |pattern: &&&str| Kind::of(pattern) == kind && has(pattern, tag);
            if list.iter().any(|pattern| matches(&pattern)) {
                return is_on;
            }
        }
    }
    !disabled.is_empty()
}

fn has(pattern: &str, tag: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == tag, |prefix| tag.starts_with(prefix))
}

/// Returns the fields of a message, up to its first fault.
pub(super) fn fields(message: &[u8]) -> impl Iterator<Item = (u32, FieldValue<'_>)> {
    Fields::new(message, 0).map_while(Result::ok).map(|field| (field.number, field.value))
}

/// The kinds of patterns, by their rank.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Name,
    Prefix,
    All,
}

impl Kind {
    fn of(pattern: &str) -> Self {
        match pattern {
            "*" => Self::All,
            _ if pattern.contains('*') => Self::Prefix,
            _ => Self::Name,
        }
    }
}

#[cfg(test)]
mod tests {
    use hairline_formats::proto::put_str;

    use super::*;

    fn wanted(lists: &[(u32, &str)]) -> Wanted {
        let mut config = Vec::new();
        lists.iter().for_each(|(number, pattern)| put_str(&mut config, *number, pattern));
        Wanted::of(&config)
    }

    fn on(lists: &[(u32, &str)]) -> String {
        let wanted = wanted(lists);
        ["net", "net.raw", "db"]
            .iter()
            .filter(|c| wanted.filter.matches(c))
            .copied()
            .collect::<Vec<_>>()
            .join(" ")
    }

    const OFF: u32 = 1;
    const ON: u32 = 2;

    #[test]
    fn names_go_before_patterns_and_enabled_before_disabled() {
        assert_eq!(on(&[]), "net net.raw db");
        assert_eq!(on(&[(OFF, "*"), (ON, "net")]), "net");
        assert_eq!(on(&[(ON, "net"), (OFF, "*")]), "net");
        assert_eq!(on(&[(OFF, "*"), (ON, "net*"), (OFF, "net.raw")]), "net");
        assert_eq!(on(&[(OFF, "net*"), (ON, "*")]), "db");
        assert_eq!(on(&[(OFF, "db"), (ON, "db")]), "net net.raw db");
        assert_eq!(on(&[(OFF, "*"), (ON, "*")]), "net net.raw db");
        assert_eq!(on(&[(OFF, "*")]), "");
    }

    #[test]
    fn tags_are_levels() {
        let level = |lists: &[(u32, &str)]| wanted(lists).level;
        assert_eq!(level(&[]), Level::Info);
        assert_eq!(level(&[(4, "debug")]), Level::Debug);
        assert_eq!(level(&[(4, "debug"), (4, "slow")]), Level::Trace);
        assert_eq!(level(&[(4, "*")]), Level::Trace);
        assert_eq!(level(&[(3, "other")]), Level::Trace);
        assert_eq!(level(&[(3, "slow")]), Level::Debug);
        assert_eq!(level(&[(4, "*"), (3, "debug")]), Level::Info);
    }
}
