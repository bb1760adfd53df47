//! Who had the locks that the slices of one name waited for.

use std::collections::HashMap;

use hairline_convert::slices::Key;

use crate::explain::locks::{Holder, Tags, lock_name};
use crate::explain::shares::{Share, largest, percent};
use crate::explain::survey::Survey;
use crate::explain::target::{Band, Target, Wait, total, whole};
use crate::table::plain;

/// The waits of the slices of a band for one lock.
pub(super) struct Lock {
    pub(super) name: String,
    /// Their time in the band.
    pub(super) time: i64,
    /// How much longer a slice waits for the lock than a typical one.
    pub(super) extra: i64,
    /// Who had the lock, with the time of the waits: the longest first.
    pub(super) holders: Vec<Held>,
    /// The places of the waiters.
    pub(super) places: Vec<Share>,
}

/// One of those who had a lock.
pub(super) struct Held {
    pub(super) holder: Holder,
    /// Where the lock was taken.
    pub(super) place: String,
    pub(super) time: i64,
    /// The innermost slice that the holder had open during most of the waits.
    pub(super) inside: Option<Key>,
}

/// The limit for the rows of each list.
const ROWS: usize = 100;

/// The locks that the slices of a band wait for longer than those of the base, the longest first.
pub(super) fn locks(survey: &Survey, target: &Target, (band, base): (&Band, &Band)) -> Vec<Lock> {
    let time = |band: &Band, name: Key| {
        let waits = band.inside.waits.iter().filter(|(wait, _)| wait.name == name);
        total(waits.map(|(_, inner)| whole(&inner.own)))
    };
    let mut names: Vec<_> = band.inside.waits.keys().map(|wait| wait.name).collect();
    names.sort_unstable();
    names.dedup();
    let lock = |name| {
        let sum = time(band, name);
        let extra = band.per_slice(sum).saturating_sub(base.per_slice(time(base, name)));
        let waits = band.inside.waits.iter().filter(|(wait, _)| wait.name == name);
        let waits: Vec<_> = waits.map(|(wait, inner)| (*wait, whole(&inner.own))).collect();
        let mut places: HashMap<Tags, i64> = HashMap::new();
        waits.iter().for_each(|(wait, time)| {
            let sum = places.entry(wait.tags).or_default();
            *sum = sum.saturating_add(*time);
        });
        let mut places = largest(&places, |tags| survey.locks.place(*tags).to_owned(), ROWS);
        places.retain(|place| !place.what.is_empty());
        let name = lock_name(survey.keys().text(name)).to_owned();
        Lock { name, time: sum, extra, holders: holders(survey, target, &waits), places }
    };
    let mut locks: Vec<_> = names.into_iter().map(lock).filter(|lock| lock.extra > 0).collect();
    locks.sort_by_key(|lock| std::cmp::Reverse(lock.extra));
    locks
}

fn holders(survey: &Survey, target: &Target, waits: &[(Wait, i64)]) -> Vec<Held> {
    let key = |tags| survey.locks.holder(tags);
    let mut times: HashMap<_, i64> = HashMap::new();
    for (wait, time) in waits {
        let sum = times.entry(key(wait.tags)).or_default();
        *sum = sum.saturating_add(*time);
    }
    let mut inside: HashMap<_, HashMap<Key, i64>> = HashMap::new();
    for ((tags, name), time) in &target.held_in {
        let sum = inside.entry(key(*tags)).or_default().entry(*name).or_default();
        *sum = sum.saturating_add(*time);
    }
    let looked_at = |of| {
        let waits = target.waits.all().iter().filter(|wait| key(wait.tags) == of);
        total(waits.map(|wait| wait.duration()))
    };
    let held = |(of, time): (_, i64)| {
        let most = inside.get(&of).and_then(|names| names.iter().max_by_key(|(name, time)| (**time, name.0)));
        let most = most.filter(|(_, time)| **time > looked_at(of) / 2);
        Held { holder: of.0, place: of.1.to_owned(), time, inside: most.map(|(name, _)| *name) }
    };
    let mut all: Vec<_> = times.into_iter().map(held).collect();
    all.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.place.cmp(&b.place)));
    all
}

impl Lock {
    /// What it is. That of a condition variable is known only where somebody notified.
    pub(super) fn kind(&self) -> &'static str {
        let is_notifier = |held: &Held| matches!(held.holder, Holder::Notifier(_));
        if self.holders.iter().any(is_notifier) { "condition variable" } else { "lock" }
    }

    /// Says who had the lock, as a part of a sentence.
    pub(super) fn held(&self, survey: &Survey) -> String {
        let one = |held: &Held| {
            let thread = |tid| format!("the thread {}", plain(&survey.thread_name(tid)));
            let who = match held.holder {
                Holder::Thread(tid) => format!("held by {}", thread(tid)),
                Holder::Releaser(tid) => format!("released by {}", thread(tid)),
                Holder::Notifier(tid) => format!("notified by {}", thread(tid)),
                Holder::Unknown => "the trace does not have the holder".to_owned(),
            };
            let at =
                if held.place.is_empty() { String::new() } else { format!(", at {}", plain(&held.place)) };
            let inside = held.inside.map(|name| format!(", inside `{}`", plain(survey.keys().text(name))));
            let comma = if at.is_empty() && inside.is_none() { "" } else { "," };
            let share = percent(held.time, self.time);
            format!("{who}{at}{}{comma} for {share} of that time", inside.unwrap_or_default())
        };
        let are_few = |held: &&Held| held.time >= self.time / 50;
        self.holders.iter().filter(are_few).take(3).map(one).collect::<Vec<_>>().join("; ")
    }

    /// The place at which most of the time was waited, as a part of a sentence.
    pub(super) fn place(&self) -> String {
        self.places.first().map_or_else(String::new, |place| match percent(place.time, self.time) {
            all if all == "100 %" => format!(", at {}", plain(&place.what)),
            share => format!(", {share} at {}", plain(&place.what)),
        })
    }
}
