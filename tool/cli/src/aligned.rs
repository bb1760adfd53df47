//! The clocks of several traces, and one clock for all of them.
//!
//! Traces of one machine since its last boot have one clock. Those of two machines, boots or time namespaces
//! have clocks that say nothing of each other; but most traces also have a reading of the clock of the day at
//! some moment of their own clock. The difference of both is the moment at which a trace's clock was 0.

use std::path::PathBuf;

use hairline_convert::{
    BriefUse, Context, Event, Item, Loss, MOST_BRIEF, Report, Sample, Scheduling, StateChange, Trace,
};
use hairline_formats::track_event::fields::clock;

use crate::input::Input;
use crate::opening::Opening;
use crate::text::{complain, duration};

/// The readings of two traces of one boot differ by some microseconds; they differ by more if the clock of
/// the day was set in between.
const SAME: u64 = 50_000_000;
/// Times of 2001 and later, in nanoseconds since 1970. No machine has been up for that long.
const SINCE_1970: i64 = 1_000_000_000_000_000_000;
/// Traces without readings that begin so far from each other are hardly on one clock.
const FAR: i64 = 30 * 86_400_000_000_000;
const COPIED: &str = "records in the format of the input, left out because its times are moved";
/// So many items are read to find a reading.
const MOST_ITEMS: usize = 1 << 16;

/// What the beginning of a trace says of its clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Start {
    /// The time of the first event.
    first: Option<i64>,
    /// The time since 1970 at which the trace's clock was 0.
    zero: Option<i64>,
}

impl Start {
    fn of_file(path: &PathBuf, opening: Opening) -> Option<Self> {
        let mut reader = Input::open(path, opening).ok()?.trace().ok()?;
        let (mut start, mut context) = (Self::default(), Context::new());
        let mut briefs = Vec::with_capacity(MOST_BRIEF);
        let mut items = 0;
        while items < MOST_ITEMS {
            reader.briefs(BriefUse::Counting, &mut context, &mut briefs);
            items += briefs.len() + 1;
            start.first = start.first.or(briefs.first().map(|brief| brief.time));
            match reader.next(&mut context) {
                Ok(Some(Item::Event(event))) => drop(start.first.get_or_insert(event.time)),
                Ok(Some(Item::Trace(trace))) => start.zero = start.zero.or(zero(&trace)),
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break,
            }
            if start.first.is_some() && start.zero.is_some() {
                break;
            }
        }
        if start.zero.is_none() && start.first.is_some_and(|first| first > SINCE_1970) {
            start.zero = Some(0); // its clock is the clock of the day
        }
        Some(start)
    }
}

/// The time since 1970 at which a trace's clock was 0, if it has readings of both clocks.
pub(crate) fn zero(trace: &Trace<'_>) -> Option<i64> {
    let own = trace.clocks.first()?;
    let day = trace.clocks.iter().find(|reading| reading.id == clock::REALTIME)?;
    i64::try_from(i128::from(day.time) - i128::from(own.time)).ok()
}

/// Returns how far the times of each trace are to be moved, so that all have one clock. Says so.
///
/// # Errors
/// Fails if traces cannot have one clock, and no reading relates theirs.
pub(crate) fn moves(inputs: &[PathBuf], opening: Opening) -> Result<Vec<i64>, String> {
    let is_file = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|about| about.is_file());
    let starts: Vec<Start> = inputs
        .iter()
        .map(|path| is_file(path).then(|| Start::of_file(path, opening)).flatten().unwrap_or_default())
        .collect();
    for (path, start) in inputs.iter().zip(&starts) {
        let far = starts.iter().zip(inputs).find(|(other, _)| are_far(start, other));
        if let Some((_, other)) = far {
            return Err(format!(
                "{}: it has no reading of the clock of the day, and its times are more than 30 days from \
                 those of {}: they are on other clocks (--as-is merges them as they are)",
                path.display(),
                other.display()
            ));
        }
    }
    let Some(reference) = reference(&starts) else { return Ok(vec![0; inputs.len()]) };
    let (name, zero) = (inputs[reference].display(), starts[reference].zero.unwrap_or_default());
    let of = |start: &Start| start.zero.map_or(0, |own| own.saturating_sub(zero));
    let moves: Vec<i64> =
        starts.iter().map(of).map(|by| if by.unsigned_abs() <= SAME { 0 } else { by }).collect();
    for (path, by) in inputs.iter().zip(&moves).filter(|(_, by)| **by != 0) {
        complain(format_args!(
            "{}: its clock is {} {} that of {name}, so it is of another machine, boot or container, or the \
             clock of the day was set: its times are moved, and are as exact as both clocks of the day \
             (--as-is keeps them)",
            path.display(),
            duration(by.saturating_abs()),
            if *by > 0 { "behind" } else { "ahead of" },
        ));
    }
    let is_moved = moves.iter().any(|by| *by != 0);
    for (path, _) in inputs.iter().zip(&starts).filter(|(_, start)| is_moved && start.zero.is_none()) {
        complain(format_args!(
            "{}: it has no reading of the clock of the day, so its times are kept, as if its clock were that \
             of {name}",
            path.display()
        ));
    }
    Ok(moves)
}

/// Whether two traces cannot have one clock, and no readings relate theirs.
fn are_far(one: &Start, other: &Start) -> bool {
    let (Some(first), Some(of_other), None) = (one.first, other.first, one.zero) else { return false };
    first.saturating_sub(of_other).saturating_abs() > FAR
}

/// The trace whose clock all have: the first one with a reading, if no first event is before its 0; otherwise
/// the one whose clock is the furthest ahead.
fn reference(starts: &[Start]) -> Option<usize> {
    let with_zero =
        || starts.iter().enumerate().filter_map(|(at, start)| Some((at, start.zero?, start.first)));
    let (first, zero, _) = with_zero().next()?;
    let is_before = |(_, own, time): (usize, i64, Option<i64>)| {
        time.is_some_and(|time| time.saturating_add(own.saturating_sub(zero)) < 0)
    };
    if with_zero().any(is_before) {
        with_zero().min_by_key(|(_, zero, _)| *zero).map(|(at, ..)| at)
    } else {
        Some(first)
    }
}

/// Passes an item on with its times moved. Data in the format of the input has the times of the input, so it
/// is left out and counted.
pub(crate) fn moved<T>(
    item: &Item<'_>,
    by: i64,
    report: &mut Report,
    pass: impl FnOnce(&Item<'_>) -> T,
) -> Option<T> {
    let at = |time: i64| time.saturating_add(by);
    let (changes, clocks);
    let moved = match *item {
        Item::Event(event) => Item::Event(Event { time: at(event.time), ..event }),
        Item::Loss(loss) => Item::Loss(Loss { time: loss.time.map(at), ..loss }),
        Item::Sample(sample) => Item::Sample(Sample { time: at(sample.time), copy: None, ..sample }),
        Item::Scheduling(Scheduling { changes: own, others, .. }) => {
            changes = own
                .iter()
                .map(|change| StateChange { time: at(change.time), ..change.clone() })
                .collect::<Vec<_>>();
            Item::Scheduling(Scheduling { changes: &changes, copy: None, others })
        }
        Item::Trace(trace) => {
            // The other clocks are those of another machine.
            let mut readings = trace.clocks.to_vec();
            readings.retain(|reading| reading.id == clock::REALTIME || reading.id == trace.clocks[0].id);
            if let Some(own) = readings.iter_mut().find(|reading| reading.id != clock::REALTIME) {
                own.time = own.time.saturating_add_signed(by);
            }
            clocks = readings;
            Item::Trace(Trace { clocks: &clocks, ..trace })
        }
        Item::Copied(_) => {
            report.add(COPIED);
            return None;
        }
        Item::Foreign { what, .. } => {
            report.add(what);
            return None;
        }
        _ => return Some(pass(item)),
    };
    Some(pass(&moved))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    fn start(first: i64, zero: Option<i64>) -> Start {
        Start { first: Some(first), zero }
    }

    #[test]
    fn the_clock_of_all_is_one_on_which_no_trace_begins_before_0() {
        let (old, new) = (start(30 * DAY, Some(SINCE_1970)), start(7_200, Some(SINCE_1970 + 30 * DAY)));
        assert_eq!(reference(&[old, new]), Some(0));
        assert_eq!(reference(&[new, old]), Some(0), "both began within the hour");
        let before = start(5, Some(SINCE_1970));
        assert_eq!(reference(&[new, before]), Some(1));
        assert_eq!(reference(&[start(5, None)]), None);
    }

    #[test]
    fn a_trace_without_readings_is_not_moved_but_may_be_too_far() {
        let boot = start(7_200, None);
        assert!(are_far(&boot, &start(SINCE_1970 + 1, Some(0))));
        assert!(!are_far(&boot, &start(DAY, None)) && !are_far(&start(DAY, Some(5)), &boot));
    }
}
