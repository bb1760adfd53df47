//! The events of a track to spans with parents.

use std::cmp::Reverse;

use hairline_convert::Report;

use crate::otlp::attribute::{Attribute, unique};
use crate::otlp::entry::{Change, Entry, Events};
use crate::otlp::span::{Point, Span, Spans};

/// An end finds its begin among so many open slices, as trace_processor does nearly always.
const MOST_CLOSED: usize = 1 << 14;

/// Counted where a name has several values.
pub(super) const DOUBLES: &str = "values of arguments left out, because a later one has the same name";

/// A slice: its begin, its end, and its entry.
struct Interval {
    start: i64,
    end: i64,
    entry: Entry,
}

/// Adds the spans of a track to `spans`. Slices without an end get `last`, the last time of the trace.
pub(super) fn nest(events: Events, last: i64, spans: &mut Spans, report: &mut Report) {
    let Events { process, thread, mut all } = events;
    all.sort_by_key(|entry| entry.time); // keeps the order of equal times
    let (mut intervals, points) = intervals(all, last, report);
    // The enclosing one first.
    intervals.sort_by_key(|interval| (interval.start, Reverse(interval.end)));
    let first = spans.all.len();
    let mut open: Vec<Around> = Vec::new();
    let mut places = Vec::with_capacity(intervals.len());
    for interval in intervals {
        while open.last().is_some_and(|around| !around.has(&interval)) {
            open.pop();
        }
        let above = open.last().and_then(|around| around.span);
        let Interval { start, end, entry } = interval;
        let is_complete = matches!(entry.change, Change::Complete(_));
        let span = entry.is_chosen.then(|| {
            let mut attributes = entry.attributes;
            if let Some((tid, name)) = &thread {
                attributes.push(("thread.id".to_owned(), Attribute::Int(*tid as i64)));
                if !name.is_empty() {
                    attributes.push(("thread.name".to_owned(), Attribute::Text(name.clone())));
                }
            }
            report.add_many(DOUBLES, unique(&mut attributes));
            let flows = entry.flows.iter().map(|(id, begins)| (*id, start, *begins)).collect();
            let Entry { name, number, is_failed, .. } = entry;
            let (parent, rest) = (above, Span::default());
            let span = Span { process, number, parent, start, end, name, attributes, flows, ..rest };
            spans.all.push(Span { is_failed, ..span });
            spans.all.len() - 1
        });
        open.push(Around { end, is_complete, span: span.or(above) });
        places.push((start, end, span.or(above)));
    }
    put_points(points, &places, first, spans, report);
}

/// A slice that may have others in it, and the innermost span there.
struct Around {
    end: i64,
    /// Whether the event that begins it says its end.
    is_complete: bool,
    span: Option<usize>,
}

impl Around {
    /// Whether a slice that does not begin earlier is in this one. A slice that begins at a known end is
    /// behind it, as in trace_processor, also if it has no length.
    fn has(&self, interval: &Interval) -> bool {
        self.end >= interval.end && !(self.is_complete && self.end <= interval.start)
    }
}

/// Pairs begins with ends. Returns the slices, and the other events.
fn intervals(all: Vec<Entry>, last: i64, report: &mut Report) -> (Vec<Interval>, Vec<Entry>) {
    let (mut intervals, mut points) = (Vec::new(), Vec::new());
    let mut open: Vec<Interval> = Vec::new();
    for entry in all {
        match entry.change {
            Change::Begin => open.push(Interval { start: entry.time, end: entry.time, entry }),
            Change::Complete(duration) => {
                let end = entry.time.saturating_add(duration);
                intervals.push(Interval { start: entry.time, end, entry });
            }
            Change::End => {
                let is_it = |interval: &Interval| {
                    let begun = &interval.entry.name;
                    entry.name.is_empty() || begun.is_empty() || *begun == entry.name
                };
                let deepest = open.len().saturating_sub(MOST_CLOSED);
                let Some(at) = open[deepest..].iter().rposition(is_it).map(|at| deepest + at) else {
                    report.add("ends without a begin left out");
                    continue;
                };
                // An end closes what is inside, too.
                let (time, mut of_end) = (entry.time, Some(entry));
                for (n, mut interval) in open.split_off(at).into_iter().enumerate() {
                    interval.end = time;
                    if let Some(end) = of_end.take_if(|_| n == 0) {
                        interval.entry.attributes.extend(end.attributes);
                        interval.entry.flows.extend(end.flows);
                        interval.entry.is_failed |= end.is_failed;
                    }
                    intervals.push(interval);
                }
            }
            Change::Instant | Change::Flow => points.push(entry),
        }
    }
    report.add_many("slices without an end, which end with the trace's last event", open.len() as u64);
    intervals.extend(open.into_iter().map(|interval| Interval { end: last, ..interval }));
    (intervals, points)
}

/// Puts instants and flows into the innermost spans around them. `places` are in order of their begins.
fn put_points(
    points: Vec<Entry>,
    places: &[(i64, i64, Option<usize>)],
    first: usize,
    spans: &mut Spans,
    report: &mut Report,
) {
    let (mut next, mut open) = (0, Vec::<(i64, Option<usize>)>::new());
    for entry in points {
        while let Some((_, end, span)) = places.get(next).filter(|(start, ..)| *start <= entry.time) {
            while open.last().is_some_and(|(other, _)| other < end) {
                open.pop();
            }
            open.push((*end, *span));
            next += 1;
        }
        while open.last().is_some_and(|(end, _)| *end < entry.time) {
            open.pop();
        }
        let Some(span) = open.last().and_then(|(_, span)| *span).filter(|span| *span >= first) else {
            if entry.change == Change::Instant && entry.is_chosen {
                report.add("instants outside of spans left out");
            }
            if entry.change == Change::Flow {
                report.add("steps of flows outside of spans left out");
            }
            continue;
        };
        let span = &mut spans.all[span];
        span.flows.extend(entry.flows.iter().map(|(id, begins)| (*id, entry.time, *begins)));
        if entry.change == Change::Instant && entry.is_chosen {
            span.is_failed |= entry.is_failed;
            let Entry { time, name, mut attributes, .. } = entry;
            report.add_many(DOUBLES, unique(&mut attributes));
            span.points.push(Point { time, name, attributes });
        }
    }
}
