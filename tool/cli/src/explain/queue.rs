//! What the workers did while tasks were queued.

use hairline_convert::slices::Key;

use crate::explain::shares::percent;
use crate::explain::survey::Survey;
use crate::explain::target::{Polls, Target, total};
use crate::table::plain;
use crate::text::{duration, grouped_count};

/// The polls that the workers made meanwhile, by category and name: those with the most time first.
pub(super) fn polls(target: &Target) -> Vec<((Key, Key), Polls)> {
    let mut all: Vec<_> = target.polls.iter().map(|(name, polls)| (*name, *polls)).collect();
    all.sort_by_key(|(name, polls)| (std::cmp::Reverse(polls.time), *name));
    all
}

/// How many polls there were, and how long the longest took.
pub(super) fn counted(polls: &Polls) -> String {
    let (count, longest) = (grouped_count(polls.count, "poll"), duration(polls.longest));
    let the = if polls.count == 1 { " of" } else { ", the longest of" };
    format!("{count}{the} {longest}")
}

/// Says what the threads polled while tasks were queued that the slowest wait for.
pub(super) fn of_awaited(survey: &Survey, target: &Target) -> Option<String> {
    let queued = &target.awaited_queues;
    let whole = queued.times.total();
    let ((_, name), polls) = queued.polls.iter().max_by_key(|(name, polls)| (polls.time, **name))?;
    (queued.parked <= whole / 2 && polls.time > whole / 2).then(|| {
        let (name, share) = (plain(survey.keys().text(*name)), percent(polls.time, whole));
        format!("Meanwhile its thread polled `{name}`, for {share} of that ({}).", counted(polls))
    })
}

/// Says what they did, if the trace has that for most of the time.
pub(super) fn meanwhile(survey: &Survey, target: &Target) -> Option<String> {
    let (whole, all) = (target.queues.total(), polls(target));
    let polled = total(all.iter().map(|(_, polls)| polls.time));
    if target.parked > whole / 2 {
        let share = percent(target.parked, whole);
        return Some(format!(
            "Why: not known. The workers had nothing else to do (`parked`) for {share} of that time: such a thread \
             is woken, and waits for a core."
        ));
    }
    if polled <= whole / 2 {
        return None;
    }
    let one = |((category, name), polls): &((Key, Key), Polls)| {
        let of = target.chosen.name;
        let others = if (*category, *name) == (of.category, of.name) { " of others" } else { "" };
        let (name, share) = (plain(survey.keys().text(*name)), percent(polls.time, whole));
        format!("`{name}`{others} for {share} of that time ({})", counted(polls))
    };
    let are_many = |(_, polls): &&(_, Polls)| polls.time >= whole / 20;
    let named: Vec<_> = all.iter().filter(are_many).take(3).map(one).collect();
    (!named.is_empty()).then(|| format!("Why: meanwhile the workers polled {}.", named.join(", ")))
}
