//! Flows that last: their ends do not close them, as in JSON. Importers follow the points of such a flow in
//! order of time. An arrow leads to each point from the latest begin or step, and a point before the begin
//! has none. An FXT flow is over at its first end, so each further arrow becomes a flow with an id of its
//! own, which begins at the same slice.
//!
//! Traces have their threads in any order, so points wait here and are written in order of time. Importers
//! sort the records, so a record can come late in the file. Only at equal times the order in the file counts:
//! a point belongs to the slice that is open after the records of its time before it. So the points at the
//! time of a thread's next event are written before that event.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use crate::fxt::write::tracks::mix;
use crate::{FlowStep, StringId, Text, TrackId};

/// The thread and the time of a point.
type Place = (TrackId, i64);

/// The limits for waiting points and for flows, some 120 bytes each.
const MOST_WAITING: usize = 1 << 16;
const MOST_FLOWS: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct LastingFlows {
    /// The points of each thread at the time of the latest one.
    latest: HashMap<TrackId, Vec<Point>>,
    waiting: BinaryHeap<Reverse<Point>>,
    order: u64,
    flows: HashMap<u64, Flow>,
    /// For each place with points, the number of points when the latest event with its thread and time came.
    places: HashMap<Place, u64>,
    label: Arc<Label>,
}

/// A point of a flow.
#[derive(Debug)]
pub(super) struct Point {
    pub(super) at: Place,
    order: u64,
    flow: u64,
    step: FlowStep,
    pub(super) label: Arc<Label>,
}

/// The name and the category of a point, which most points share.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Label {
    name: (String, Option<StringId>),
    category: (String, Option<StringId>),
}

#[derive(Debug)]
struct Flow {
    /// The latest begin or step with its number, and the id that leads away from it.
    source: (Place, u64),
    id: u64,
    /// Whether an end closed the flow with that id.
    is_over: bool,
    /// The number of ids of its own.
    ids: u64,
}

/// What to write for a point.
#[derive(Debug, PartialEq)]
pub(super) struct Arrow {
    pub(super) id: u64,
    /// The place of a further begin with that id.
    pub(super) begin: Option<Place>,
    /// Why the arrow may be different.
    pub(super) doubt: Option<&'static str>,
}

const HIDDEN: &str = "points of flows that precede another event of their thread and time";
const NO_BEGIN: &str = "flow points without a begin";
const TOO_MANY: &str = "points of too many flows, which may miss an arrow";

impl LastingFlows {
    /// Whether a later event can have the time of a point.
    #[inline]
    pub(super) fn has_points(&self) -> bool {
        !self.places.is_empty()
    }

    /// Adds a point.
    pub(super) fn add(
        &mut self,
        at: Place,
        (flow, step): (u64, FlowStep),
        name: Text<'_>,
        category: Text<'_>,
    ) {
        if !self.label.is(name, category) {
            self.label = Arc::new(Label::new(name, category));
        }
        if self.places.len() >= 2 * MOST_FLOWS {
            self.places.clear();
        }
        self.places.entry(at).or_default();
        self.order += 1;
        let point = Point { at, order: self.order, flow, step, label: Arc::clone(&self.label) };
        let latest = self.latest.entry(at.0).or_default();
        if latest.last().is_some_and(|last| last.at.1 != at.1) {
            self.waiting.extend(latest.drain(..).map(Reverse));
        }
        latest.push(point);
    }

    /// Records an event that may change the open slice of a thread. Returns the points to write before it.
    pub(super) fn event(&mut self, at: Place) -> Vec<Point> {
        if let Some(latest) = self.places.get_mut(&at) {
            *latest = self.order;
        }
        let points = self.latest.remove(&at.0).unwrap_or_default();
        if points.first().is_some_and(|point| point.at == at) {
            return points;
        }
        self.waiting.extend(points.into_iter().map(Reverse));
        Vec::new()
    }

    /// The next point to write: one before `time`, or any if too many wait.
    pub(super) fn next(&mut self, time: i64) -> Option<Point> {
        let first = self.waiting.peek()?;
        let is_due = first.0.at.1 < time || self.waiting.len() > MOST_WAITING;
        is_due.then(|| self.waiting.pop())?.map(|Reverse(point)| point)
    }

    /// Ends the trace: no point waits for an event any longer.
    pub(super) fn finish(&mut self) {
        for (_, points) in self.latest.drain() {
            self.waiting.extend(points.into_iter().map(Reverse));
        }
    }

    /// What to write for a point, in the order of time. `is_in_place`: the record precedes the thread's next
    /// event. The error says why there is nothing to write.
    pub(super) fn arrow(&mut self, point: &Point, is_in_place: bool) -> Result<Arrow, Option<&'static str>> {
        // Whether an event of the same thread and time came after the point.
        let hidden =
            |places: &HashMap<Place, u64>, (at, order)| places.get(&at).is_none_or(|latest| *latest >= order);
        let mut doubt = (!is_in_place && hidden(&self.places, (point.at, point.order))).then_some(HIDDEN);
        let Some(flow) = self.flows.get_mut(&point.flow) else {
            if point.step != FlowStep::Begin {
                return Err(Some(NO_BEGIN));
            }
            if self.flows.len() >= MOST_FLOWS {
                self.flows.clear();
                doubt = Some(TOO_MANY);
            }
            let flow = Flow { source: (point.at, point.order), id: point.flow, is_over: false, ids: 0 };
            self.flows.insert(point.flow, flow);
            return Ok(Arrow { id: point.flow, begin: None, doubt });
        };
        if point.step == FlowStep::Begin {
            return Err(None); // readers count it
        }
        let mut begin = None;
        if flow.is_over {
            flow.ids += 1;
            flow.id = mix(point.flow ^ mix(flow.ids));
            begin = Some(flow.source.0);
            if hidden(&self.places, flow.source) {
                doubt = Some(HIDDEN);
            }
        }
        flow.is_over = point.step == FlowStep::End;
        if point.step == FlowStep::Step {
            flow.source = (point.at, point.order);
        }
        Ok(Arrow { id: flow.id, begin, doubt })
    }
}

impl Point {
    pub(super) fn step(&self) -> FlowStep {
        self.step
    }
}

impl Label {
    fn new(name: Text<'_>, category: Text<'_>) -> Self {
        Self { name: (name.text.to_owned(), name.id), category: (category.text.to_owned(), category.id) }
    }

    fn is(&self, name: Text<'_>, category: Text<'_>) -> bool {
        (self.name(), self.category()) == (name, category)
    }

    pub(super) fn name(&self) -> Text<'_> {
        Text { text: &self.name.0, id: self.name.1 }
    }

    pub(super) fn category(&self) -> Text<'_> {
        Text { text: &self.category.0, id: self.category.1 }
    }
}

impl Ord for Point {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at.1, self.order).cmp(&(other.at.1, other.order))
    }
}

impl PartialOrd for Point {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Point {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Point {}

#[cfg(test)]
mod tests {
    use super::*;
    use FlowStep::{Begin, End, Step};

    /// The arrows of flow 7, in order of time.
    fn arrows(points: &[(i64, FlowStep)]) -> Vec<Result<Arrow, Option<&'static str>>> {
        let mut flows = LastingFlows::default();
        for (time, step) in points {
            flows.add((TrackId(0), *time), (7, *step), Text::default(), Text::default());
        }
        flows.finish();
        std::iter::from_fn(|| flows.next(i64::MAX).map(|point| flows.arrow(&point, false))).collect()
    }

    #[test]
    fn each_further_arrow_has_an_id_of_its_own() {
        let all = arrows(&[(1, Begin), (2, End), (3, End)]);
        let [Ok(begin), Ok(first), Ok(second)] = &all[..] else { panic!("{all:?}") };
        assert_eq!((begin.id, first.id, first.begin), (7, 7, None));
        assert!(second.id != 7 && second.begin == Some((TrackId(0), 1)), "{second:?}");
    }

    #[test]
    fn points_have_the_order_of_time() {
        let all = arrows(&[(3, End), (2, Step), (1, Begin)]);
        assert!(all.iter().flatten().all(|arrow| arrow.id == 7 && arrow.begin.is_none()), "{all:?}");
        assert_eq!(all.len(), 3);
        assert_eq!(arrows(&[(2, Begin), (1, End)])[0], Err(Some(NO_BEGIN)));
    }

    #[test]
    fn points_at_the_time_of_a_later_event_precede_it() {
        let mut flows = LastingFlows::default();
        let at = |time| (TrackId(0), time);
        flows.add(at(5), (7, Begin), Text::default(), Text::default());
        assert_eq!(flows.event(at(5)).len(), 1);
        flows.add(at(6), (7, End), Text::default(), Text::default());
        assert!(flows.event(at(7)).is_empty() && flows.next(7).is_some());
    }

    #[test]
    fn memory_is_bounded() {
        let mut flows = LastingFlows::default();
        for time in 0..3 * MOST_WAITING as i64 {
            flows.add((TrackId(0), time), (time as u64, Begin), Text::default(), Text::default());
            while let Some(point) = flows.next(i64::MIN) {
                let _ = flows.arrow(&point, false);
            }
        }
        assert!(flows.waiting.len() <= MOST_WAITING && flows.flows.len() <= MOST_FLOWS);
        assert!(flows.places.len() <= 2 * MOST_FLOWS);
    }
}
