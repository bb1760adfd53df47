//! Which slices count as slow: rules like `net/request:50ms`.

use std::time::Duration;

use crate::error::Error;
#[cfg(feature = "enable")]
use crate::filter::glob;
#[cfg(feature = "enable")]
use crate::options::parse_duration;

/// The rules of a session. The last rule that matches a callsite decides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
pub(crate) struct SlowRules {
    /// In the order in which they were added.
    rules: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "enable"), allow(dead_code))]
struct Rule {
    category: String,
    name: String,
    limit: Duration,
}

impl SlowRules {
    /// Adds a rule for slices of this pattern, `CATEGORY/NAME`.
    ///
    /// # Errors
    /// [`Error::Value`] if the pattern has no `/`, or the limit is 0.
    pub(crate) fn add(&mut self, pattern: &str, limit: Duration) -> Result<(), Error> {
        let wrong = |expected| Error::Value { what: "slow slices", value: pattern.to_owned(), expected };
        let (category, name) =
            pattern.split_once('/').ok_or_else(|| wrong("use CATEGORY/NAME; * matches any characters"))?;
        let (category, name) = (category.trim().to_owned(), name.trim().to_owned());
        if limit.is_zero() {
            return Err(wrong("use a limit above 0"));
        }
        self.rules.push(Rule { category, name, limit });
        Ok(())
    }

    /// Adds a rule of `HAIRLINE_TRIGGER`: `net/request:50ms`.
    #[cfg(feature = "enable")]
    pub(crate) fn add_text(&mut self, text: &str) -> Result<(), Error> {
        let wrong = |expected| Error::Value { what: "HAIRLINE_TRIGGER", value: text.to_owned(), expected };
        let expected = "use slow:CATEGORY/NAME:LIMIT, like slow:net/request:50ms";
        let (pattern, limit) = text.rsplit_once(':').ok_or_else(|| wrong(expected))?;
        self.add(pattern, parse_duration(limit).ok_or_else(|| wrong(expected))?)
    }

    /// Whether there is no rule.
    #[cfg(feature = "enable")]
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns the patterns of the rules that match none of the slices, each given by its categories and its
    /// name.
    #[cfg(feature = "enable")]
    pub(crate) fn unmatched<'c, C: Iterator<Item = &'c str> + Clone>(
        &self,
        slices: impl Iterator<Item = (C, &'c str)> + Clone,
    ) -> Vec<String> {
        let is_unmatched =
            |rule: &&Rule| !slices.clone().any(|(categories, name)| rule.matches(categories, name));
        let unmatched = self.rules.iter().filter(is_unmatched);
        unmatched.map(|rule| format!("{}/{}", rule.category, rule.name)).collect()
    }

    /// Returns the limit of the slices with one of these categories and this name.
    #[cfg(feature = "enable")]
    pub(crate) fn limit<'c>(
        &self,
        categories: impl Iterator<Item = &'c str> + Clone,
        name: &str,
    ) -> Option<Duration> {
        let rule = self.rules.iter().rev().find(|rule| rule.matches(categories.clone(), name));
        rule.map(|rule| rule.limit)
    }
}

#[cfg(feature = "enable")]
impl Rule {
    fn matches<'c>(&self, mut categories: impl Iterator<Item = &'c str> + Clone, name: &str) -> bool {
        let is_of = |category: &str| glob(self.category.as_bytes(), category.as_bytes());
        let has_category =
            if categories.clone().next().is_none() { is_of("") } else { categories.any(is_of) };
        has_category && glob(self.name.as_bytes(), name.as_bytes())
    }
}

#[cfg(all(test, feature = "enable"))]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_last_rule_that_matches_decides() {
        let mut rules = SlowRules::default();
        rules.add("net/*", 50 * MS).unwrap();
        rules.add("*/request", 20 * MS).unwrap();
        let limit = |category, name| rules.limit([category].into_iter(), name);
        assert_eq!(limit("net", "request"), Some(20 * MS));
        assert_eq!(limit("net", "answer"), Some(50 * MS));
        assert_eq!(limit("db", "answer"), None);
        assert_eq!(rules.limit(["db", "net"].into_iter(), "answer"), Some(50 * MS));
        assert_eq!(rules.limit(std::iter::empty(), "request"), Some(20 * MS), "no category");
    }

    #[test]
    fn a_rule_of_the_environment_ends_with_its_limit() {
        let limit = |text: &str| {
            let mut rules = SlowRules::default();
            rules.add_text(text).ok()?;
            rules.limit(["my::net"].into_iter(), "a/b:c")
        };
        assert_eq!(limit("my::net/a/b:c:2s"), Some(2000 * MS));
        assert_eq!(limit("my::*/*:100us"), Some(MS / 10));
        for wrong in ["my::net/a/b:c", "my::net:5ms", "*/*:0ms", "*/*:5", "*/*:ms", "*/*:-1s", ""] {
            assert_eq!(limit(wrong), None, "{wrong}");
        }
    }
}
