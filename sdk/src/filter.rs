//! Which categories are recorded.
//!
//! ```text
//! net,db.*,-db.verbose
//! ```
//!
//! Patterns between commas, read from left to right; **the last one that matches a category decides**.
//! `name` matches that category, `*` stands for any run of characters (also none), a leading `-` leaves
//! out what matches. A category that nothing matches is left out, unless the list begins with a `-`
//! pattern: then it is as if `*` stood before it. Spaces around a pattern do not count. The empty filter
//! records everything.

use crate::error::Error;

/// Checks a filter of categories, as [`SessionBuilder::categories`](crate::SessionBuilder::categories) takes it.
///
/// # Errors
/// When it makes no sense, with the reason.
pub fn check_categories(filter: &str) -> Result<(), Error> {
    Filter::parse(filter).map(|_| ())
}

/// A parsed filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Pattern, and whether it takes in (true) or leaves out. In the order of the text.
    patterns: Vec<(String, bool)>,
}

impl Filter {
    /// Parses the list.
    ///
    /// # Errors
    /// An empty pattern between commas, a `-` alone, or a control character.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |what| Error::Filter { filter: text.to_owned(), what };
        let mut patterns = Vec::new();
        if text.trim().is_empty() {
            return Ok(Self { patterns });
        }
        for pattern in text.split(',').map(str::trim) {
            let (pattern, take) = match pattern.strip_prefix('-') {
                Some(rest) => (rest.trim_start(), false),
                None => (pattern, true),
            };
            if pattern.is_empty() {
                return Err(wrong(if take { "an empty pattern" } else { "a '-' without a pattern" }));
            }
            if pattern.chars().any(char::is_control) {
                return Err(wrong("a control character"));
            }
            if pattern.starts_with('-') {
                return Err(wrong("a pattern with two '-'"));
            }
            patterns.push((pattern.to_owned(), take));
        }
        Ok(Self { patterns })
    }

    /// Whether events of `category` are recorded.
    #[must_use]
    #[cfg_attr(not(feature = "enable"), allow(dead_code))]
    pub fn matches(&self, category: &str) -> bool {
        let by_default = self.patterns.first().is_none_or(|(_, take)| !take);
        let decisive =
            self.patterns.iter().rev().find(|(pattern, _)| glob(pattern.as_bytes(), category.as_bytes()));
        decisive.map_or(by_default, |(_, take)| *take)
    }
}

/// Whether `text` matches `pattern`, in which `*` is any run of bytes. Linear but for the last `*` tried.
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut retry: Option<(usize, usize)> = None; // after the last '*', and where its run ends at the moment
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
    fn the_empty_filter_takes_everything() {
        assert!(on("", "net") && on("  ", ""));
    }

    #[test]
    fn a_list_takes_what_it_names() {
        assert!(on("net,db.*", "net") && on("net,db.*", "db.read") && on("net,db.*", "db."));
        assert!(!on("net,db.*", "db") && !on("net,db.*", "network") && !on("net", "ne"));
    }

    #[test]
    fn the_last_match_decides() {
        assert!(!on("net,db.*,-db.verbose", "db.verbose"));
        assert!(on("-db.verbose,db.*", "db.verbose"));
        assert!(on("net,db.*,-db.verbose,*", "db.verbose"));
    }

    #[test]
    fn a_list_that_begins_by_leaving_out_takes_the_rest() {
        assert!(on("-db.*", "net") && !on("-db.*", "db.read"));
        assert!(!on("net,-net.raw", "db"));
    }

    #[test]
    fn a_star_stands_for_any_run() {
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
    fn nonsense_is_an_error_that_quotes_it() {
        for bad in ["net,,db", "-", "net,-", ",", "--net", "a\nb"] {
            let e = Filter::parse(bad).unwrap_err();
            assert!(e.to_string().contains(&format!("{bad:?}")), "{e}");
        }
    }
}
