//! A row of an event, and the floors of events: the clock reads that they need.

use crate::machine::clock_read;
use crate::row::{Budget, Row};
use crate::timing::{Effort, beside};

/// Measures an event in turn with its floor.
pub(crate) fn row(
    name: &str,
    effort: Effort,
    budget: f64,
    kind: Budget,
    floor: impl FnMut(u32),
    subject: impl FnMut(u32),
) -> Row {
    let (floors, subjects) = beside(effort, floor, subject);
    Row::sampled(name, "ns", &subjects, kind, budget).beside(&floors)
}

pub(crate) fn nothing(_: u32) {}

pub(crate) fn one_read(_: u32) {
    clock_read();
}

pub(crate) fn two_reads(_: u32) {
    clock_read();
    clock_read();
}
