//! The lists of what slices and threads did, for people. `who` did it.

use std::fmt::Write;

use hairline_convert::sampled::StackId;

use crate::explain::functions::{At, StackShare, largest_stacks};
use crate::explain::shares::{Share, largest, percent};
use crate::explain::stacks::Stacks;
use crate::explain::survey::Survey;
use crate::explain::target::{Band, total};
use crate::table::{Table, in_colour};
use crate::text::{duration, grouped_count};

/// The limit for the rows of each list.
pub(super) const ROWS: usize = 6;

/// The callers that are shown of a function.
const CALLERS: usize = 3;

/// The functions in which samples are.
pub(super) fn functions(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let name = |stack| survey.function(stack, At::Any).to_string();
    let functions = largest_stacks(&of.on_cpu, name, ROWS);
    let samples = total(of.on_cpu.values().copied());
    let title = format!("functions on the CPU in {who}");
    list(&mut stacks.out, &title, functions.iter().map(|of| &of.share), samples, |share| {
        grouped_count(share.unsigned_abs(), "sample")
    });
    if let Some(part) = part_of_time(survey, of) {
        let _ = writeln!(stacks.out, "{part}");
    }
    stacks.below(&survey.samples, &functions);
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
        format!(
            "The samples are of {part} of the time on the CPU. The rest may be in the kernel (system calls, page \
             faults), of which a user without rights gets none."
        )
    })
}

/// The stacks at which sleeps began.
pub(super) fn sleeps(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let shares = largest_stacks(&of.off_cpu, with_callers(survey, At::Any), ROWS);
    list_stacks(stacks, survey, &format!("stacks in which {who} slept"), &shares, of.split.asleep, duration);
}

/// Where the threads were by the clock, running or asleep.
pub(super) fn by_clock(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let shares = largest_stacks(&of.by_clock, with_callers(survey, At::Any), ROWS);
    let all = total(of.by_clock.values().copied());
    list_stacks(stacks, survey, &format!("where {who} were, by the clock"), &shares, all, |share| {
        grouped_count(share.unsigned_abs(), "sample")
    });
}

/// The stacks of events, and of slow slices at their limits and at their ends.
pub(super) fn events(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let shares = largest_stacks(&of.events, with_callers(survey, At::Event), ROWS);
    let all = total(of.events.values().copied());
    list_stacks(stacks, survey, &format!("stacks of events and limits in {who}"), &shares, all, |share| {
        grouped_count(share.unsigned_abs(), "stack")
    });
}

/// The threads that ran meanwhile on the core that was waited for.
pub(super) fn holders(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let threads = largest(&of.holders, |tid| survey.thread_name(*tid), ROWS);
    list(
        &mut stacks.out,
        &format!("threads that had the core while {who} waited"),
        &threads,
        of.split.waiting,
        duration,
    );
}

/// The threads that ended sleeps.
pub(super) fn wakers(stacks: &mut Stacks, survey: &Survey, (of, who): (&Band, &str)) {
    let threads = largest(&of.wakers, |tid| survey.thread_name(*tid), ROWS);
    list(&mut stacks.out, &format!("threads that woke {who}"), &threads, of.split.asleep, duration);
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
    stacks.below(&survey.samples, shares);
}

fn list<'a>(
    out: &mut String,
    title: &str,
    shares: impl IntoIterator<Item = &'a Share>,
    whole: i64,
    unit: impl Fn(i64) -> String,
) {
    let mut shares = shares.into_iter().peekable();
    if shares.peek().is_none() {
        return;
    }
    let mut table = Table::new(1, &[title, "", "share"]);
    for share in shares {
        table.add(vec![share.what.clone(), unit(share.time), percent(share.time, whole)]);
    }
    let _ = write!(out, "\n{}", table.lines(in_colour()));
}
