//! Flows that arrive at several slices. An FXT flow is over at its first end, so each further arrow becomes a
//! flow with an id of its own, which begins at the same slice. Importers sort records by time, so that begin
//! can come late in the file. At equal times the order in the file counts: the begin belongs to the slice
//! that is open after all events of its time.

use std::collections::HashMap;

use crate::fxt::write::tracks::mix;
use crate::{FlowStep, TrackId};

/// The thread and the time of a flow's point.
type Place = (TrackId, i64);

/// The limit for flows, some 120 bytes each.
const MOST: usize = 1 << 16;

/// The limit for arrows of one flow whose begin is not known yet.
const MOST_WAITING: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Branches {
    flows: HashMap<u64, Branch>,
    /// Begins and steps, and whether another slice of their thread began or ended at the same time.
    sources: HashMap<Place, bool>,
}

#[derive(Debug)]
struct Branch {
    /// The latest begin or step, and the id that leads away from it.
    source: Option<Place>,
    id: u64,
    /// Whether a record ended the flow with that id.
    is_over: bool,
    /// The number of ids of its own.
    ids: u64,
    /// The time of the latest point.
    latest: i64,
    /// Whether a step came, so that the source of an arrow depends on the order.
    has_steps: bool,
    /// Further ids that wait for the begin.
    waiting: Vec<u64>,
}

/// A point of a flow.
#[derive(Debug, Default)]
pub(super) struct Point {
    /// The id in its record.
    pub(super) id: u64,
    /// Begins to write before it.
    pub(super) begins: Vec<(Place, u64)>,
    /// Why an arrow may be different.
    pub(super) doubt: Option<&'static str>,
}

const UNORDERED: &str = "points of flows with several ends that are not in the order of time";
const HIDDEN: &str = "further ends of flows whose begin is not the last event of its time";
const TOO_MANY: &str = "points of too many flows, which may miss an arrow";

impl Branches {
    /// Records an event that begins or ends a slice of a thread.
    #[inline]
    pub(super) fn event(&mut self, track: TrackId, time: i64) {
        if !self.sources.is_empty() {
            self.hide((track, time));
        }
    }

    fn hide(&mut self, place: Place) {
        if let Some(is_hidden) = self.sources.get_mut(&place) {
            *is_hidden = true;
        }
    }

    /// Adds a point of a flow.
    pub(super) fn point(&mut self, flow: u64, step: FlowStep, at: Place) -> Point {
        let mut point = Point { id: flow, ..Point::default() };
        if self.flows.len() >= MOST && !self.flows.contains_key(&flow) {
            self.flows.retain(|_, branch| !branch.is_over);
            if self.flows.len() > MOST / 2 {
                self.flows.clear();
                point.doubt = Some(TOO_MANY);
            }
        }
        let branch = self.flows.entry(flow).or_insert_with(|| Branch::new(flow, at.1));
        let is_late = at.1 < branch.latest;
        branch.latest = branch.latest.max(at.1);
        if is_late && (branch.has_steps || step == FlowStep::Step) && branch.is_over {
            point.doubt = Some(UNORDERED);
        }
        match step {
            FlowStep::Begin => branch.begin(at, is_late, &mut point),
            FlowStep::Step => {
                branch.leave(&self.sources, &mut point);
                (branch.has_steps, branch.source) = (true, Some(at));
            }
            FlowStep::Arrival | FlowStep::End => {
                branch.leave(&self.sources, &mut point);
                branch.is_over = true;
            }
        }
        if matches!(step, FlowStep::Begin | FlowStep::Step) {
            if self.sources.len() >= 2 * MOST {
                self.sources.clear();
            }
            self.sources.insert(at, false);
        }
        if step == FlowStep::End {
            self.flows.remove(&flow);
        }
        point
    }
}

impl Branch {
    fn new(id: u64, latest: i64) -> Self {
        let (source, is_over, ids, has_steps, waiting) = (None, false, 0, false, Vec::new());
        Self { source, id, is_over, ids, latest, has_steps, waiting }
    }

    fn begin(&mut self, at: Place, is_late: bool, point: &mut Point) {
        if self.source.is_none() && is_late {
            // The flow's ends precede it in the file.
            point.begins.extend(self.waiting.drain(..).map(|id| (at, id)));
        } else {
            self.is_over = false;
            point.id = self.id;
        }
        self.source = Some(at);
    }

    /// Before an arrow: gives it an id if the last one is over.
    fn leave(&mut self, sources: &HashMap<Place, bool>, point: &mut Point) {
        point.id = self.id;
        if !self.is_over {
            return;
        }
        self.ids += 1;
        self.id = mix(self.id ^ mix(self.ids));
        point.id = self.id;
        self.is_over = false;
        match self.source {
            Some(source) => {
                point.begins.push((source, self.id));
                if sources.get(&source).is_none_or(|is_hidden| *is_hidden) {
                    point.doubt = Some(HIDDEN);
                }
            }
            None if self.waiting.len() < MOST_WAITING => self.waiting.push(self.id),
            None => point.doubt = Some(TOO_MANY),
        }
    }
}
