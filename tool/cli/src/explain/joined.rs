//! The threads and processes whose ends may have ended the sleeps of a target: a thread that joins another
//! one, or waits for a process, sleeps until that has ended.
//!
//! The kernel wakes those that wait for a thread as it ends. By then it has closed the thread's own events
//! (seen with Linux 6.18), so a session does not have that wake-up. `hairline record --sched` as root has it.

use std::collections::HashMap;

use hairline_convert::timeline::Life;

use crate::explain::meanwhile::NEAR;
use crate::explain::survey::Survey;
use crate::explain::target::{Chance, Part, Target, total};
use crate::table::plain;

/// How long a thread that wakes another one with its end lives on at most.
const AFTER: i64 = 2_000_000;

/// How long before the end of a sleep without a wake-up the thread ended at most: the kernel frees the memory
/// of a process before it wakes who waits, and a core may be busy.
fn before(slept: i64) -> i64 {
    const LEAST: i64 = 1_000_000;
    LEAST.max(slept / 100)
}

/// The sleeps that end as threads or processes of one name do.
pub(super) struct Joined {
    /// What ends: one thread, or several ones of a name; and the call that may wait for that.
    what: String,
    call: &'static str,
    count: usize,
    pub(super) time: i64,
    is_woken: bool,
}

/// Those of the name that ended most of the time slept, and not by chance.
pub(super) fn joined(survey: &Survey, target: &Target) -> Option<Joined> {
    let mut by_name: HashMap<(String, bool), Vec<(u64, Part)>> = HashMap::new();
    for sleep in target.sleeps.all() {
        if let Some((tid, _)) = ended_with(survey, sleep) {
            let is_process = is_other_process(survey, tid, sleep);
            let ended = by_name.entry((name(survey, tid), is_process)).or_default();
            ended.push((tid, *sleep));
        }
    }
    let time = |ended: &[(u64, Part)]| total(ended.iter().map(|(_, sleep)| sleep.duration()));
    let best = by_name.into_iter().max_by(|a, b| time(&a.1).cmp(&time(&b.1)).then_with(|| b.0.cmp(&a.0)));
    let ((name, is_process), ended) = best?;
    let is_one = ended.iter().all(|(tid, _)| *tid == ended[0].0);
    let (kind, many, call) =
        if is_process { ("process", "processes", "wait") } else { ("thread", "threads", "join") };
    let what = if is_one {
        format!("the {kind} {} ends", plain(&survey.thread_name(ended[0].0)))
    } else {
        format!("{many} `{}` end", plain(&name))
    };
    let count = ended.len();
    let guessed = ended.iter().filter(|(_, sleep)| sleep.waker.is_none()).count();
    let is_by_chance = guessed > 0 && chance(survey, target).explains(guessed as u64);
    (!is_by_chance).then_some(Joined { what, call, count, time: time(&ended), is_woken: guessed == 0 })
}

impl Joined {
    /// As a part of a sentence. So many are all sleeps.
    pub(super) fn text(&self, sleeps: usize) -> String {
        let wakes = if self.is_woken { ", which wakes them" } else { "" };
        let Self { what, call, count, .. } = self;
        format!("{count} of {sleeps} sleeps end as {what}{wakes}: they may wait for that, as `{call}` does")
    }
}

/// The thread whose end may have ended a sleep, and how far apart the ends of both are. It has lived for all
/// of that time.
fn ended_with(survey: &Survey, sleep: &Part) -> Option<(u64, i64)> {
    let own = survey.track_names.own_tid(sleep.track);
    let born = sleep.start.saturating_add(before(sleep.duration()));
    let within = |from: i64, to: i64| {
        let ends = survey.timeline.ends();
        let ends = ends[ends.partition_point(|life| life.end < from)..].iter();
        let others = ends.take_while(move |life| life.end <= to).filter(move |life| Some(life.tid) != own);
        others.filter(move |life| life.start <= born).map(|life| (life.tid, apart(life, sleep)))
    };
    if let Some(waker) = sleep.waker {
        return within(sleep.end, sleep.end.saturating_add(AFTER)).find(|(tid, _)| *tid == waker);
    }
    if sleep.is_woken {
        return None; // by an interrupt
    }
    let (from, to) = (sleep.end.saturating_sub(before(sleep.duration())), sleep.end.saturating_add(NEAR));
    within(from, to).min_by_key(|(_, apart)| *apart)
}

fn apart(life: &Life, sleep: &Part) -> i64 {
    life.end.max(sleep.end).saturating_sub(life.end.min(sleep.end))
}

/// During how many of the sleeps a thread that has lived as long ends by chance at the right time, or as near
/// to that as one did: with a factor of 2, since that is half of what may be on average.
#[allow(clippy::cast_precision_loss)] // an estimate
fn chance(survey: &Survey, target: &Target) -> Chance {
    let ends = survey.timeline.ends().iter();
    let mut lives: Vec<i64> = ends.map(|life| life.end.saturating_sub(life.start)).collect();
    lives.sort_unstable();
    let span = survey.timeline.span();
    let time = span.map_or(1, |(first, last)| last.saturating_sub(first).max(1)) as f64;
    let probability = |sleep: &Part| {
        let least = sleep.duration().saturating_sub(before(sleep.duration()));
        let ends = lives.len() - lives.partition_point(|life| *life < least);
        let within = match ended_with(survey, sleep) {
            Some((_, apart)) => apart.saturating_mul(4),
            None => before(sleep.duration()) + NEAR,
        };
        (within as f64 * ends as f64 / time).min(1.0)
    };
    let sleeps = target.sleeps.all().iter().filter(|sleep| !sleep.is_woken);
    sleeps.fold(Chance::default(), |sum, sleep| sum.and(probability(sleep)))
}

/// The name of a thread, without its id.
fn name(survey: &Survey, tid: u64) -> String {
    let name = survey.thread_name(tid);
    name.strip_suffix(&format!(" ({tid})")).unwrap_or(&name).to_owned()
}

/// Whether this is the first thread of another process.
fn is_other_process(survey: &Survey, tid: u64, sleep: &Part) -> bool {
    let process = survey.track_names.process(tid);
    process.is_some() && process != survey.track_names.process_of(sleep.track)
}
