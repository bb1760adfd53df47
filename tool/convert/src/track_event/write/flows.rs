//! Finds flows that importers cut in two. Importers do not connect the flow events of a thread with the flow
//! ids of other events.

use std::collections::HashSet;

/// The flows in each of the two forms.
#[derive(Debug, Default)]
pub(super) struct Flows {
    by_steps: HashSet<u64>,
    by_events: HashSet<u64>,
}

/// The limit for each set; some 2 MB.
const MOST: usize = 1 << 16;

impl Flows {
    /// Adds a flow event, which may close its flow. Returns whether it is the first that shows a cut flow.
    pub(super) fn step(&mut self, id: u64, closes: bool) -> bool {
        let is_cut = self.by_events.remove(&id);
        if closes {
            self.by_steps.remove(&id);
        } else if self.by_steps.len() < MOST {
            self.by_steps.insert(id);
        }
        is_cut
    }

    /// Adds the flow ids of an event. Returns the number of newly cut flows.
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
        assert!(!flows.step(1, false));
        assert_eq!(flows.through(&[1, 2]), 1);
        assert!(flows.step(2, true));
    }

    #[test]
    fn memory_is_bounded() {
        let mut flows = Flows::default();
        for id in 0..3 * MOST as u64 {
            flows.step(2 * id, false);
            flows.through(&[2 * id + 1]);
        }
        assert!(flows.by_steps.len() <= MOST && flows.by_events.len() <= MOST);
    }
}
