//! The slices of other threads that may have ended the sleeps of a target.

use std::collections::HashMap;

use hairline_convert::TrackId;
use hairline_convert::slices::Key;

use crate::explain::survey::Survey;
use crate::explain::target::{Other, Target};
use crate::table::plain;

/// The slices that are open during sleeps and run when those end.
pub(super) struct Ending {
    pub(super) name: String,
    threads: String,
    count: u64,
    pub(super) time: i64,
    /// Whether most of them end then.
    is_at_end: bool,
    pub(super) is_by_chance: bool,
    /// Whether its threads are asleep for most of that time, and no wake-up tells who ended the sleeps.
    sleeps_too: bool,
}

/// Those that are open for most of the time, and not by chance if there are such.
pub(super) fn ending(survey: &Survey, target: &Target) -> Option<Ending> {
    let mut by_name: HashMap<(Key, Key), (u64, Other, u64, TrackId)> = HashMap::new();
    for ((category, name, track), other) in &target.others {
        let Some(open) = other.open else { continue };
        let none = (0, Other::default(), 0, *track);
        let (count, sum, tracks, first) = by_name.entry((*category, *name)).or_insert(none);
        *count += open;
        sum.ended += other.ended;
        sum.open_time = sum.open_time.saturating_add(other.open_time);
        sum.asleep = sum.asleep.saturating_add(other.asleep);
        *tracks += 1;
        *first = (*first).min(*track);
    }
    let is_by_chance =
        |key: &(Key, Key), count| target.chances.get(key).is_some_and(|chance| chance.explains(count));
    let best = by_name.iter().max_by_key(|(key, (count, sum, ..))| {
        (!is_by_chance(key, *count), sum.open_time, std::cmp::Reverse(**key))
    });
    let (key, (count, sum, tracks, track)) = best?;
    let threads = match tracks {
        1 => format!("the thread {}", survey.track_names.name(*track)),
        many => format!("{many} threads"),
    };
    let (name, is_by_chance) = (survey.keys().text(key.1).to_owned(), is_by_chance(key, *count));
    let is_at_end = sum.ended * 2 >= *count;
    let sleeps_too = sum.asleep > sum.open_time / 2;
    Some(Ending { name, threads, count: *count, time: sum.open_time, is_at_end, is_by_chance, sleeps_too })
}

impl Ending {
    /// What they have to do with the sleeps, of which there are so many, as a part of a sentence.
    pub(super) fn text(&self, sleeps: usize) -> String {
        let (count, name, threads) = (self.count, plain(&self.name), plain(&self.threads));
        let role = if self.sleeps_too {
            "which is asleep meanwhile too: it may wait for the same, have what they wait for, or neither"
        } else {
            "which may have what they wait for, like a lock or an answer"
        };
        let when = if self.is_at_end {
            format!("end when `{name}` ends on {threads}")
        } else {
            format!("pass while `{name}` is open on {threads}")
        };
        format!("{count} of {sleeps} sleeps {when}, {role}")
    }
}
