//! The names of slices to look at.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// A name, or a category and a name, in which `*` matches any characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(String);

impl FromStr for Pattern {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Pattern {
    /// Whether slices of this name are meant. A name may have a slash of its own.
    pub(crate) fn matches(&self, category: &str, name: &str) -> bool {
        matches(&self.0, name)
            || self.0.contains('/')
                && category.split(',').any(|category| matches(&self.0, &format!("{category}/{name}")))
    }
}

/// Whether a pattern matches a text. Takes time in proportion to the product of their lengths at most.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_match_any_characters_and_slashes_separate_the_category() {
        let is = |pattern: &str, category, name| Pattern(pattern.to_owned()).matches(category, name);
        assert!(is("net/request", "net", "request") && is("request", "net", "request"));
        assert!(is("net/*", "net", "request") && is("*quest", "net", "request") && is("*", "", ""));
        assert!(is("db/query", "net,db", "query") && is("GET /a/b", "net", "GET /a/b"));
        assert!(is("r*q*t", "", "request") && !is("r*t*t", "", "request") && !is("aa*aa", "", "aaa"));
        assert!(!is("net/request", "db", "request") && !is("net", "net", "request"));
    }
}
