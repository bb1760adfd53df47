//! Flows that are told of in two ways, which importers do not connect: by steps that stand for themselves, and by the number that an event
//! has.

use std::collections::HashSet;

use crate::model::FlowStep;

/// What goes on in either way.
#[derive(Debug, Default)]
pub(super) struct Flows {
    by_steps: HashSet<u64>,
    by_events: HashSet<u64>,
}

/// Flows that are remembered; some 2 MB.
const MOST: usize = 1 << 16;

impl Flows {
    /// Whether this step is the first to show that its flow is cut.
    pub(super) fn step(&mut self, id: u64, step: FlowStep) -> bool {
        let is_cut = self.by_events.remove(&id);
        match step {
            FlowStep::End => drop(self.by_steps.remove(&id)),
            _ if self.by_steps.len() < MOST => drop(self.by_steps.insert(id)),
            _ => {}
        }
        is_cut
    }

    /// The same of flows through an event; how many of them.
    pub(super) fn through(&mut self, ids: &[u64]) -> u64 {
        let mut cut = 0;
        for id in ids {
            cut += u64::from(self.by_steps.remove(id));
            if self.by_events.len() < MOST {
                self.by_events.insert(*id);
            }
        }
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_in_both_ways_is_cut() {
        let mut flows = Flows::default();
        assert!(!flows.step(1, FlowStep::Begin));
        assert_eq!(flows.through(&[1, 2]), 1);
        assert!(flows.step(2, FlowStep::End));
    }

    #[test]
    fn memory_is_bounded() {
        let mut flows = Flows::default();
        for id in 0..3 * MOST as u64 {
            flows.step(2 * id, FlowStep::Begin);
            flows.through(&[2 * id + 1]);
        }
        assert!(flows.by_steps.len() <= MOST && flows.by_events.len() <= MOST);
    }
}
