//! The lists of what slices and threads did, for people. `who` did it.

use std::fmt::Write;

use crate::explain::shares::{Share, largest, percent};
use crate::explain::survey::Survey;
use crate::explain::target::{Band, total};
use crate::table::{Table, in_colour};
use crate::text::{duration, grouped_count};

/// The limit for the rows of each list.
pub(super) const ROWS: usize = 6;

/// The functions in which samples are.
pub(super) fn functions(out: &mut String, survey: &Survey, (of, who): (&Band, &str)) {
    let functions = largest(&of.on_cpu, |stack| survey.samples.leaf(*stack), ROWS);
    let samples = total(of.on_cpu.values().copied());
    list(out, &format!("functions on the CPU in {who}"), &functions, samples, |share| {
        grouped_count(share.unsigned_abs(), "sample")
    });
}

/// The stacks at which sleeps began.
pub(super) fn sleeps(out: &mut String, survey: &Survey, (of, who): (&Band, &str)) {
    let reversed = |stack: &_| {
        let mut names = survey.samples.names(*stack);
        names.reverse();
        names.truncate(4);
        names.join(" < ")
    };
    let stacks = largest(&of.off_cpu, reversed, ROWS);
    list(out, &format!("stacks in which {who} slept"), &stacks, of.split.asleep, duration);
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
