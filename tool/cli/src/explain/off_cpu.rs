//! Why a thread did not run: who had its core, or what it slept for.

use crate::explain::ending::ending;
use crate::explain::functions::{StackShare, function_list};
use crate::explain::joined::joined;
use crate::explain::lists::part_of_sleep;
use crate::explain::shares::{Share, largest, percent};
use crate::explain::survey::Survey;
use crate::explain::target::{Band, Part, Target, total};
use crate::table::plain;

/// What the time asleep contains in a trace without wake-ups.
pub(super) const NO_WAKEUPS: &str = "Without wake-ups, the time asleep contains the wait for a core at the end of each sleep, and a sleep does \
     not name the thread that ended it: `hairline record --sched` records them as root, where tracefs is \
     mounted.";

/// What it contains where the trace has wake-ups, but not of these sleeps.
const FEW_WAKEUPS: &str = "The trace has no wake-up for most of this time, so it contains the wait for a core at the end of each \
     sleep: a session has the wake-ups by its own threads, `hairline record --sched` as root has all.";

/// The slice that a thread had open for most of the time for which it had a core that was waited for.
fn ran_in<'s>(survey: &'s Survey, target: &Target, thread: &str) -> Option<&'s str> {
    let is_it = |tid: u64| survey.thread_name(tid) == thread;
    let runs = target.cores.all().iter().filter(|run| run.waker.is_some_and(is_it));
    let looked_at = total(runs.map(Part::duration));
    let open = target.ran_in.iter().filter(|((tid, _), _)| is_it(*tid));
    let most = open.max_by_key(|((_, name), time)| (**time, name.0));
    most.filter(|(_, time)| **time > looked_at / 2).map(|((_, name), _)| survey.keys().text(*name))
}

/// Adds who had the core for which the thread waited.
pub(super) fn waiting(survey: &Survey, target: &Target, band: &Band, lines: &mut Vec<String>) {
    let mut threads = largest(&band.holders, |tid| survey.thread_name(*tid), 3);
    let known = total(band.holders.values().copied());
    let whole = band.split.waiting.max(known);
    threads.retain(|thread| thread.time >= whole / 50);
    let others = percent(whole.saturating_sub(known), whole);
    let one = |thread: &Share| {
        let inside = ran_in(survey, target, &thread.what);
        let inside = inside.map_or_else(String::new, |name| format!(" inside `{}`", plain(name)));
        format!("`{}`{inside} {}", plain(&thread.what), percent(thread.time, whole))
    };
    let listed = threads.iter().map(one).collect::<Vec<_>>().join(", ");
    lines.push(if threads.is_empty() {
        "Why: not known, because the trace has no thread on their core meanwhile: a thread of another \
         program may have had it."
            .to_owned()
    } else if known >= whole / 10 * 9 {
        format!("Why: the core was busy with the threads {listed} of that time.")
    } else {
        format!(
            "Why: the core was busy with the threads {listed}; for {others} the trace has no thread on it: \
             a thread of another program may have had it."
        )
    });
    if known < whole / 10 * 9 {
        lines.extend(survey.neighbours.sentence());
    }
}

/// Whether the threads of a band are stopped for most of the time for which they are asleep.
pub(super) fn is_stopped(band: &Band) -> bool {
    band.split.stopped > band.split.asleep / 2
}

/// Adds what the thread slept for.
pub(super) fn asleep(
    survey: &Survey,
    (target, band): (&Target, &Band),
    functions: &[StackShare],
    lines: &mut Vec<String>,
) {
    if target.chosen.is_poll {
        let what = "Why: an interval has the same name, so each may be a poll of an async task: a blocking \
                    call in it holds up the other tasks of its thread.";
        lines.push(what.to_owned());
    }
    if !functions.is_empty() {
        let functions = function_list(functions, |time| percent(time, band.split.asleep));
        lines.push(format!("Functions that sleep: {functions}."));
        lines.extend(part_of_sleep(band));
    }
    lines.extend(why_asleep(survey, target, band));
    if !is_stopped(band) && are_most(target, |sleep| !sleep.has_wakeup) && band.split.asleep > 0 {
        let what = if survey.timeline.has_wakeups() { FEW_WAKEUPS } else { NO_WAKEUPS };
        lines.push(what.to_owned());
    }
}

/// Whether most of the time asleep is in sleeps like this.
fn are_most(target: &Target, is_it: fn(&Part) -> bool) -> bool {
    let these = target.sleeps.all().iter().filter(|sleep| is_it(sleep));
    total(these.map(Part::duration)) > target.sleeps.total() / 2
}

/// What ended most of the sleeps.
fn why_asleep(survey: &Survey, target: &Target, band: &Band) -> Option<String> {
    let mut wakers = largest(&band.wakers, |tid| survey.thread_name(*tid), 2);
    wakers.retain(|waker| waker.time >= band.split.asleep / 50);
    let woken = match &wakers[..] {
        [] => String::new(),
        _ => format!(" Woken by {}.", list(&wakers, band.split.asleep)),
    };
    if is_stopped(band) {
        return Some(format!("Why: a signal, like SIGSTOP, or a debugger stopped their thread.{woken}"));
    }
    let (whole, count) = (target.sleeps.total(), target.sleeps.all().len());
    let joined = joined(survey, target).filter(|joined| joined.time >= whole / 2);
    let ending = ending(survey, target).filter(|ending| ending.time >= whole / 2);
    let is_interrupted = |sleep: &Part| sleep.is_woken && sleep.waker.is_none();
    Some(if let Some(joined) = joined {
        format!("Why: {}.{woken}", joined.text(count))
    } else if let Some(ending) = ending.as_ref().filter(|ending| !ending.is_by_chance) {
        format!("Why: {}.{woken}", ending.text(count))
    } else if band.split.uninterruptible > band.split.asleep / 2 {
        format!("Why: the sleep is uninterruptible, so it is for a disk as a rule.{woken}")
    } else if !wakers.is_empty() {
        format!("Why: they wait for other threads.{woken}")
    } else if are_most(target, is_interrupted) {
        let interrupted = target.sleeps.all().iter().filter(|sleep| is_interrupted(sleep)).count();
        format!(
            "Why: an interrupt ended {interrupted} of {count} sleeps, as of a disk, the network or a timer."
        )
    } else if target.chosen.is_poll {
        return None; // it is said already
    } else {
        let seen = ending.map_or_else(
            || {
                "no slice of another thread was open during most of these sleeps and ran when they ended"
                    .to_owned()
            },
            |ending| format!("`{}` was open so long that it says nothing", plain(&ending.name)),
        );
        format!(
            "Why: not known: {seen}. They may wait for a thread without slices, a disk, the network or a timer, \
             or a signal may have stopped them."
        )
    })
}

/// A list of threads as a part of a sentence.
fn list(shares: &[Share], whole: i64) -> String {
    let one = |share: &Share| format!("`{}` {}", plain(&share.what), percent(share.time, whole));
    shares.iter().map(one).collect::<Vec<_>>().join(", ")
}
