//! Which point of a flow is its first.
//!
//! JSON says it of each point: s is the first, t those between, f the last; an importer that comes upon a t before its s, in time, complains.
//! A slice that lists its flows does not say it, and threads stand in a trace in any order. So points wait here, to be written in the order
//! of their times: any number of them for a trace of as many, up to a limit.
//!
//! A point belongs to the slice that is open at its time, which is a question of the order in the file where something else
//! happens on the thread at the same time. It then does not wait any longer.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use hairline_formats::trace_event_json::Phase;

use crate::model::FlowStep;
use crate::report::Report;

/// A point of a flow, on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    pub(super) time: i64,
    /// In the order in which they came.
    pub(super) order: u64,
    pub(super) flow: u64,
    pub(super) role: Role,
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// What is known of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// The flow goes through, or begins.
    Through,
    /// It goes through, and ends.
    Ends,
    Begin,
    Step,
    /// It ends at the slice that is open.
    End,
    /// It ends at the next slice.
    EndAtNext,
}

impl Role {
    pub(super) fn new(step: FlowStep, to_next: bool) -> Self {
        match (step, to_next) {
            (FlowStep::Begin, _) => Self::Begin,
            (FlowStep::Step, _) => Self::Step,
            (FlowStep::End, false) => Self::End,
            (FlowStep::End, true) => Self::EndAtNext,
        }
    }

    fn is_end(self) -> bool {
        matches!(self, Self::Ends | Self::End | Self::EndAtNext)
    }
}

#[derive(Debug, Default)]
pub(super) struct Flows {
    waiting: BinaryHeap<Reverse<Point>>,
    order: u64,
    /// Those on threads, and those of intervals, which importers do not connect with each other.
    threads: FlowIds,
    intervals: FlowIds,
}

/// Points that wait; some 3 MB.
const WAITING: usize = 1 << 16;

impl Flows {
    /// The next in the order in which points come.
    pub(super) fn order(&mut self) -> u64 {
        self.order += 1;
        self.order
    }

    pub(super) fn wait(&mut self, point: Point) {
        self.waiting.push(Reverse(point));
    }

    /// The next point that does not wait any longer: none must, once the trace is at its end.
    pub(super) fn ready(&mut self, at_end: bool) -> Option<Point> {
        let most = if at_end { 0 } else { WAITING };
        (self.waiting.len() > most).then(|| self.waiting.pop())?.map(|Reverse(point)| point)
    }

    /// What a point on a thread is, and its flow's number in JSON. None, which is counted, if it is of no flow.
    pub(super) fn on_thread(&mut self, point: &Point, report: &mut Report) -> Option<(Phase, u64)> {
        let crosses = self.intervals.knows(point.flow) && !self.threads.knows(point.flow);
        report.add_many(CROSSING, crosses.into());
        self.threads.step(point.flow, point.role, report)
    }

    /// The same for an interval, which writes it down itself.
    pub(super) fn of_interval(&mut self, flow: u64, role: Role, report: &mut Report) -> Option<(Phase, u64)> {
        let crosses = self.threads.knows(flow) && !self.intervals.knows(flow);
        report.add_many(CROSSING, crosses.into());
        self.intervals.step(flow, role, report)
    }
}

const CROSSING: &str = "flows between threads and intervals, cut in two";

/// FlowIds of flows: each has its own, from 1, since importers do not forget one that has ended.
#[derive(Debug, Default)]
struct FlowIds {
    /// Those that were seen lately, and those before them, which are forgotten next.
    recent: HashMap<u64, Flow>,
    older: HashMap<u64, Flow>,
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    number: u64,
    has_ended: bool,
}

/// Flows in either half of what is remembered; some 10 MB.
const REMEMBERED: usize = 1 << 17;

impl FlowIds {
    fn knows(&self, id: u64) -> bool {
        self.recent.contains_key(&id) || self.older.contains_key(&id)
    }

    fn step(&mut self, id: u64, role: Role, report: &mut Report) -> Option<(Phase, u64)> {
        let known = self.recent.get(&id).copied().or_else(|| self.older.remove(&id));
        let (phase, number) = match (role, known) {
            // One that ends several times goes to several slices.
            (_, Some(flow)) if role.is_end() => (Phase::FlowEnd, flow.number),
            (Role::Step | Role::Through, Some(Flow { has_ended: false, number })) => {
                (Phase::FlowStep, number)
            }
            (Role::Begin, Some(Flow { has_ended: false, number })) => {
                report.add("flows that begin twice");
                self.keep(id, Flow { has_ended: false, number });
                return None;
            }
            (Role::Begin | Role::Through, _) => {
                self.last += 1;
                (Phase::FlowStart, self.last)
            }
            _ => {
                report.add("points of flows that did not begin");
                return None;
            }
        };
        self.keep(id, Flow { number, has_ended: phase == Phase::FlowEnd });
        Some((phase, number))
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

    fn steps(roles: &[Role]) -> Vec<Option<(Phase, u64)>> {
        let (mut numbers, mut report) = (FlowIds::default(), Report::default());
        roles.iter().map(|role| numbers.step(7, *role, &mut report)).collect()
    }

    #[test]
    fn the_first_point_begins_and_the_last_ends() {
        use Phase::{FlowEnd, FlowStart, FlowStep};
        let all = steps(&[Role::Through, Role::Through, Role::Ends, Role::Through]);
        assert_eq!(all, [(FlowStart, 1), (FlowStep, 1), (FlowEnd, 1), (FlowStart, 2)].map(Some));
    }

    #[test]
    fn what_did_not_begin_does_not_go_on() {
        assert_eq!(steps(&[Role::Step, Role::End, Role::Ends]), [None, None, None]);
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
