//! Collects the events of each track.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use hairline::Filter;
use hairline_convert::{Event, EventKind, FlowStep, Item, Report, Scheduling, Track, TrackId, TrackKind};
use hairline_formats::track_event::Priority;

use crate::aligned::zero;
use crate::otlp::attribute::{Attribute, Attributes, Room};
use crate::otlp::entry::{Change, Entry, Events};
use crate::otlp::nest::{DOUBLES, nest};
use crate::otlp::span::{Process, Span, Spans, mix};
use crate::trace::ItemVisitor;

/// The limits for what is in memory: events, and bytes of their names and arguments.
const MOST_EVENTS: usize = 1 << 22;
const MOST_BYTES: usize = 1 << 30;

pub(super) struct Collector {
    filter: Option<Filter>,
    descriptions: HashMap<TrackId, Track>,
    tracks: HashMap<TrackId, Events>,
    /// The number of events in `tracks`, of those for which there is no room, and of all.
    count: usize,
    left_out: usize,
    number: u64,
    room: Room,
    /// The last time.
    last: i64,
    clocks: Option<i64>,
    /// The ids of the traces that the file has, and for one without an id its content, as a hash.
    salt: Option<u64>,
    content: DefaultHasher,
    report: Report,
}

impl Collector {
    pub(super) fn new(filter: Option<Filter>) -> Self {
        Self::within(filter, MOST_BYTES)
    }

    /// With so many bytes for names and arguments.
    fn within(filter: Option<Filter>, bytes: usize) -> Self {
        Self {
            filter,
            descriptions: HashMap::new(),
            tracks: HashMap::new(),
            count: 0,
            left_out: 0,
            number: 0,
            room: Room::new(bytes),
            last: i64::MIN,
            clocks: None,
            salt: None,
            content: DefaultHasher::new(),
            report: Report::default(),
        }
    }

    fn is_chosen(&self, event: &Event<'_>) -> bool {
        let Some(filter) = &self.filter else { return true };
        let mut is_chosen = false;
        event.categories.each(&mut |category| is_chosen |= filter.matches(category.text));
        is_chosen
    }

    /// Counts an event. Without an id of the trace, its events distinguish it from others.
    fn note(&mut self, event: &Event<'_>, change: Change) {
        let duration = if let Change::Complete(duration) = change { duration } else { 0 };
        self.last = self.last.max(event.time.saturating_add(duration));
        self.number += 1;
        if self.salt.is_none() {
            (event.time, event.track.0, event.name.text).hash(&mut self.content);
        }
    }

    /// Whether the event has no effect on spans: it is not chosen, and no slice or flow either. A slice that
    /// is not chosen is forgotten when it ends, if nothing in it is stored.
    fn is_needless(&mut self, event: &Event<'_>, change: Change, is_chosen: bool, has_flows: bool) -> bool {
        if is_chosen || has_flows {
            return false;
        }
        match change {
            Change::Complete(_) | Change::Instant => true,
            Change::Begin | Change::Flow => false,
            Change::End => {
                let Some(events) = self.tracks.get_mut(&event.track) else { return false };
                let is_its_begin = |begin: &mut Entry| {
                    let is_its_name = event.name.text.is_empty() || begin.name == event.name.text;
                    let is_plain =
                        begin.change == Change::Begin && !begin.is_chosen && begin.flows.is_empty();
                    is_plain && is_its_name && begin.time <= event.time
                };
                let forgotten = events.all.pop_if(is_its_begin);
                self.count -= usize::from(forgotten.is_some());
                forgotten.is_some()
            }
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        self.report.add_many("counter values left out", event.extra_counters.len() as u64);
        let details = event.details();
        let mut flows: Vec<_> =
            details.flows.iter().chain(details.ending_flows).map(|id| (*id, false)).collect();
        flows.extend(details.bound.map(|(id, step)| (id, step == FlowStep::Begin)));
        let change = match event.kind {
            EventKind::Begin => Change::Begin,
            EventKind::End => Change::End,
            EventKind::Complete { duration } => Change::Complete(duration.max(0)),
            EventKind::Instant => Change::Instant,
            EventKind::Flow { id, step, .. } => {
                flows.push((id, step == FlowStep::Begin));
                Change::Flow
            }
            _ => return self.report.add("counter values left out"),
        };
        self.note(event, change);
        let is_chosen = change != Change::End && self.is_chosen(event);
        if self.is_needless(event, change, is_chosen, !flows.is_empty()) {
            return;
        }
        if self.count == MOST_EVENTS || self.room.is_full() {
            self.left_out += 1;
            return;
        }
        self.count += 1;
        self.room.take(event.name.text.len() + size_of_val(&flows[..]));
        let keeps = is_chosen || matches!(change, Change::End | Change::Flow);
        let (attributes, is_failed) =
            if keeps { self.attributes(event, change) } else { (Attributes::new(), false) };
        let name = match details.log {
            Some(log) if event.name.text.is_empty() && self.room.take(log.body.len()) => log.body.to_owned(),
            _ => event.name.text.to_owned(),
        };
        let (time, number, is_chosen) = (event.time, self.number, keeps);
        let entry = Entry { time, number, change, name, is_chosen, attributes, flows, is_failed };
        self.tracks.entry(event.track).or_default().all.push(entry);
    }

    /// The attributes of an event, and whether they are those of a failure.
    fn attributes(&mut self, event: &Event<'_>, change: Change) -> (Attributes, bool) {
        let (mut attributes, mut is_failed, room) = (Attributes::new(), false, &mut self.room);
        let details = event.details();
        event.args.each(&mut |name, value| {
            if !room.take(name.text.len()) {
                return;
            }
            let value = Attribute::of(&value, room);
            is_failed |= name.text == "error" && !matches!(value, Attribute::None | Attribute::Bool(false));
            attributes.push((name.text.to_owned(), value));
        });
        let mut add = |name: &str, text: &str| {
            if room.take(name.len() + text.len()) {
                attributes.push((name.to_owned(), Attribute::Text(text.to_owned())));
            }
        };
        if let Some(log) = details.log {
            is_failed |= matches!(log.priority, Priority::Error | Priority::Fatal);
            add("message", log.body);
        }
        if let Some(correlation) = details.correlation {
            add("hairline.correlation", correlation);
        }
        if let Some(stack) = details.stack {
            let mut frames = Vec::new();
            stack.each(&mut |frame| frames.push(frame.to_string()));
            frames.reverse(); // the innermost one first, as most languages print them
            add("code.stacktrace", &frames.join("\n"));
        }
        if change != Change::End {
            let mut categories = String::new();
            event.categories.each(&mut |category| {
                let comma = if categories.is_empty() { "" } else { "," };
                categories.extend([comma, category.text]);
            });
            if !categories.is_empty() {
                add("hairline.category", &categories);
            }
        }
        (attributes, is_failed)
    }

    /// The process or thread that a track is, or that is nearest above it. `known` has the answers so far: the
    /// tracks may be a long chain.
    fn nearest(&self, track: TrackId, known: &mut HashMap<TrackId, Option<TrackId>>) -> Option<TrackId> {
        let (mut branch, mut next) = (Vec::new(), Some(track));
        // A description's parent precedes it, so this ends.
        let nearest = loop {
            let Some(described) = next.and_then(|id| self.descriptions.get(&id)) else { break None };
            if let Some(nearest) = known.get(&described.id) {
                break *nearest;
            }
            if matches!(described.kind, TrackKind::Process { .. } | TrackKind::Thread { .. }) {
                break Some(described.id);
            }
            branch.push(described.id);
            next = described.parent.filter(|parent| parent.0 < described.id.0);
        };
        known.extend(branch.into_iter().map(|track| (track, nearest)));
        nearest
    }

    /// The process of a track, and the thread if it is one. `known`: as of [`nearest`](Self::nearest).
    fn owner(
        &self,
        track: TrackId,
        known: &mut HashMap<TrackId, Option<TrackId>>,
    ) -> (Process, Option<(u64, String)>) {
        let (mut next, mut thread, mut process) = (Some(track), None, Process::default());
        while let Some(described) =
            next.and_then(|id| self.nearest(id, known)).and_then(|id| self.descriptions.get(&id))
        {
            match described.kind {
                TrackKind::Process { pid, .. } => {
                    process = Process { pid: Some(pid), name: described.name.to_string() };
                    break;
                }
                TrackKind::Thread { pid, tid } => {
                    thread = Some((tid, described.name.to_string()));
                    process.pid = Some(pid);
                }
                _ => {}
            }
            next = described.parent.filter(|parent| parent.0 < described.id.0);
        }
        (process, thread)
    }

    /// Whether there were no events.
    pub(super) fn is_empty(&self) -> bool {
        self.number == 0
    }

    /// The message if the events do not fit into memory.
    fn too_much(&self) -> String {
        let what = if self.room.is_full() {
            format!("names and arguments of at most {} MiB fit into memory", MOST_BYTES >> 20)
        } else {
            format!("{MOST_EVENTS} events fit into memory, and there are {} more", self.left_out)
        };
        format!("{what}: choose fewer slices with --category")
    }

    /// The spans, without ids.
    pub(super) fn finish(mut self) -> Result<(Spans, Report), String> {
        if self.left_out > 0 || self.room.is_full() {
            return Err(self.too_much());
        }
        if self.clocks.is_none() {
            self.report.add("clocks without a reading of the time since 1970: times are the trace's own");
        }
        let salt = self.salt.unwrap_or_else(|| self.content.finish());
        let mut spans = Spans { since_1970: self.clocks.unwrap_or(0), salt: mix(salt), ..Spans::default() };
        let (mut processes, mut known) = (HashMap::new(), HashMap::new());
        let mut ids: Vec<_> = self.tracks.keys().copied().collect();
        ids.sort_by_key(|id| id.0);
        for id in ids {
            let (process, thread) = self.owner(id, &mut known);
            let Some(mut events) = self.tracks.remove(&id) else { continue };
            // Each span of the thread has its name.
            let name = thread.as_ref().map_or(0, |(_, name)| name.len());
            if name > 0 && !self.room.take(name.saturating_mul(events.all.len())) {
                return Err(self.too_much());
            }
            let key = (process.pid, process.name.clone());
            events.process = *processes.entry(key).or_insert_with(|| {
                spans.processes.push(process);
                spans.processes.len() - 1
            });
            events.thread = thread;
            nest(events, self.last, &mut spans, &mut self.report);
        }
        self.report.add_many(DOUBLES, self.room.doubles);
        let is_early = |span: &&Span| span.start.saturating_add(spans.since_1970) < 0;
        let early = spans.all.iter().filter(is_early).count();
        self.report.add_many("spans that begin before 1970, which begin in 1970", early as u64);
        Ok((spans, self.report))
    }
}

impl ItemVisitor for Collector {
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Event(event) => self.event(event),
            Item::Track(track) => drop(self.descriptions.insert(track.id, track.clone())),
            Item::Trace(trace) => {
                if let Some(uuid) = trace.uuid {
                    let halves = mix((uuid >> 64) as u64) ^ uuid as u64;
                    self.salt = Some(mix(self.salt.unwrap_or(0) ^ halves));
                }
                self.clocks = self.clocks.or_else(|| zero(trace));
            }
            Item::Loss(_) => self.report.add("places where events are missing"),
            Item::Scheduling(scheduling) => {
                self.report.add("records of the scheduler left out");
                self.report.add_many(Scheduling::OTHERS, scheduling.others);
            }
            Item::Sample(_) => self.report.add("stack samples left out"),
            Item::Foreign { what, .. } => self.report.add(what),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use hairline_convert::{Context, open};

    use super::*;

    /// What a collector makes of events.
    fn collected(mut collector: Collector, events: &str) -> Result<(Spans, Report), String> {
        let (mut reader, mut context) = (open(events.as_bytes(), None).expect("a trace"), Context::new());
        while let Some(item) = reader.next(&mut context).expect("items") {
            collector.item(&item);
        }
        collector.finish()
    }

    fn of_category(category: &str) -> Collector {
        Collector::within(Some(Filter::parse(category).expect("a filter")), MOST_BYTES)
    }

    const EVENTS: &str = r#"[
        {"name":"out","cat":"app","ph":"B","ts":1,"pid":1,"tid":1},
        {"name":"in","cat":"db","ph":"B","ts":2,"pid":1,"tid":1},
        {"name":"row","cat":"app","ph":"i","ts":3,"pid":1,"tid":1},
        {"ph":"E","ts":4,"pid":1,"tid":1},
        {"name":"open","cat":"db","ph":"B","ts":5,"pid":1,"tid":1},
        {"name":"long","cat":"db","ph":"X","ts":6,"dur":4,"pid":1,"tid":1},
        {"name":"later","cat":"db","ph":"X","ts":10,"dur":90,"pid":1,"tid":2}]"#;

    #[test]
    fn slices_that_are_not_chosen_take_no_memory() {
        let mut collector = of_category("app");
        let slices = (0..1000).map(|n| {
            let at = 2 * n;
            format!(
                r#"{{"name":"s","cat":"db","ph":"B","ts":{at},"pid":1,"tid":1}},
                {{"ph":"E","ts":{},"pid":1,"tid":1}},
                {{"name":"x","cat":"db","ph":"X","ts":{at},"dur":1,"pid":1,"tid":2}}"#,
                at + 1
            )
        });
        let events = format!("[{}]", slices.collect::<Vec<_>>().join(","));
        let (mut reader, mut context) = (open(events.as_bytes(), None).expect("a trace"), Context::new());
        let mut most = 0;
        while let Some(item) = reader.next(&mut context).expect("items") {
            collector.item(&item);
            most = most.max(collector.count);
        }
        assert_eq!((most, collector.number), (1, 3000));
    }

    #[test]
    fn a_span_has_the_same_id_whatever_else_is_chosen() {
        let numbers = |category: &str| {
            let (spans, _) = collected(of_category(category), EVENTS).expect("spans");
            spans.all.iter().map(|span| (span.name.clone(), span.number)).collect::<Vec<_>>()
        };
        let all = numbers("*");
        assert_eq!(all.len(), 5);
        for category in ["app", "db"] {
            let some = numbers(category);
            assert!(!some.is_empty() && some.iter().all(|span| all.contains(span)), "{some:?} {all:?}");
        }
    }

    #[test]
    fn a_slice_without_an_end_ends_with_the_trace() {
        let (spans, report) = collected(of_category("*"), EVENTS).expect("spans");
        let span = |name: &str| spans.all.iter().position(|span| span.name == name).expect("the span");
        assert_eq!(spans.all[span("open")].end, 100_000);
        assert_eq!(spans.all[span("out")].end, 100_000);
        assert_eq!(spans.all[span("long")].parent, Some(span("open")));
        let open = "slices without an end, which end with the trace's last event";
        assert!(report.iter().any(|count| count == (open, 2)), "{report:?}");
    }

    /// As in importers.
    #[test]
    fn an_end_with_a_name_ends_a_slice_without_one() {
        let events = r#"[{"ph":"B","ts":1,"pid":1,"tid":1},{"name":"a","ph":"E","ts":3,"pid":1,"tid":1},
            {"name":"b","ph":"i","ts":9,"pid":1,"tid":1}]"#;
        let (spans, _) = collected(Collector::new(None), events).expect("spans");
        assert_eq!(spans.all.iter().map(|span| (span.start, span.end)).collect::<Vec<_>>(), [(1_000, 3_000)]);
    }

    #[test]
    fn traces_without_an_id_have_spans_with_other_ids() {
        let salt = |events: &str| collected(Collector::new(None), events).expect("spans").0.salt;
        assert_eq!(salt(EVENTS), salt(EVENTS));
        assert_ne!(salt(EVENTS), salt(&EVENTS.replace("row", "line")));
    }

    #[test]
    fn names_and_arguments_have_a_limit() {
        let long = EVENTS.replace("later", &"n".repeat(5000));
        let said = collected(Collector::within(None, 4000), &long).expect_err("it is too much");
        assert!(said.contains("fit into memory: choose fewer slices with --category"), "{said}");
        assert!(collected(Collector::within(None, 4000), EVENTS).is_ok());
    }

    #[test]
    fn a_name_has_one_value() {
        let events = r#"[{"name":"a","ph":"B","ts":1,"pid":1,"tid":1,"args":{"n":1,"thread.id":"mine"}},
            {"ph":"E","ts":2,"pid":1,"tid":1,"args":{"n":2}}]"#;
        let (spans, report) = collected(Collector::new(None), events).expect("spans");
        let of = |name: &str| {
            let values = spans.all[0].attributes.iter().filter(|(own, _)| own == name);
            values.map(|(_, value)| value.clone()).collect::<Vec<_>>()
        };
        assert_eq!([of("n"), of("thread.id")], [[Attribute::Int(2)], [Attribute::Int(1)]]);
        assert!(report.iter().any(|count| count == (DOUBLES, 2)), "{report:?}");
    }
}
