//! Events to items.

use hairline_formats::Value;
use hairline_formats::trace_event_json::{Event, InstantScope, Metadata, Phase, put_event};
use hairline_formats::track_event::CounterValue;

use crate::json::read::numbers::{flow_number, hash, number};
use crate::json::read::pending::Pending;
use crate::json::read::state::State;
use crate::json::read::threads::COMPLETE;
use crate::json::read::tracks::{Counter, Interval, NewTracks, TrackFact};
use crate::json::read::waiting::Held;
use crate::report::TOO_DEEP;
use crate::ties::{Rank, TIES};
use crate::{Context, EventKind, FlowStep, TrackId};

/// When importers end them depends on later intervals, with other ids too.
const END_FIRST: &str =
    "intervals whose end stands before their begin, at the same time, so that importers show them without it";

/// Why an event is skipped.
type Reason = &'static str;

impl State {
    /// Queues the items of an event.
    pub(super) fn event(&mut self, event: &Event<'_>, context: &mut Context) -> Result<(), Reason> {
        self.count(event);
        let Some(phase) = event.ph else {
            // JAX writes an empty object after its last comma.
            return if *event == Event::default() { Ok(()) } else { Err("events without a phase") };
        };
        match phase {
            Phase::Begin => self.on_thread(event, EventKind::Begin, context),
            Phase::End => self.on_thread(event, EventKind::End, context),
            Phase::Complete => self.complete(event, context),
            Phase::Instant | Phase::InstantOld | Phase::Mark => self.instant(event, context),
            Phase::Counter => self.counter(event, context),
            Phase::AsyncBegin | Phase::AsyncStart => self.interval(event, EventKind::Begin, context),
            Phase::AsyncInstant | Phase::AsyncStepInto | Phase::AsyncStepPast => {
                self.interval(event, EventKind::Instant, context)
            }
            Phase::AsyncEnd | Phase::AsyncFinish => self.interval(event, EventKind::End, context),
            Phase::FlowStart => self.flow(event, FlowStep::Begin, context),
            Phase::FlowStep => self.flow(event, FlowStep::Step, context),
            Phase::FlowEnd => self.flow(event, FlowStep::End, context),
            Phase::Metadata => self.metadata(event, context),
            Phase::Sample => self.foreign(event, "samples of a profiler"),
            Phase::ObjectCreated | Phase::ObjectSnapshot | Phase::ObjectDeleted => {
                self.foreign(event, "objects")
            }
            Phase::MemoryDumpGlobal | Phase::MemoryDumpProcess => self.foreign(event, "memory dumps"),
            Phase::ClockSync => self.foreign(event, "clock syncs"),
            Phase::ContextEnter | Phase::ContextLeave => self.foreign(event, "contexts"),
            Phase::LinkIds => self.foreign(event, "links of ids"),
            Phase::Other(_) => Err("events with unknown phases"),
        }
    }

    /// Counts the members of an event that no item can express.
    fn count(&mut self, event: &Event<'_>) {
        if !event.cname.is_empty() {
            self.report.add("names of colours");
        }
        if event.sf.is_some() || event.stack.is_some() || event.esf.is_some() || event.estack.is_some() {
            self.report.add("stacks of events");
        }
        self.report.add_many("unknown fields", event.skipped.into());
    }

    /// The time of an event, in nanoseconds.
    fn time(&self, event: &Event<'_>) -> Result<i64, Reason> {
        let time = event.ts.ok_or("events without a time")?;
        time.checked_add(self.facts.offset).ok_or("events with times beyond 292 years")
    }

    /// Queues the event whose content is stored.
    fn queue(&mut self, (time, track): (i64, TrackId), kind: EventKind) {
        let is_slice = matches!(kind, EventKind::Complete { .. });
        if !is_slice {
            self.order.other(track, time, &mut self.threads);
        }
        if !is_slice && !self.order.has_ready() {
            return self.pending.push_back(Pending::Event(time, track, kind));
        }
        let position = self.position;
        let held = Held { content: std::mem::take(&mut self.current), time, track, kind, position };
        if is_slice { self.order.slice(held, &mut self.threads) } else { self.order.follow(held) }
    }

    /// Counts an event of a thread that importers read before an earlier one with its time.
    fn tie(&mut self, thread: TrackId, time: i64, kind: EventKind) {
        let rank = match kind {
            EventKind::End => Rank::End,
            EventKind::Complete { .. } => COMPLETE,
            EventKind::Flow { .. } => Rank::Flow,
            _ => Rank::Other,
        };
        if self.threads.ties(thread, time, rank) {
            self.report.add(TIES);
        }
    }

    /// Stores the content of an event. Its track must be queued before.
    fn store(&mut self, event: &Event<'_>, context: &mut Context) {
        if !self.current.take(event, context) {
            self.report.add("arguments that are not an object");
        }
        self.report.add_many(TOO_DEEP, self.current.args.is_too_deep().into());
        self.bind(event, context);
    }

    /// As `store`, and queues the event.
    fn put(&mut self, event: &Event<'_>, at: (i64, TrackId), kind: EventKind, context: &mut Context) {
        self.store(event, context);
        self.queue(at, kind);
    }

    /// Stores the flow that an event is bound to.
    fn bind(&mut self, event: &Event<'_>, context: &Context) {
        let Some(id) = &event.bind_id else { return };
        let step = match (event.flow_in, event.flow_out) {
            (false, true) => FlowStep::Begin,
            (true, true) => FlowStep::Step,
            (true, false) => FlowStep::End,
            (false, false) => return self.report.add_defects("flows without a direction", 1),
        };
        let id = flow_number(id).map(|id| self.flows.id("", "", context.flow(id)));
        match id {
            Some(id) => {
                self.flows.count(id, step, &mut self.report);
                self.current.bound = Some((id, step));
            }
            None => self.report.add_defects("flows without an id", 1),
        }
    }

    fn thread(&mut self, event: &Event<'_>, context: &mut Context) -> TrackId {
        let to = &mut NewTracks { context, pending: &mut self.pending };
        self.tracks.thread(event.pid.as_ref(), event.tid.as_ref(), to)
    }

    fn process(&mut self, event: &Event<'_>, context: &mut Context) -> TrackId {
        self.tracks.process(event.pid.as_ref(), &mut NewTracks { context, pending: &mut self.pending })
    }

    fn on_thread(&mut self, event: &Event<'_>, kind: EventKind, context: &mut Context) -> Result<(), Reason> {
        let time = self.time(event)?;
        let thread = self.thread(event, context);
        let cpu = event.tts.map(|tts| {
            let to = &mut NewTracks { context, pending: &mut self.pending };
            (self.tracks.time(thread, to), tts)
        });
        self.store(event, context);
        if let Some((track, tts)) = cpu {
            let samples = &mut self.current.samples;
            samples.push((track, CounterValue::Int(tts)));
            let end = event.tdur.and_then(|tdur| tts.checked_add(tdur));
            samples.extend(end.map(|end| (track, CounterValue::Int(end))));
        }
        self.tie(thread, time, kind);
        self.queue((time, thread), kind);
        Ok(())
    }

    fn complete(&mut self, event: &Event<'_>, context: &mut Context) -> Result<(), Reason> {
        let duration = event.dur.ok_or("slices without a duration")?;
        if duration < 0 {
            return Err("slices with a negative duration");
        }
        self.on_thread(event, EventKind::Complete { duration }, context)
    }

    fn instant(&mut self, event: &Event<'_>, context: &mut Context) -> Result<(), Reason> {
        // Importers ignore the flow that an instant is bound to.
        let unbound;
        let event = match event.bind_id {
            None => event,
            Some(_) => {
                unbound = Event { bind_id: None, ..event.clone() };
                &unbound
            }
        };
        let track = match event.s {
            Some(InstantScope::Process) => self.process(event, context),
            Some(InstantScope::Global) => {
                self.tracks.everything(&mut NewTracks { context, pending: &mut self.pending })
            }
            _ => return self.on_thread(event, EventKind::Instant, context),
        };
        let time = self.time(event)?;
        self.put(event, (time, track), EventKind::Instant, context);
        Ok(())
    }

    fn counter(&mut self, event: &Event<'_>, context: &mut Context) -> Result<(), Reason> {
        let time = self.time(event)?;
        let process = self.process(event, context);
        let id = event.id.as_ref().or(event.id2.local.as_ref()).or(event.id2.global.as_ref());
        let id = id.map_or(0, number);
        event.args.each(|series, value| {
            let Some(value) = counted(value) else {
                return self.report.add_defects("counter values that are not numbers", 1);
            };
            let counter = Counter { process, name: &event.name, number: id, series };
            let to = &mut NewTracks { context, pending: &mut self.pending };
            let track = self.tracks.counter(&counter, to);
            self.pending.push_back(Pending::Bare(time, track, EventKind::Counter(value)));
        });
        Ok(())
    }

    fn interval(&mut self, event: &Event<'_>, kind: EventKind, context: &mut Context) -> Result<(), Reason> {
        let time = self.time(event)?;
        let (everywhere, within) =
            (event.id.as_ref().or(event.id2.global.as_ref()), event.id2.local.as_ref());
        let id = number(everywhere.or(within).ok_or("intervals without an id")?);
        // Deprecated intervals do not nest: one id with several names means several intervals.
        let is_old = !matches!(event.ph, Some(Phase::AsyncBegin | Phase::AsyncInstant | Phase::AsyncEnd));
        let id = if is_old { hash((id, &event.name)) } else { id };
        let interval = Interval {
            process: if everywhere.is_none() { Some(self.process(event, context)) } else { None },
            category: &event.cat,
            scope: &event.scope,
            id,
        };
        let to = &mut NewTracks { context, pending: &mut self.pending };
        let opens = match kind {
            EventKind::Begin => 1,
            EventKind::End => -1,
            _ => 0,
        };
        let (track, is_after_end) = self.tracks.interval(&interval, (&event.name, time, opens), to);
        self.report.add_many(END_FIRST, is_after_end.into());
        self.put(event, (time, track), kind, context);
        Ok(())
    }

    fn flow(&mut self, event: &Event<'_>, step: FlowStep, context: &mut Context) -> Result<(), Reason> {
        let time = self.time(event)?;
        let id = event.id.as_ref().or(event.id2.local.as_ref()).or(event.id2.global.as_ref());
        let id = id.and_then(flow_number).ok_or("flows without an id")?;
        let id = self.flows.id(&event.cat, &event.name, context.flow(id));
        self.flows.count(id, step, &mut self.report);
        let thread = self.thread(event, context);
        let to_next = step == FlowStep::End && event.bp != "e";
        let flow = EventKind::Flow { id, step, to_next, lasts: true };
        self.tie(thread, time, flow);
        self.put(event, (time, thread), flow, context);
        Ok(())
    }

    fn metadata(&mut self, event: &Event<'_>, context: &mut Context) -> Result<(), Reason> {
        let Some(metadata) = event.metadata() else {
            return self.foreign(event, "other metadata");
        };
        let track = match metadata {
            Metadata::ThreadName(_) | Metadata::ThreadSortIndex(_) => self.thread(event, context),
            _ => self.process(event, context),
        };
        let rank = |index| i32::try_from(index).map_err(|_| "sort indices beyond 32 bits");
        let about = match &metadata {
            Metadata::ProcessName(name) | Metadata::ThreadName(name) => TrackFact::Name(name),
            Metadata::ProcessLabels(labels) => TrackFact::Description(labels),
            Metadata::ProcessSortIndex(index) | Metadata::ThreadSortIndex(index) => {
                TrackFact::Rank(rank(*index)?)
            }
            _ => return Err("other metadata"),
        };
        self.tracks.about(track, &about, &mut self.pending);
        Ok(())
    }

    /// Queues an event that no other format can express.
    fn foreign(&mut self, event: &Event<'_>, what: &'static str) -> Result<(), Reason> {
        let ts = event.ts.map(|_| self.time(event)).transpose()?;
        self.current.own.clear();
        put_event(&mut self.current.own, &Event { ts, ..event.clone() });
        self.pending.push_back(Pending::Foreign(what));
        Ok(())
    }
}

/// The number in an argument, which may be written as text.
fn counted(value: Value<'_>) -> Option<CounterValue> {
    match value {
        Value::I64(number) => Some(CounterValue::Int(number)),
        Value::U64(number) => Some(CounterValue::Double(number as f64)),
        Value::F64(number) => Some(CounterValue::Double(number)),
        Value::Str(text) => {
            let whole = text.parse().ok().map(CounterValue::Int);
            whole.or_else(|| text.parse().ok().map(CounterValue::Double))
        }
        _ => None,
    }
}
