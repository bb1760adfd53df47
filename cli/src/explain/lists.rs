//! The lists of what slices and threads did, for people. `who` did it.

use std::fmt::Write;

use hairline_convert::sampled::{Function, Samples, StackId};

use crate::explain::callers::{is_for_callers, is_of, is_wait};
use crate::explain::shares::{Share, largest, percent};
use crate::explain::survey::Survey;
use crate::explain::target::{Band, total};
use crate::table::{Table, in_colour};
use crate::text::{duration, grouped_count};

/// The limit for the rows of each list.
pub(super) const ROWS: usize = 6;

/// The callers that are shown of a function.
const CALLERS: usize = 3;

/// The functions in which samples are.
pub(super) fn functions(out: &mut String, survey: &Survey, (of, who): (&Band, &str)) {
    let functions = largest(&of.on_cpu, |stack| survey.samples.leaf(*stack), ROWS);
    let samples = total(of.on_cpu.values().copied());
    list(out, &format!("functions on the CPU in {who}"), &functions, samples, |share| {
        grouped_count(share.unsigned_abs(), "sample")
    });
    if let Some(part) = part_of_time(survey, of) {
        let _ = writeln!(out, "{part}");
    }
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
pub(super) fn sleeps(out: &mut String, survey: &Survey, (of, who): (&Band, &str)) {
    let stacks = largest(&of.off_cpu, |stack| with_callers(&survey.samples, *stack, CALLERS), ROWS);
    list(out, &format!("stacks in which {who} slept"), &stacks, of.split.asleep, duration);
}

/// Where the threads were by the clock, running or asleep.
pub(super) fn by_clock(out: &mut String, survey: &Survey, (of, who): (&Band, &str)) {
    let stacks = largest(&of.by_clock, |stack| with_callers(&survey.samples, *stack, CALLERS), ROWS);
    let all = total(of.by_clock.values().copied());
    list(out, &format!("where {who} were, by the clock"), &stacks, all, |share| {
        grouped_count(share.unsigned_abs(), "sample")
    });
}

/// The stacks of events, and of slow slices at their limits and at their ends.
pub(super) fn events(out: &mut String, survey: &Survey, (of, who): (&Band, &str)) {
    let stacks = largest(&of.events, |stack| with_callers(&survey.samples, *stack, CALLERS), ROWS);
    let all = total(of.events.values().copied());
    list(out, &format!("stacks of events and limits in {who}"), &stacks, all, |share| {
        grouped_count(share.unsigned_abs(), "stack")
    });
}

/// The function in which a stack waits, or its innermost one.
pub(super) fn innermost(samples: &Samples, stack: StackId) -> String {
    with_callers(samples, stack, 0)
}

/// Returns the innermost function of a stack and its callers in the program: without those that work for
/// their callers, and without those of the recording, which the stack of an event begins with.
fn with_callers(samples: &Samples, stack: StackId, callers: usize) -> String {
    let names = samples.names(stack);
    // A frame without functions has one name, and no file.
    let files = samples.frames(stack).flat_map(|frame| {
        let files = samples.place(frame).functions.into_iter().rev().map(|of| of.file).collect::<Vec<_>>();
        if files.is_empty() { vec![""] } else { files }
    });
    let names: Vec<_> = names.iter().rev().map(|name| &**name).zip(files).collect();
    // Inlined functions have no path, and so the last one with a path counts.
    let own = names.iter().rposition(|(name, _)| is_of(name, &["hairline", "hairline_sampler"]));
    let names = own.and_then(|last| names.get(last + 1..)).filter(|rest| !rest.is_empty()).unwrap_or(&names);
    let first = names.iter().position(|(name, _)| !is_wait(name)).unwrap_or(0);
    let is_shown = |(name, file): &&(&str, &str)| !is_for_callers(&Function { name, file, line: 0 });
    let outer = names.iter().skip(first + 1).filter(is_shown).take(callers);
    names.get(first).into_iter().chain(outer).map(|(name, _)| *name).collect::<Vec<_>>().join(" < ")
}

/// The threads that ran meanwhile on the core that was waited for.
pub(super) fn holders(out: &mut String, survey: &Survey, (of, who): (&Band, &str)) {
    let threads = largest(&of.holders, |tid| survey.thread_name(*tid), ROWS);
    list(out, &format!("threads that had the core while {who} waited"), &threads, of.split.waiting, duration);
}

/// The threads that ended sleeps.
pub(super) fn wakers(out: &mut String, survey: &Survey, (of, who): (&Band, &str)) {
    let threads = largest(&of.wakers, |tid| survey.thread_name(*tid), ROWS);
    list(out, &format!("threads that woke {who}"), &threads, of.split.asleep, duration);
}

fn list(out: &mut String, title: &str, shares: &[Share], whole: i64, unit: impl Fn(i64) -> String) {
    if shares.is_empty() {
        return;
    }
    let mut table = Table::new(1, &[title, "", "share"]);
    for share in shares {
        table.add(vec![share.what.clone(), unit(share.time), percent(share.time, whole)]);
    }
    let _ = write!(out, "\n{}", table.lines(in_colour()));
}
