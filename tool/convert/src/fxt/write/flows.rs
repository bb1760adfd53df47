//! The role of an event in a flow. FXT flows have a begin, and importers ignore points before it in time. The
//! threads of a trace occur in any order, so a later record may be the earliest point. It then becomes the
//! begin, and the former begin becomes a step: [`Output`](crate::fxt::write::output::Output) holds the latest
//! records back for this change.

use std::collections::HashMap;

use hairline_formats::fxt::EventKind;

/// The limit for flows, some 60 bytes each.
const MAX_KNOWN: usize = 1 << 17;

#[derive(Debug, Default)]
pub(super) struct Flows {
    known: HashMap<u64, KnownFlow>,
}

#[derive(Debug)]
struct KnownFlow {
    /// The earliest time, and the position of the begin's record, if it has one.
    first: i64,
    at: Option<u64>,
    ended: Option<i64>,
}

/// The role of a record in a flow.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) kind: EventKind,
    /// The position of the former begin, which becomes a step.
    pub(super) no_begin: Option<u64>,
}

impl Flows {
    /// Adds an event at `time` to a flow. `ends`: the flow ends at it. `at`: the position of its record, if
    /// it is an FXT record.
    pub(super) fn point(&mut self, id: u64, time: i64, ends: bool, at: Option<u64>) -> Point {
        if self.known.len() >= MAX_KNOWN && !self.known.contains_key(&id) {
            self.known.retain(|_, flow| flow.ended.is_none());
            // With more flows left, the next cleanup would follow soon.
            if self.known.len() > MAX_KNOWN / 2 {
                self.known.clear();
            }
        }
        let point = |kind| Point { kind, no_begin: None };
        let flow = self.known.entry(id).or_insert(KnownFlow { first: i64::MAX, at: None, ended: None });
        if ends {
            flow.ended = flow.ended.max(Some(time));
            point(EventKind::FlowEnd)
        } else if time < flow.first {
            flow.first = time;
            Point { kind: EventKind::FlowBegin, no_begin: std::mem::replace(&mut flow.at, at) }
        } else if flow.ended.is_some_and(|ended| ended < time) {
            *flow = KnownFlow { first: time, at, ended: None }; // the id is used for a new flow
            point(EventKind::FlowBegin)
        } else {
            point(EventKind::FlowStep)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(flows: &mut Flows, time: i64, ends: bool, at: u64) -> (EventKind, Option<u64>) {
        let point = flows.point(1, time, ends, Some(at));
        (point.kind, point.no_begin)
    }

    #[test]
    fn the_earliest_is_the_begin_in_whatever_order_they_come() {
        let mut flows = Flows::default();
        assert_eq!(kind(&mut flows, 30, false, 300), (EventKind::FlowBegin, None));
        assert_eq!(kind(&mut flows, 50, true, 500), (EventKind::FlowEnd, None));
        assert_eq!(kind(&mut flows, 20, false, 600), (EventKind::FlowBegin, Some(300)));
        assert_eq!(kind(&mut flows, 25, false, 700), (EventKind::FlowStep, None));
        assert_eq!(kind(&mut flows, 60, false, 800), (EventKind::FlowBegin, None), "a new one");
    }

    #[test]
    fn memory_is_bounded() {
        let mut flows = Flows::default();
        for id in 0..2 * MAX_KNOWN as u64 {
            flows.point(id, 1, false, None);
        }
        assert!(flows.known.len() <= MAX_KNOWN);
    }
}
