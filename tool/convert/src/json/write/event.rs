//! Writes events.

use std::borrow::Cow;
use std::io::{self, Write};

use hairline_formats::Value;
use hairline_formats::trace_event_json::{self as json, Args, Id, Phase, PlainEvent, PlainPhase};
use hairline_formats::track_event::CounterValue;

use crate::json::write::arguments::EventArguments;
use crate::json::write::flows::{Point, Role};
use crate::json::write::plain::{kind, only_category, rank};
use crate::json::write::stacks::frame_id;
use crate::json::write::state::{JsonWriter, finished};
use crate::json::write::tracks::{Counter, OutputTrack};
use crate::report::{STACKS, TOO_DEEP};
use crate::ties::{Rank, TIES};
use crate::{Event, EventKind, Log, Text, TrackId};

/// The name and category of flow events. Importers use them to distinguish flows; here the flow's id is
/// unique.
const FLOW: &str = "flow";

impl<W: Write> JsonWriter<W> {
    pub(super) fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.begin(event.time)?;
        self.last = event.time;
        let ts = self.time(event.time);
        if let Some(written) = self.plain(event, ts) {
            return written;
        }
        self.report.add_many(Log::NO_TAG, u64::from(event.log().is_some_and(|log| log.tag.is_some())));
        self.write_samples(event, ts)?;
        event.categories.join(&mut self.categories);
        match self.tracks.get_mut(event.track) {
            Some(OutputTrack::Thread { .. }) => self.on_thread(event, ts),
            Some(OutputTrack::Interval(_)) => self.hold(event, ts),
            Some(OutputTrack::Counter(_)) => self.counted(event, ts),
            None => {
                self.report.add("events on unknown tracks");
                Ok(())
            }
        }
    }

    fn on_thread(&mut self, event: &Event<'_>, ts: i64) -> io::Result<()> {
        let Some(OutputTrack::Thread { pid, tid, flows, .. }) = self.tracks.get_mut(event.track) else {
            return Ok(());
        };
        let (pid, tid, waiting) = (*pid, *tid, std::mem::take(flows));
        self.write_points_before(ts, waiting)?;
        if let EventKind::Flow { id, step, to_next, lasts } = event.kind {
            let is_plain = |text: &str| matches!(text, "" | FLOW);
            if !is_plain(event.name.text) || !is_plain(&self.categories) {
                self.report.add("names and categories of flows");
            }
            self.wait(event.track, (pid, tid, ts), id, Role::new(step, to_next, lasts));
            return self.write_ready(i64::MIN);
        }
        let Some(kind) = kind(event.kind) else {
            self.report.add("counter values on tracks that are not counters");
            return Ok(());
        };
        // A flow belongs to the open slice, so the flows of an end precede it.
        let ends = kind == PlainPhase::End;
        let points = event.flows().iter().map(|flow| (*flow, Role::Through));
        let points = points.chain(event.ending_flows().iter().map(|flow| (*flow, Role::Ends)));
        let points = points.chain(event.bound().map(|(flow, step)| (flow, Role::bound(step))));
        for (flow, role) in points.clone().filter(|_| ends) {
            let order = self.flows.order();
            self.tie(event.track, ts, Rank::Flow);
            self.write_point(Point { time: ts, order, flow, role, pid, tid })?;
        }
        self.tie(event.track, ts, rank(kind));
        let (tts, tdur) = self.cpu_time(event);
        let dur = match kind {
            PlainPhase::Complete { dur } => Some(dur),
            _ => None,
        };
        let frame = event.stack().and_then(|stack| self.frames.add(stack, &mut self.report));
        let shown = EventArguments::new(event);
        let Some(output) = &mut self.output else { return finished() };
        output.event(&json::Event {
            name: event.name.text.into(),
            cat: Cow::Borrowed(&self.categories),
            ph: Some(kind.phase()),
            sf: frame_id(frame),
            ts: Some(ts),
            dur,
            tts,
            tdur,
            pid: Some(Id::Number(pid.into())),
            tid: Some(Id::Number(tid.into())),
            args: shown.args(),
            ..json::Event::default()
        })?;
        self.report.add_many(TOO_DEEP, shown.cut());
        for (flow, role) in points.filter(|_| !ends) {
            self.wait(event.track, (pid, tid, ts), flow, role);
        }
        self.write_ready(i64::MIN)
    }

    /// An event at the same time would take over the flows of the events before it, so they are written
    /// first.
    fn write_points_before(&mut self, ts: i64, waiting: Vec<Point>) -> io::Result<()> {
        if waiting.iter().any(|point| point.time == ts) {
            self.write_ready(ts)?;
        }
        for point in waiting {
            if point.time == ts { self.write_point(point)? } else { self.flows.wait(point) }
        }
        Ok(())
    }

    fn wait(&mut self, track: TrackId, (pid, tid, time): (u32, u32, i64), flow: u64, role: Role) {
        let order = self.flows.order();
        self.tie(track, time, Rank::Flow);
        if let Some(OutputTrack::Thread { flows, .. }) = self.tracks.get_mut(track) {
            flows.push(Point { time, order, flow, role, pid, tid });
        }
    }

    /// Counts an event of a thread that importers read before an earlier one with its time.
    fn tie(&mut self, track: TrackId, time: i64, rank: Rank) {
        if let Some(OutputTrack::Thread { ties, .. }) = self.tracks.get_mut(track)
            && ties.add(time, rank)
        {
            self.report.add(TIES);
        }
    }

    /// Writes the flow points before `time`, and those that need not wait any longer.
    fn write_ready(&mut self, time: i64) -> io::Result<()> {
        while let Some(point) = self.flows.ready(time) {
            self.write_point(point)?;
        }
        Ok(())
    }

    pub(super) fn finish_flows(&mut self) -> io::Result<()> {
        let flows = &mut self.flows;
        self.tracks.each_waiting(|point| flows.wait(point));
        self.write_ready(i64::MAX)?;
        self.flows.finish(&mut self.report);
        Ok(())
    }

    fn write_point(&mut self, point: Point) -> io::Result<()> {
        let Some((ph, number)) = self.flows.on_thread(&point, &mut self.report) else { return Ok(()) };
        let bp = if ph == Phase::FlowEnd && point.role != Role::ArrivalAtNext { "e" } else { "" };
        self.output()?.event(&json::Event {
            name: FLOW.into(),
            cat: FLOW.into(),
            ph: Some(ph),
            ts: Some(point.time),
            pid: Some(Id::Number(point.pid.into())),
            tid: Some(Id::Number(point.tid.into())),
            id: Some(Id::Number(number)),
            bp: bp.into(),
            ..json::Event::default()
        })
    }

    fn counted(&mut self, event: &Event<'_>, ts: i64) -> io::Result<()> {
        let EventKind::Counter(value) = event.kind else {
            self.report.add("events on counter tracks");
            return Ok(());
        };
        self.report.add_many(STACKS, event.stack().is_some().into());
        self.write_value(event.track, value, ts, only_category(event))
    }

    /// Writes the extra counters of an event, except for its thread's CPU time.
    fn write_samples(&mut self, event: &Event<'_>, ts: i64) -> io::Result<()> {
        for (track, value, passed) in event.counter_values() {
            if !self.is_cpu_time(track, event.track) {
                self.write_value(track, value, ts.saturating_add(passed), Some(Text::default()))?;
            }
        }
        Ok(())
    }

    /// Writes a counter value. With `category` = `None` the value gets all categories of the event.
    fn write_value(
        &mut self,
        track: TrackId,
        value: CounterValue,
        ts: i64,
        category: Option<Text<'_>>,
    ) -> io::Result<()> {
        let Some(OutputTrack::Counter(counter)) = self.tracks.get_mut(track) else {
            self.report.add("counter values on tracks that are not counters");
            return Ok(());
        };
        let value = match (value, counter.multiplier) {
            (CounterValue::Int(value), by) => {
                value.checked_mul(by).map_or(Value::F64(value as f64 * by as f64), Value::I64)
            }
            (CounterValue::Double(value), 1) => Value::F64(value),
            (CounterValue::Double(value), by) => Value::F64(value * by as f64),
        };
        // An importer may read a non-finite number in text form as a number and then never finish.
        if matches!(value, Value::F64(value) if !value.is_finite()) {
            self.report.add("counter values that are not finite");
            return Ok(());
        }
        let Some(output) = &mut self.output else { return finished() };
        if let Some(category) = category {
            counter.set_category(category);
        }
        let args = &[(&*counter.series, value)];
        if let (Some(label), Some(ids)) = (category.and(counter.label.as_deref()), &counter.ids) {
            let (phase, args) = (PlainPhase::Counter, Args::List(args));
            return output.plain(&PlainEvent { label, phase, ts, ids, args });
        }
        let cat = category.map_or(self.categories.as_str(), |category| category.text);
        output.event(&json::Event { cat: cat.into(), ..counter.event(ts, args) })
    }

    fn is_cpu_time(&self, counter: TrackId, of: TrackId) -> bool {
        matches!(self.tracks.get(counter), Some(OutputTrack::Counter(counter)) if counter.time_of == Some(of))
    }

    /// The thread's CPU time at the begin of an event, and the CPU time that a complete slice took.
    fn cpu_time(&self, event: &Event<'_>) -> (Option<i64>, Option<i64>) {
        let mut times = event.extra_counters.iter().filter_map(|(track, value)| match value {
            CounterValue::Int(time) if self.is_cpu_time(*track, event.track) => Some(*time),
            _ => None,
        });
        let (begin, end) = (times.next(), times.next());
        (begin, begin.zip(end).and_then(|(begin, end)| end.checked_sub(begin)))
    }
}

impl Counter {
    fn event<'e>(&'e self, ts: i64, args: &'e [(&'e str, Value<'e>)]) -> json::Event<'e> {
        json::Event {
            name: Cow::Borrowed(&self.name),
            ph: Some(Phase::Counter),
            ts: Some(ts),
            pid: self.pid.map(|pid| Id::Number(pid.into())),
            id: self.id.clone(),
            args: Args::List(args),
            ..json::Event::default()
        }
    }
}
