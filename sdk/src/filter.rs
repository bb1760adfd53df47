//! Which categories are recorded.
//!
//! ```text
//! net,db.*,-db.verbose
//! ```
//!
//! Patterns between commas, read from left to right; **the last pattern that matches a category decides**.
//! `name` matches that category, and `*` matches any run of characters, also an empty one. A pattern includes
//! the categories that it matches; with a leading `-` it excludes them. A category that no pattern matches is
//! excluded, unless the first pattern has a `-`: then it is included. Spaces around a pattern do not count.
//! The empty filter includes all categories.
//!
//! A `.` is a character like any other: `db.*` does not match `db`.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A filter of categories, as [`SessionBuilder::categories`](crate::SessionBuilder::categories) takes it.
///
/// Patterns between commas, and the last pattern that matches a category decides. `name` matches that
/// category only. `*` matches any run of characters, also an empty one. A pattern with a leading `-`
/// excludes. A category that no pattern matches is excluded, unless the first pattern has a `-`. The empty
/// filter includes all categories.
///
/// `db.*` does not match `db`. Both `db,db.*` and `db*` do; the second one matches `dbus` too. The targets of
/// `tracing` and `log` are module paths: `mycrate*` includes all modules of the crate `mycrate`, and
/// `mycrate::net*` its module `net` with all modules in it.
///
/// ```
/// let filter = hairline::Filter::parse("net,db.*,-db.verbose")?;
/// assert!(filter.matches("db.query") && !filter.matches("db.verbose"));
/// assert!(!hairline::Filter::parse("db.*")?.matches("db"));
/// assert!(hairline::Filter::parse("mycrate*")?.matches("mycrate::net"));
/// assert!(hairline::Filter::parse("net,,db").is_err());
/// # Ok::<(), hairline::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// In the order of the text.
    patterns: Vec<(String, Effect)>,
    /// Filters of which one suffices.
    others: Vec<Self>,
}

/// The effect of a pattern on the categories that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Include,
    Exclude,
}

impl Filter {
    /// Parses a list of patterns.
    ///
    /// # Errors
    /// [`Error::Filter`] for an empty pattern between commas, a `-` alone, two `-`, or a control character.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |what| Error::Filter { filter: text.to_owned(), what };
        let mut patterns = Vec::new();
        if text.trim().is_empty() {
            return Ok(Self::of(patterns));
        }
        for pattern in text.split(',').map(str::trim) {
            let (pattern, effect) = match pattern.strip_prefix('-') {
                Some(rest) => (rest.trim_start(), Effect::Exclude),
                None => (pattern, Effect::Include),
            };
            if pattern.is_empty() {
                return Err(wrong(match effect {
                    Effect::Include => "an empty pattern",
                    Effect::Exclude => "a '-' without a pattern",
                }));
            }
            if pattern.chars().any(char::is_control) {
                return Err(wrong("a control character"));
            }
            if pattern.starts_with('-') {
                return Err(wrong("a pattern with two '-'"));
            }
            patterns.push((pattern.to_owned(), effect));
        }
        Ok(Self::of(patterns))
    }

    /// The filter with these patterns, of which the last one that matches decides.
    pub(crate) fn of(patterns: Vec<(String, Effect)>) -> Self {
        Self { patterns, others: Vec::new() }
    }

    /// Returns the filter that matches what one of these does. `None`: there are none.
    #[cfg(feature = "enable")]
    pub(crate) fn any(filters: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut filters = filters.into_iter();
        let mut first = filters.next()?;
        first.others.extend(filters);
        Some(first)
    }

    /// Whether events of `category` are recorded.
    #[must_use]
    pub fn matches(&self, category: &str) -> bool {
        self.decides(category) || self.others.iter().any(|other| other.matches(category))
    }

    fn decides(&self, category: &str) -> bool {
        let decisive =
            self.patterns.iter().rev().find(|(pattern, _)| glob(pattern.as_bytes(), category.as_bytes()));
        match decisive {
            Some((_, effect)) => *effect == Effect::Include,
            None => self.patterns.first().is_none_or(|(_, effect)| *effect == Effect::Exclude),
        }
    }

    /// Whether the filter has no pattern.
    #[cfg(feature = "enable")]
    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty() || self.others.iter().any(Self::is_empty)
    }

    /// Returns the patterns like `db.*` that may be meant to include `db`, each with that category: it is one
    /// of `categories`, the filter excludes it, and no pattern names it.
    #[cfg(feature = "enable")]
    pub(crate) fn missed<'f>(&'f self, categories: &[&str]) -> Vec<(&'f str, &'f str)> {
        let includes = self.patterns.iter().filter(|(_, effect)| *effect == Effect::Include);
        let stem_of = |pattern: &'f str| {
            let below = pattern.strip_suffix('*')?;
            let stem = below.trim_end_matches(['.', ':', '/']);
            (stem.len() < below.len()).then_some((pattern, stem))
        };
        let is_missed = |(_, stem): &(&str, &str)| {
            let is_named = self.patterns.iter().any(|(pattern, _)| pattern == stem);
            categories.contains(stem) && !is_named && !self.matches(stem)
        };
        includes.filter_map(|(pattern, _)| stem_of(pattern)).filter(is_missed).collect()
    }
}

/// Writes the patterns with commas between them, as [`Filter::parse`] reads them.
impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (pattern, effect)) in self.patterns.iter().enumerate() {
            let comma = if n == 0 { "" } else { "," };
            let minus = if *effect == Effect::Exclude { "-" } else { "" };
            write!(f, "{comma}{minus}{pattern}")?;
        }
        Ok(())
    }
}

impl FromStr for Filter {
    type Err = Error;

    /// As [`Filter::parse`].
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

/// Whether `text` matches `pattern`, where `*` matches any run of bytes. Takes at most `pattern.len() *
/// text.len()` steps.
pub(crate) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None; // after the last '*'; the end of its run so far
    while t < text.len() {
        if p < pattern.len() && pattern[p] == b'*' {
            p += 1;
            retry = Some((p, t));
        } else if p < pattern.len() && pattern[p] == text[t] {
            p += 1;
            t += 1;
        } else if let Some((after, end)) = retry {
            p = after;
            t = end + 1;
            retry = Some((after, end + 1));
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(filter: &str, category: &str) -> bool {
        Filter::parse(filter).unwrap().matches(category)
    }

    #[test]
    fn the_empty_filter_includes_everything() {
        assert!(on("", "net") && on("  ", ""));
    }

    #[test]
    fn a_list_includes_the_categories_that_it_names() {
        assert!(on("net,db.*", "net") && on("net,db.*", "db.read") && on("net,db.*", "db."));
        assert!(!on("net,db.*", "db") && !on("net,db.*", "network") && !on("net", "ne"));
    }

    #[test]
    fn the_last_matching_pattern_decides() {
        assert!(!on("net,db.*,-db.verbose", "db.verbose"));
        assert!(on("-db.verbose,db.*", "db.verbose"));
        assert!(on("net,db.*,-db.verbose,*", "db.verbose"));
    }

    #[test]
    fn a_list_that_begins_with_an_exclusion_includes_the_rest() {
        assert!(on("-db.*", "net") && !on("-db.*", "db.read"));
        assert!(!on("net,-net.raw", "db"));
    }

    #[test]
    fn a_star_matches_any_run() {
        assert!(
            on("*", "")
                && on("a*c", "ac")
                && on("a*c", "abcbc")
                && on("*.slow", "net.slow")
                && on("a**b", "ab")
        );
        assert!(!on("a*c", "acb") && !on("*.slow", "slow"));
    }

    #[test]
    fn a_filter_is_shown_as_it_is_parsed() {
        for text in ["", "net", "net,db.*,-db.verbose", "-*,a"] {
            let filter = Filter::parse(text).unwrap();
            assert_eq!(filter.to_string(), text);
        }
        assert_eq!(Filter::parse(" net , - db ").unwrap().to_string(), "net,-db");
    }

    #[cfg(feature = "enable")]
    #[test]
    fn a_pattern_misses_the_category_above_it_unless_the_filter_names_that() {
        let categories = ["db", "db.query", "mycrate", "net"];
        let missed = |text: &str| {
            let filter = Filter::parse(text).unwrap();
            filter.missed(&categories).iter().map(|(p, c)| format!("{p} {c}")).collect::<Vec<_>>()
        };
        assert_eq!(missed("db.*,mycrate::*"), ["db.* db", "mycrate::* mycrate"]);
        for fine in ["db*", "db,db.*", "db.*,-db", "db.*,*", "gpu.*", "*", ".*", "db.*.*", ""] {
            assert!(missed(fine).is_empty(), "{fine}");
        }
    }

    #[test]
    fn the_error_of_a_malformed_filter_quotes_it() {
        for bad in ["net,,db", "-", "net,-", ",", "--net", "a\nb"] {
            let e = Filter::parse(bad).unwrap_err();
            assert!(e.to_string().contains(&format!("{bad:?}")), "{e}");
        }
    }
}
