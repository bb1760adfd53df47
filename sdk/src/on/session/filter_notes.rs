//! Remarks on what was asked for and had no effect, as the end of the recording shows: a filter, or rules for
//! slow slices, that have not matched what their author may have meant; a heap profile without an allocator.

use std::sync::Arc;

use crate::filter::Filter;
use crate::on::base::heap;
use crate::on::callsite::registry;
use crate::on::session::sampling::SampledThreads;
use crate::on::session::shared::Shared;
use crate::slow::SlowRules;

/// The most categories that a remark names.
const MOST_NAMED: usize = 12;

impl Shared {
    /// Switches all callsites off at the end of the recording. Keeps the remarks on the session's filter for
    /// the summary.
    pub(crate) fn deactivate(&self) {
        if let Some(session) = registry::deactivate(self.epoch()) {
            let categories = registry::categories();
            let mut notes = notes(&session.filter, session.has_matched, &categories);
            let stacks = session.watched.stacks.filter(|_| !session.has_stacks && cfg!(feature = "sampling"));
            notes.extend(stacks.map(|filter| stacks_without_match(&filter, &session.filter, &categories)));
            if self.settings.profiles_heap
                && self.heap_note.get().is_none()
                && heap::switch().is_unannounced()
            {
                notes.push(
                    "the heap profile is empty: the program's #[global_allocator] is no \
                     `hairline::Heap`"
                        .to_owned(),
                );
            }
            notes.extend(self.sampled_threads.get().and_then(SampledThreads::note));
            let slow = session.watched.slow.as_ref();
            if session.watched.slow_stacks
                && !session.has_slow_stacks
                && slow.is_none_or(SlowRules::is_empty)
                && cfg!(feature = "sampling")
            {
                notes.push(
                    "no slice that the program has reached has a limit, so there are no stacks of slow ones; a \
                     rule sets one: CATEGORY/NAME:LIMIT"
                        .to_owned(),
                );
            }
            let unmatched = session.watched.slow.map(|rules| registry::unmatched(&rules)).unwrap_or_default();
            notes.extend(unmatched.into_iter().map(|pattern| {
                format!(
                    "the slow rule {pattern:?} matches no slice that the program has reached; its form is \
                     CATEGORY/NAME"
                )
            }));
            *self.filter_notes.lock() = Some(notes.into()); // replaces `None`: nothing is freed under the lock
        }
    }

    /// Returns the remarks on the session's filter, after the end of the recording.
    pub(crate) fn filter_notes(&self) -> Arc<[String]> {
        let notes = self.filter_notes.lock().clone();
        notes.unwrap_or_default()
    }
}

/// Returns the remarks on a filter: that it matched nothing, and patterns that miss the category above them.
/// `categories` are those of the events that the program has reached, sorted.
fn notes(filter: &Filter, has_matched: bool, categories: &[&str]) -> Vec<String> {
    let mut notes = Vec::new();
    if !has_matched && !filter.is_empty() {
        notes.push(without_match("the categories", filter, categories));
    }
    notes.extend(filter.missed(categories).into_iter().map(|(pattern, category)| {
        format!(
            "the category `{category}` is not recorded: `{pattern}` does not match it; use \
             `{category},{pattern}`"
        )
    }));
    notes
}

/// Returns the remark on stacks of chosen categories: that it matched nothing of what the session records.
fn stacks_without_match(stacks: &Filter, recorded: &Filter, categories: &[&str]) -> String {
    let is_left_out = |category: &&str| stacks.matches(category) && !recorded.matches(category);
    match categories.iter().copied().find(is_left_out) {
        Some(category) => format!(
            "there are no stacks of the categories {:?}: `{category}` is not recorded",
            stacks.to_string()
        ),
        None => without_match("the stacks of the categories", stacks, categories),
    }
}

fn without_match(what: &str, filter: &Filter, categories: &[&str]) -> String {
    let found = match categories.len() {
        0 => "the program has reached no event".to_owned(),
        _ => format!("the events that the program has reached have the categories {}", list(categories)),
    };
    format!("{what} {:?} match nothing: {found}", filter.to_string())
}

/// Lists the first [`MOST_NAMED`] categories, and the number of the others.
fn list(categories: &[&str]) -> String {
    let named: Vec<&str> = categories.iter().take(MOST_NAMED).copied().collect();
    let more = categories.len() - named.len();
    let rest = if more > 0 { format!(", and {more} more") } else { String::new() };
    named.join(", ") + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(filter: &str, has_matched: bool, categories: &[&str]) -> Vec<String> {
        let filter = Filter::parse(filter).expect("a filter");
        let mut sorted = categories.to_vec(); // as the registry gives them
        sorted.sort_unstable();
        notes(&filter, has_matched, &sorted)
    }

    #[test]
    fn a_filter_that_matched_needs_no_remark() {
        assert!(of("net", true, &["net", "db"]).is_empty());
        assert!(of("", false, &["net"]).is_empty() && of("", false, &[]).is_empty());
    }

    #[test]
    fn a_filter_that_matched_nothing_is_shown_with_the_categories() {
        assert_eq!(
            of("gpu,-net", false, &["net", "db"]),
            ["the categories \"gpu,-net\" match nothing: the events that the program has reached have the \
              categories db, net"]
        );
        assert!(of("gpu", false, &[])[0].ends_with("the program has reached no event"));
    }

    #[test]
    fn stacks_of_what_is_not_recorded_are_not_said_to_match_nothing() {
        let [stacks, recorded] = ["net", "nte"].map(|text| Filter::parse(text).expect("a filter"));
        assert_eq!(
            stacks_without_match(&stacks, &recorded, &["db", "net"]),
            "there are no stacks of the categories \"net\": `net` is not recorded"
        );
        assert!(stacks_without_match(&stacks, &stacks, &["db"]).contains("match nothing"));
    }

    #[test]
    fn a_remark_names_a_bounded_number_of_categories() {
        let many: Vec<String> = (0..100).map(|n| format!("category-{n:03}")).collect();
        let notes = of("gpu", false, &many.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(notes[0].ends_with("category-010, category-011, and 88 more"), "{notes:?}");
    }

    #[test]
    fn a_pattern_that_misses_the_category_above_it_is_named() {
        let notes = of("net,db.*", true, &["net", "db", "db.query"]);
        assert_eq!(notes, ["the category `db` is not recorded: `db.*` does not match it; use `db,db.*`"]);
    }
}
