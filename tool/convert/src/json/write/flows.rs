//! Orders flow points by time.
//!
//! JSON distinguishes the first point of a flow (`s`) from the others (`t`, `f`), and importers report a `t`
//! that precedes its `s` in time. A slice that lists its flows does not say which point it is, and the
//! threads of a trace occur in any order. So points wait in this queue and are written in order of time. The
//! order is exact for traces with up to `WAITING` points.
//!
//! A point belongs to the slice that is open at its time. If another event on the thread has the same time,
//! the order in the file decides, so the point is written before that event.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use hairline_formats::trace_event_json::Phase;

use crate::{FlowStep, Report};

/// A flow point on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) time: i64,
    /// The order of arrival.
    pub(super) order: u64,
    pub(super) flow: u64,
    pub(super) role: Role,
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// The role of a point, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// The flow passes through or begins.
    Through,
    /// The flow passes through and ends.
    Ends,
    Begin,
    Step,
    /// The flow ends at the open slice.
    End,
    /// The flow arrives at the open slice, and stays.
    Arrival,
    /// The flow arrives at the next slice, and stays.
    ArrivalAtNext,
}

impl Role {
    /// The role of a flow event.
    pub(super) fn new(step: FlowStep, to_next: bool, lasts: bool) -> Self {
        match step {
            FlowStep::Begin => Self::Begin,
            FlowStep::Step => Self::Step,
            FlowStep::End if to_next => Self::ArrivalAtNext,
            FlowStep::End if lasts => Self::Arrival,
            FlowStep::End => Self::End,
        }
    }

    /// The role of an event that is bound to a flow.
    pub(super) fn bound(step: FlowStep) -> Self {
        Self::new(step, false, true)
    }

    fn is_end(self) -> bool {
        matches!(self, Self::Ends | Self::End)
    }

    fn is_arrival(self) -> bool {
        matches!(self, Self::Arrival | Self::ArrivalAtNext)
    }
}

#[derive(Debug, Default)]
pub(super) struct Flows {
    waiting: BinaryHeap<Reverse<Point>>,
    order: u64,
    /// The flows of threads, and those of intervals. Importers do not connect the two.
    threads: FlowIds,
    intervals: FlowIds,
    /// For flows whose begin did not come yet, the number of their points, by whether they are on threads. The
    /// begin may come later in the file, or on the other side.
    unbegun: HashMap<(bool, u64), u64>,
}

/// The limit for flows without a begin; some 2 MB.
const UNBEGUN: usize = 1 << 16;

const NO_BEGIN: &str = "flow points without a begin";
const LATE_BEGIN: &str = "flow points whose begin comes too late in the file";

/// The limit for waiting points; some 3 MB.
const WAITING: usize = 1 << 16;

impl Flows {
    /// Returns the next number for the order of arrival.
    pub(super) fn order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    pub(super) fn wait(&mut self, point: Point) {
        self.waiting.push(Reverse(point));
    }

    /// Returns the next point if it is before `time`, or if too many wait.
    pub(super) fn ready(&mut self, time: i64) -> Option<Point> {
        let Reverse(first) = self.waiting.peek()?;
        let is_ready = first.time < time || self.waiting.len() > WAITING;
        is_ready.then(|| self.waiting.pop())?.map(|Reverse(point)| point)
    }

    /// The phase of a point on a thread, and its flow's id in JSON. Returns `None` and counts the point if it
    /// belongs to no flow.
    pub(super) fn on_thread(&mut self, point: &Point, report: &mut Report) -> Option<(Phase, u64)> {
        self.step(true, point.flow, point.role, report)
    }

    /// As `on_thread`, for an interval.
    pub(super) fn of_interval(&mut self, flow: u64, role: Role, report: &mut Report) -> Option<(Phase, u64)> {
        self.step(false, flow, role, report)
    }

    fn step(&mut self, on_thread: bool, flow: u64, role: Role, report: &mut Report) -> Option<(Phase, u64)> {
        let (own, other) = match on_thread {
            true => (&mut self.threads, &self.intervals),
            false => (&mut self.intervals, &self.threads),
        };
        let crosses = other.knows(flow) && !own.knows(flow);
        report.add_many(CROSSING, crosses.into());
        match own.step(flow, role, report) {
            Step::Point(phase, number) => return Some((phase, number)),
            Step::Again => {}
            Step::NoBegin if crosses => {}
            Step::NoBegin
                if self.unbegun.len() < UNBEGUN || self.unbegun.contains_key(&(on_thread, flow)) =>
            {
                *self.unbegun.entry((on_thread, flow)).or_default() += 1;
            }
            Step::NoBegin => report.add(NO_BEGIN),
        }
        None
    }

    /// Counts the points that came before their flow's begin, when no more points follow.
    pub(super) fn finish(&mut self, report: &mut Report) {
        for ((on_thread, flow), count) in self.unbegun.drain() {
            let (own, other) = match on_thread {
                true => (&self.threads, &self.intervals),
                false => (&self.intervals, &self.threads),
            };
            let what = match (own.knows(flow), other.knows(flow)) {
                (true, _) => LATE_BEGIN,
                (false, true) => CROSSING,
                (false, false) => NO_BEGIN,
            };
            report.add_many(what, count);
        }
    }
}

const CROSSING: &str = "flows between threads and intervals, cut in two";

/// The ids of flows in JSON, from 1. An id is never reused, because importers do not forget a flow that
/// ended.
#[derive(Debug, Default)]
struct FlowIds {
    /// The recently used flows, and those before them, which are forgotten next.
    recent: HashMap<u64, Flow>,
    older: HashMap<u64, Flow>,
    last: u64,
}

/// What a point of a flow becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Point(Phase, u64),
    /// The begin of a flow that has begun.
    Again,
    /// A point of a flow that has not begun.
    NoBegin,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    number: u64,
    has_ended: bool,
}

/// The limit for each of the two maps; some 10 MB in total.
const REMEMBERED: usize = 1 << 17;

impl FlowIds {
    fn knows(&self, id: u64) -> bool {
        self.recent.contains_key(&id) || self.older.contains_key(&id)
    }

    fn step(&mut self, id: u64, role: Role, report: &mut Report) -> Step {
        let known = self.recent.get(&id).copied().or_else(|| self.older.remove(&id));
        let (phase, number) = match (role, known) {
            (_, Some(flow)) if role.is_arrival() => (Phase::FlowEnd, flow.number),
            (_, Some(Flow { has_ended: false, number })) if role.is_end() => (Phase::FlowEnd, number),
            (Role::Step | Role::Through, Some(Flow { has_ended: false, number })) => {
                (Phase::FlowStep, number)
            }
            (Role::Begin, Some(Flow { has_ended: false, number })) => {
                report.add("flows that begin twice");
                self.keep(id, Flow { has_ended: false, number });
                return Step::Again;
            }
            (Role::Begin | Role::Through, _) => {
                self.last += 1;
                (Phase::FlowStart, self.last)
            }
            _ => return Step::NoBegin,
        };
        self.keep(id, Flow { number, has_ended: role.is_end() });
        Step::Point(phase, number)
    }

    fn keep(&mut self, id: u64, flow: Flow) {
        if self.recent.len() >= REMEMBERED {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(id, flow);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(roles: &[Role]) -> Vec<Step> {
        let (mut numbers, mut report) = (FlowIds::default(), Report::default());
        roles.iter().map(|role| numbers.step(7, *role, &mut report)).collect()
    }

    #[test]
    fn the_first_point_begins_and_the_last_ends() {
        use Phase::{FlowEnd, FlowStart, FlowStep};
        let all = steps(&[Role::Through, Role::Through, Role::Ends, Role::Through]);
        let expected = [(FlowStart, 1), (FlowStep, 1), (FlowEnd, 1), (FlowStart, 2)];
        assert_eq!(all, expected.map(|(phase, number)| Step::Point(phase, number)));
    }

    #[test]
    fn what_did_not_begin_does_not_go_on() {
        assert_eq!(steps(&[Role::Step, Role::End, Role::Ends]), [Step::NoBegin; 3]);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut numbers, mut report) = (FlowIds::default(), Report::default());
        for id in 0..5 * REMEMBERED as u64 {
            numbers.step(id, Role::Through, &mut report);
        }
        assert!(numbers.recent.len() + numbers.older.len() <= 2 * REMEMBERED);
    }
}
