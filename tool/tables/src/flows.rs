//! The table `flow`: the arrows of flows, found when all their steps are known.
//!
//! A flow's steps are on different tracks, and a trace has one track after the other. So the steps are stored
//! (32 bytes each) and sorted by time. They are joined as trace_processor does: an arrow leads from the
//! flow's latest step to the next one. In TrackEvent, the first step begins the flow; in other formats a
//! begin does.

use std::collections::HashMap;
use std::io;

use hairline_convert::FlowStep;

use crate::rows::Rows;
use crate::schema::flow;
use crate::source::Sink;

/// The limit for steps: 64 MiB.
const MOST: usize = 1 << 21;

/// What happens to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Begin,
    /// Goes on, or begins if the flow is not open.
    Through,
    Step,
    End,
    /// An end after which the flow can go on.
    LastingEnd,
}

impl Change {
    /// The change of a flow's step; `lasts` as in [`hairline_convert::EventKind::Flow`].
    pub(crate) fn of(step: FlowStep, lasts: bool) -> Self {
        match step {
            FlowStep::Begin => Self::Begin,
            FlowStep::Step => Self::Step,
            FlowStep::End if lasts => Self::LastingEnd,
            FlowStep::End => Self::End,
        }
    }
}

/// A step of a flow at a slice or instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) flow: u64,
    pub(crate) time: i64,
    /// The number of the event. Steps of equal time are in its order.
    pub(crate) event: u32,
    /// The number of the slice or instant.
    pub(crate) at: u32,
    pub(crate) change: Change,
    /// Whether the category of the slice passes the filter.
    pub(crate) is_chosen: bool,
}

/// All steps.
#[derive(Debug, Default)]
pub(crate) struct Flows {
    steps: Vec<Step>,
    pub(crate) left_out: u64,
    /// Steps that have no slice, ends without a begin, begins of open flows.
    pub(crate) loose: u64,
}

impl Flows {
    pub(crate) fn add(&mut self, step: Step) {
        if self.steps.len() < MOST { self.steps.push(step) } else { self.left_out += 1 }
    }

    /// Makes the rows.
    pub(crate) fn finish(&mut self, rows: &mut Rows, sink: &mut dyn Sink) -> io::Result<()> {
        let mut steps = std::mem::take(&mut self.steps);
        steps.sort_unstable_by_key(|step| (step.time, step.event));
        let mut open: HashMap<u64, Step> = HashMap::new();
        for step in steps {
            let before = match step.change {
                Change::End => open.remove(&step.flow),
                Change::LastingEnd => open.get(&step.flow).copied(),
                Change::Begin if open.contains_key(&step.flow) => {
                    self.loose += 1;
                    continue;
                }
                Change::Step if !open.contains_key(&step.flow) => None,
                Change::Begin | Change::Through | Change::Step => open.insert(step.flow, step),
            };
            let begins = matches!(step.change, Change::Begin | Change::Through);
            match before {
                Some(before) => put(&before, &step, rows, sink)?,
                None => self.loose += u64::from(!begins),
            }
        }
        Ok(())
    }
}

fn put(from: &Step, to: &Step, rows: &mut Rows, sink: &mut dyn Sink) -> io::Result<()> {
    if !from.is_chosen && !to.is_chosen {
        return Ok(());
    }
    rows.int(flow::time, to.time);
    rows.int(flow::time_out, from.time);
    rows.int(flow::slice_out, i64::from(from.at));
    rows.int(flow::slice_in, i64::from(to.at));
    rows.int(flow::flow, from.flow.cast_signed());
    rows.end_row(sink)
}
