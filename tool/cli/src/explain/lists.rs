//! The lists of what slices and threads did, for people. `who` did it.

use std::fmt::Write;

use hairline_convert::sampled::StackId;
use hairline_convert::timeline::Split;

use crate::explain::functions::{At, StackShare, largest_stacks};
use crate::explain::shares::{Share, largest, percent};
use crate::explain::stacks::Stacks;
use crate::explain::survey::Survey;
use crate::explain::target::{Band, total};
use crate::table::{Table, in_colour};
use crate::text::{duration, grouped, grouped_count};

/// The limit for the rows of each list.
pub(super) const ROWS: usize = 6;

/// A wait for a core that is less than one part in so many of the time ready to run explains nothing.
const CONSIDERABLE: i64 = 20;

/// The row for the time in which no thread of the trace had the core.
const NO_THREAD: &str = "(no thread of the trace: perhaps another program)";

/// The callers that are shown of a function.
const CALLERS: usize = 3;

/// The functions in which samples are.
pub(super) fn functions(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let name = |stack| survey.function(stack, At::Any).to_string();
    let functions = largest_stacks(&of.on_cpu, name, usize::MAX);
    let samples = total(of.on_cpu.values().copied());
    let title = format!("functions on the CPU in {who}");
    list(&mut stacks.out, &title, functions.iter().map(|of| &of.share), samples, |share| {
        grouped_count(share.unsigned_abs(), "sample")
    });
    let functions = &functions[..functions.len().min(ROWS)];
    if let Some(part) = part_of_time(survey, of) {
        let _ = writeln!(stacks.out, "{part}");
    }
    stacks.below(&survey.samples, functions);
}

/// Says of what part of the time on the CPU the samples are, if it is clearly not all of it: the shares of
/// functions are of that part.
pub(super) fn part_of_time(survey: &Survey, of: &Band) -> Option<String> {
    let samples = total(of.on_cpu.values().copied());
    let all = of.split.running / i64::try_from(survey.samples.period()?).ok()?;
    // By chance, the number differs by the square root of it.
    let is_less = samples > 0 && samples + 3 * all.max(0).isqrt() < all / 10 * 9;
    is_less.then(|| {
        let part = percent(samples, all);
        // Slices may be on many short threads. A thread by itself has no duration here.
        let or_short =
            if of.duration > 0 { ", or in threads that ran for less than the time of one sample" } else { "" };
        format!(
            "The samples are of {part} of the time on the CPU. They are of user code: the rest may be in the kernel \
             (system calls, page faults){or_short}."
        )
    })
}

/// The stacks at which sleeps began.
pub(super) fn sleeps(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let shares = largest_stacks(&of.off_cpu, with_callers(survey, At::Any), usize::MAX);
    list_stacks(stacks, survey, &format!("stacks in which {who} slept"), &shares, of.split.asleep, duration);
    if let Some(part) = part_of_sleep(of) {
        let _ = writeln!(stacks.out, "{part}");
    }
}

/// Says of what part of the time asleep there are stacks, if that is clearly not all of it: the kernel's ring
/// had no room for the others, or the thread slept as the recording began.
pub(super) fn part_of_sleep(of: &Band) -> Option<String> {
    let (known, all) = (total(of.off_cpu.values().copied()), of.split.asleep);
    let part = || {
        let part = percent(known, all);
        format!("There are stacks of {part} of the time asleep. Those of the rest were lost or not taken.")
    };
    (known > 0 && known < all / 10 * 9).then(part)
}

/// Where the threads were by the clock, running or asleep.
pub(super) fn by_clock(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let shares = largest_stacks(&of.by_clock, with_callers(survey, At::Any), usize::MAX);
    let all = total(of.by_clock.values().copied());
    list_stacks(stacks, survey, &format!("where {who} were, by the clock"), &shares, all, |share| {
        grouped_count(share.unsigned_abs(), "sample")
    });
}

/// The stacks of events, and of slow slices at their limits and at their ends.
pub(super) fn events(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let shares = largest_stacks(&of.events, with_callers(survey, At::Event), usize::MAX);
    let all = total(of.events.values().copied());
    list_stacks(stacks, survey, &format!("stacks of events and limits in {who}"), &shares, all, |share| {
        grouped_count(share.unsigned_abs(), "stack")
    });
}

/// The threads that ran meanwhile on the core that was waited for.
pub(super) fn holders(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let threads = largest(&of.holders, |tid| survey.thread_name(*tid), usize::MAX);
    let title = format!("threads that had the core while {who} waited");
    // A core that had nothing to do for a moment is no other program's.
    let rest = not_held(of);
    let has_rest = rest > of.split.waiting / 200 && (!threads.is_empty() || waits_much(of));
    let rest = has_rest.then(|| Share { what: NO_THREAD.to_owned(), time: rest });
    list_with_rest(&mut stacks.out, &title, (&threads, rest), of.split.waiting, duration);
}

/// The time waiting for a core in which the trace has no thread on it.
fn not_held(of: &Band) -> i64 {
    of.split.waiting.saturating_sub(total(of.holders.values().copied())).max(0)
}

/// Whether a considerable part of the time ready to run is the wait for a core.
fn waits_much(of: &Band) -> bool {
    let Split { running, waiting, .. } = of.split;
    waiting > 0 && waiting >= running.saturating_add(waiting) / CONSIDERABLE
}

/// Whether a considerable wait for a core has no thread of the trace on the core for a tenth of it or more:
/// other programs may explain it.
pub(super) fn waits_for_others(of: &Band) -> bool {
    waits_much(of) && not_held(of) > of.split.waiting / 10
}

/// The threads that ended sleeps.
pub(super) fn wakers(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let threads = largest(&of.wakers, |tid| survey.thread_name(*tid), usize::MAX);
    list(&mut stacks.out, &format!("threads that woke {who}"), &threads, of.split.asleep, duration);
}

/// The title of the row that stands for those which are not shown.
pub(super) fn more(count: usize) -> String {
    format!("and {} more", grouped(count as u64))
}

/// Names a stack by its function, with some of its callers.
fn with_callers(survey: &Survey, at: At) -> impl Fn(StackId) -> String {
    move |stack| survey.function(stack, at).with_callers(CALLERS)
}

fn list_stacks(
    stacks: &mut Stacks,
    survey: &Survey,
    title: &str,
    shares: &[StackShare],
    whole: i64,
    unit: impl Fn(i64) -> String,
) {
    list(&mut stacks.out, title, shares.iter().map(|of| &of.share), whole, unit);
    stacks.below(&survey.samples, &shares[..shares.len().min(ROWS)]);
}

fn list<'a>(
    out: &mut String,
    title: &str,
    shares: impl IntoIterator<Item = &'a Share>,
    whole: i64,
    unit: impl Fn(i64) -> String,
) {
    list_with_rest(out, title, (shares, None), whole, unit);
}

/// The first rows of a list, the sum of the others, and the rest that has no row.
fn list_with_rest<'a>(
    out: &mut String,
    title: &str,
    (shares, rest): (impl IntoIterator<Item = &'a Share>, Option<Share>),
    whole: i64,
    unit: impl Fn(i64) -> String,
) {
    let mut table = Table::new(1, &[title, "", "share"]);
    let mut add = |share: &Share| {
        table.add(vec![share.what.clone(), unit(share.time), percent(share.time, whole)]);
    };
    let (mut rows, mut others, mut time) = (0, 0, 0_i64);
    for share in shares {
        if rows < ROWS {
            rows += 1;
            add(share);
        } else {
            others += 1;
            time = time.saturating_add(share.time);
        }
    }
    let others = (others > 0).then(|| Share { what: more(others), time });
    if rows == 0 && rest.is_none() {
        return;
    }
    others.iter().chain(&rest).for_each(add);
    let _ = write!(out, "\n{}", table.lines(in_colour()));
}
