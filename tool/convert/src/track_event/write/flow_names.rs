//! The names of flows. Importers take the name and the category of a flow's events as a part of its id. FXT
//! knows the id alone, so all events of a flow get the name and category of the first one.
//!
//! An id that begins again after its end is a new flow. Importers do not know that end, so the new flow gets
//! another id.

use std::collections::{HashMap, hash_map::Entry};
use std::sync::Arc;

use crate::{FlowStep, Report};

#[derive(Debug, Default)]
pub(super) struct FlowNames {
    flows: HashMap<u64, NamedFlow>,
    /// The latest name and category, which most flows share.
    latest: (Arc<str>, Arc<str>),
}

#[derive(Debug)]
struct NamedFlow {
    id: u64,
    name: Arc<str>,
    category: Arc<str>,
    has_begun: bool,
    /// The time of the end that closed it.
    ended: Option<i64>,
}

/// The limit for flows; some 8 MB. Further flows get no names.
const MOST: usize = 1 << 16;

const NAMES: &str = "names and categories of flows";
const TWICE: &str = "flows that begin twice";
const UNORDERED: &str = "flows that begin before the end of an earlier flow with their id";
const OVER: &str = "flow points after the end of their flow";

impl FlowNames {
    /// Adds an event of a flow. Returns the id, the name and the category for it, or `None` if its flow is
    /// over.
    pub(super) fn point(
        &mut self,
        id: u64,
        (step, closes, time): (FlowStep, bool, i64),
        (name, category): (&str, &str),
        report: &mut Report,
    ) -> Option<(u64, Arc<str>, Arc<str>)> {
        let is_full = self.flows.len() >= MOST;
        let flow = match self.flows.entry(id) {
            Entry::Occupied(known) => known.into_mut(),
            // No flow is ever forgotten: its next event would have another name.
            Entry::Vacant(_) if is_full => {
                report.add_many(NAMES, u64::from(!name.is_empty() || !category.is_empty()));
                return Some((id, Arc::default(), Arc::default()));
            }
            Entry::Vacant(new) => {
                if (&*self.latest.0, &*self.latest.1) != (name, category) {
                    self.latest = (name.into(), category.into());
                }
                let (name, category) = self.latest.clone();
                new.insert(NamedFlow { id, name, category, has_begun: false, ended: None })
            }
        };
        match (step, flow.ended) {
            // Its end may come before it in the file.
            (FlowStep::Begin, _) if !flow.has_begun => flow.has_begun = true,
            (FlowStep::Begin, Some(ended)) => {
                report.add_many(UNORDERED, u64::from(time < ended));
                (flow.id, flow.ended) = (flow.id.wrapping_add(NEXT), None);
            }
            (FlowStep::Begin, None) => report.add(TWICE),
            (_, Some(ended)) if closes || time > ended => {
                report.add(OVER);
                return None;
            }
            _ => flow.ended = if closes { Some(time) } else { flow.ended },
        }
        report.add_many(NAMES, u64::from((&*flow.name, &*flow.category) != (name, category)));
        Some((flow.id, Arc::clone(&flow.name), Arc::clone(&flow.category)))
    }
}

/// From the id of a flow to that of the next flow with the same id in the input.
const NEXT: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_events_of_a_flow_have_the_name_of_the_first() {
        let (mut names, mut report) = (FlowNames::default(), Report::default());
        let mut name = |id, step, name| {
            let closes = step == FlowStep::End;
            let (id, name, _) = names.point(id, (step, closes, 0), (name, ""), &mut report).unwrap();
            (id, name.to_string())
        };
        assert_eq!(name(7, FlowStep::Begin, "a"), (7, "a".to_owned()));
        assert_eq!(name(7, FlowStep::End, "b"), (7, "a".to_owned()));
        let (next, of) = name(7, FlowStep::Begin, "a");
        assert!(next != 7 && of == "a");
        assert_eq!(report.iter().collect::<Vec<_>>(), [(NAMES, 1)]);
    }

    #[test]
    fn memory_is_bounded() {
        let (mut names, mut report) = (FlowNames::default(), Report::default());
        for id in 0..2 * MOST as u64 {
            names.point(id, (FlowStep::Begin, false, 0), ("a", ""), &mut report);
        }
        assert_eq!((names.flows.len(), report.iter().next()), (MOST, Some((NAMES, MOST as u64))));
    }
}
