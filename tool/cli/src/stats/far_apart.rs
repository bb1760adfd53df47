//! Events that are far from all others: their clock was not set yet, or was set to another time.

use crate::text::grouped_count;

/// Events that are farther than a day from all others form a group of their own.
const FAR: i64 = 86_400_000_000_000;
/// The limit for groups. Further events belong to the group of the event before them.
const MOST: usize = 8;
/// The limit for names of a group.
const MOST_NAMES: usize = 3;

/// The groups of a trace's events, by time.
#[derive(Debug, Default)]
pub(crate) struct FarApart {
    groups: Vec<Group>,
    /// The group of the latest event.
    now: usize,
}

#[derive(Debug)]
struct Group {
    first: i64,
    last: i64,
    count: u64,
    names: Vec<String>,
}

impl Group {
    fn is_near(&self, time: i64) -> bool {
        self.first.saturating_sub(FAR) <= time && time <= self.last.saturating_add(FAR)
    }
}

impl FarApart {
    /// Adds an event from one time to another.
    #[inline]
    pub(crate) fn add(&mut self, from: i64, to: i64, name: impl FnOnce() -> String) {
        if !self.groups.get(self.now).is_some_and(|group| group.is_near(from)) {
            self.change(from);
        }
        if let Some(group) = self.groups.get_mut(self.now) {
            group.first = group.first.min(from);
            group.last = group.last.max(to);
            group.count += 1;
            if group.count <= MOST_NAMES as u64 {
                let name = name();
                if !group.names.contains(&name) {
                    group.names.push(name);
                }
            }
        }
    }

    /// Adds events between two times if they belong to the group of the latest event, which has its names.
    /// Returns whether they do.
    #[inline]
    pub(crate) fn add_many(&mut self, from: i64, to: i64, count: u64) -> bool {
        let group = self.groups.get_mut(self.now).filter(|group| group.count > MOST_NAMES as u64);
        let Some(group) = group.filter(|group| group.is_near(from) && group.is_near(to)) else {
            return false;
        };
        group.first = group.first.min(from);
        group.last = group.last.max(to);
        group.count += count;
        true
    }

    /// Chooses the group of another time.
    #[cold]
    fn change(&mut self, time: i64) {
        if let Some(near) = self.groups.iter().position(|group| group.is_near(time)) {
            self.now = near;
        } else if self.groups.len() < MOST {
            self.now = self.groups.len();
            self.groups.push(Group { first: time, last: time, count: 0, names: Vec::new() });
        }
    }

    /// A line about each group of few events that is far from nearly all others.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Some(most) = self.groups.iter().max_by_key(|group| group.count) else { return Vec::new() };
        let few = self.groups.iter().filter(|group| group.count * 10 <= most.count);
        few.filter_map(|group| {
            let (gap, place) = if group.last < most.first {
                (most.first.saturating_sub(group.last), "before")
            } else {
                (group.first.saturating_sub(most.last), "after")
            };
            let (events, far) = (grouped_count(group.count, "event"), long(gap));
            let names = group.names.join(", ");
            let more = if group.count > group.names.len() as u64 { ", ..." } else { "" };
            (gap > FAR).then(|| format!("{events} ({names}{more}): {far} {place} the others"))
        })
        .collect()
    }
}

/// A time of days or years.
fn long(ns: i64) -> String {
    let days = ns.unsigned_abs() / FAR.unsigned_abs();
    if days < 2 * 365 { grouped_count(days, "day") } else { grouped_count(days * 10_000 / 3_652_425, "year") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_events_far_from_the_others_are_named() {
        let now = 1_750_000_000_000_000_000;
        let mut all = FarApart::default();
        for n in 0..50 {
            all.add(now + n * 1_000_000, now + n * 1_000_000, || "step".to_owned());
            if n % 20 == 0 {
                all.add(n, n, || if n == 0 { "copy" } else { "kernel" }.to_owned());
            }
        }
        all.add(now + 3 * FAR, now + 3 * FAR, || "late".to_owned());
        assert_eq!(
            all.lines(),
            [
                "3 events (copy, kernel, ...): 55 years before the others",
                "1 event (late): 2 days after the others"
            ]
        );
    }

    #[test]
    fn a_trace_of_weeks_has_no_such_events() {
        let mut all = FarApart::default();
        for day in 0..40 {
            all.add(day * FAR, day * FAR, || "tick".to_owned());
        }
        assert!(all.lines().is_empty());
    }
}
