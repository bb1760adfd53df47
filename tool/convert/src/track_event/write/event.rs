//! Events to packets.

use hairline_formats::Value;
use hairline_formats::proto::{put_message, put_str, put_uint};
use hairline_formats::track_event::{
    self as te, CounterValue, EventType, InternedKind, LegacyEvent, LegacyId, Name, SequenceId,
    SourceLocation, TrackUuid, fields::track_event, put_named, put_short_annotation,
};

use crate::nesting::{BESIDE, DEEP};
use crate::report::TOO_DEEP;
use crate::track_event::write::crossing::{CROSSING, Crossing, UNSURE};
use crate::track_event::write::sequence::Sequence;
use crate::track_event::write::state::State;
use crate::track_event::write::tracks::{GENERAL_SEQUENCE, SliceEnd, TrackClass};
use crate::track_event::{binding, describe};
use crate::{
    Categories, Event, EventKind, FlowStep, Report, Stack, StackFrame, StringId, Text, Texts, Track, TrackId,
    TrackKind,
};

/// The limit for waiting ends on a track. Beyond it, the end of a slice follows its begin at once.
const MOST_ENDS: usize = 1024;

const CUT: &str = "flows between slices of threads and of tracks, cut in two";

/// The form of an event in a packet.
#[derive(Clone, Copy, Default)]
struct EventForm {
    kind: EventType,
    legacy: Option<LegacyEvent<'static>>,
    counter: Option<CounterValue>,
    /// The UUID of a track beside the event's own.
    track: Option<TrackUuid>,
}

impl EventForm {
    fn of(kind: EventType) -> Self {
        Self { kind, ..Self::default() }
    }

    fn legacy(legacy: LegacyEvent<'static>) -> Self {
        Self { legacy: Some(legacy), ..Self::default() }
    }
}

impl State {
    /// Writes an event, and the slice ends that precede it.
    #[inline]
    pub(super) fn event(&mut self, event: &Event<'_>) {
        if !self.short(event) {
            self.any_event(event);
        }
    }

    #[inline(never)]
    fn any_event(&mut self, event: &Event<'_>) {
        let track = self.tracks.get(event.track);
        let (class, has_ends) = (track.class, !track.ends.is_empty());
        let is_begin_or_end =
            class == TrackClass::Thread && matches!(event.kind, EventKind::Begin | EventKind::End);
        let mut ending_inside = None;
        if is_begin_or_end {
            let slices_until = self.sequences[track.sequence].slices_until(); // 0 for the general one
            let is_past =
                track.crossing.as_ref().map_or(event.time < slices_until, |known| known.is_past(event.time));
            if is_past {
                let crossing = track.crossing.get_or_insert_with(|| Crossing::after(slices_until));
                self.report.add_many(UNSURE, crossing.unsort());
            }
            if let Some(crossing) = &mut track.crossing {
                if event.kind == EventKind::Begin {
                    crossing.begin(event.time);
                } else {
                    ending_inside = Some(crossing.ending_inside(event.time));
                    self.report.add_many(CROSSING, crossing.end(event.time));
                }
            }
        }
        let form = match event.kind {
            EventKind::Begin => {
                if class == TrackClass::States {
                    // The state that ends now needs no packet.
                    track.ends.pop_if(|end| end.time == event.time && end.counters.is_empty());
                }
                EventForm::of(class.begin())
            }
            EventKind::End if class == TrackClass::States => {
                let counters = event.extra_counters.into();
                return track.ends.push(SliceEnd { begin: event.time, time: event.time, counters });
            }
            EventKind::End => EventForm::of(class.end()),
            EventKind::Instant => EventForm::of(EventType::Instant),
            EventKind::Complete { duration } => {
                let end = event.time.saturating_add(duration.max(0));
                if class == TrackClass::Thread
                    && !self.nesting.add(event.track, event.time, end, &mut self.report)
                {
                    return self.beside(event, end);
                }
                let is_of_thread = class == TrackClass::Thread;
                let deep_lane = || self.nesting.deep_lane(event.track, event.time, end);
                let lane = is_of_thread.then(deep_lane).flatten();
                match complete(class, event) {
                    Some(form) => form,
                    None => {
                        if let Some(lane) = lane {
                            self.report.add(DEEP);
                            return self.on_lane(event, end, lane, "more levels");
                        }
                        if is_of_thread {
                            self.may_cross(event, end);
                        }
                        return self.slice(event, end);
                    }
                }
            }
            EventKind::Counter(value) if class == TrackClass::Counter => {
                EventForm { counter: Some(value), ..EventForm::of(EventType::Counter) }
            }
            EventKind::Counter(_) => {
                return self.report.add("counter values on tracks that are not counters");
            }
            EventKind::Flow { id, step, to_next, lasts } if class == TrackClass::Thread => {
                let closes = step == FlowStep::End && !lasts;
                return self.flow(event, (id, step), to_next, closes);
            }
            EventKind::Flow { .. } => return self.report.add("flow events on tracks that are not threads"),
        };
        match ending_inside {
            // Of the slices that end at this time, those inside of this one end first.
            Some(inside) if has_ends => {
                self.end_slices(event.track, event.time.saturating_sub(1));
                let ends = &mut self.tracks.get(event.track).ends;
                let inside = ends.split_off(ends.len().saturating_sub(inside));
                inside.into_iter().rev().for_each(|end| self.end(event.track, end));
                self.packet(event, form);
                self.end_slices(event.track, event.time);
            }
            _ => {
                if has_ends {
                    self.end_slices(event.track, event.time);
                }
                self.packet(event, form);
            }
        }
        if is_begin_or_end {
            let sequence = self.tracks.get(event.track).sequence;
            if sequence != 0 {
                self.sequences[sequence].pass_slice(event.time); // many tracks share the general one
            }
        }
    }

    /// Writes the event of a flow.
    fn flow(&mut self, event: &Event<'_>, (id, step): (u64, FlowStep), to_next: bool, closes: bool) {
        self.report.add_many(CUT, self.flows.step(id, closes).into());
        // The slice that ends at the time of the event is the one that it belongs to.
        self.end_slices(event.track, event.time.saturating_sub(1));
        let phase = match step {
            FlowStep::Begin => b's',
            FlowStep::Step => b't',
            FlowStep::End => b'f',
        };
        event.categories.join(&mut self.joined);
        let Self { flow_names, joined, report, .. } = self;
        let at = (step, closes, event.time);
        let Some((id, name, category)) = flow_names.point(id, at, (event.name.text, joined), report) else {
            return;
        };
        let form = EventForm::legacy(LegacyEvent {
            phase,
            id: Some(LegacyId::Unscoped(id)),
            bind_to_enclosing: !to_next,
            ..LegacyEvent::default()
        });
        if *name == *event.name.text && *category == **joined {
            return self.packet(event, form);
        }
        let categories = match &*category {
            "" => Categories::None,
            category => Categories::One(Text::from(category)),
        };
        self.packet(&Event { name: Text::from(&*name), categories, ..*event }, form);
    }

    /// Writes a complete slice as begin and end. The end waits until a later event on the track.
    fn slice(&mut self, event: &Event<'_>, end: i64) {
        self.end_slices(event.track, event.time);
        let class = self.tracks.get(event.track).class;
        let [at_begin, counters] = counters(event);
        self.packet(&Event { extra_counters: &at_begin, ..*event }, EventForm::of(class.begin()));
        let begin = event.time;
        let of_slice = SliceEnd { begin, time: end, counters };
        let ends = &mut self.tracks.get(event.track).ends;
        if end <= begin || ends.len() >= MOST_ENDS {
            return self.end(event.track, of_slice);
        }
        // Only threads find their overlapping slices before.
        let crosses = ends.last().is_some_and(|inner| inner.begin < begin && inner.time < end);
        // Of slices with equal end, the last to begin ends first.
        let place = ends.partition_point(|other| other.time >= end);
        ends.insert(place, of_slice);
        self.report.add_many("overlapping slices, whose ends may be exchanged", u64::from(crosses));
    }

    /// Counts a complete slice of a thread that becomes a begin and an end, if others may be in between.
    fn may_cross(&mut self, event: &Event<'_>, end: i64) {
        let track = self.tracks.get(event.track);
        let begins_until = || self.sequences[track.sequence].slices_until();
        let crossing = track.crossing.get_or_insert_with(|| Crossing::after(begins_until()));
        let of_others = crossing.complete(event.time, end);
        let tie = || self.nesting.has_begin(event.track, end, event.time).then_some(UNSURE);
        if let Some(what) = of_others.or_else(tie) {
            self.report.add(what);
        }
    }

    /// Writes a complete slice on a track beside its thread.
    fn beside(&mut self, event: &Event<'_>, end: i64) {
        self.report.add(BESIDE);
        let (lane, _) = self.nesting.lane(event.track, event.time, end);
        self.on_lane(event, end, lane, "overlapping");
    }

    /// Writes a complete slice on the track beside its thread with this number and name.
    fn on_lane(&mut self, event: &Event<'_>, end: i64, number: usize, name: &str) {
        let time = self.set_time(event.time);
        self.tracks.describe(&mut self.out, event.track, &[], time);
        let (uuid, is_new) = self.tracks.lane(event.track, number);
        if is_new {
            let thread = self.tracks.get(event.track).uuid;
            let track = Track { name: name.into(), ..Track::new(event.track, TrackKind::Slices) };
            describe(&mut self.out, GENERAL_SEQUENCE, &track, (uuid, Some(thread)), &[], time);
        }
        let form = |kind| EventForm { track: Some(uuid), ..EventForm::of(kind) };
        let [at_begin, at_end] = counters(event);
        self.packet(&Event { extra_counters: &at_begin, ..*event }, form(EventType::SliceBegin));
        let event = Event { extra_counters: &at_end, ..Event::new(end, event.track, EventKind::End) };
        self.packet(&event, form(EventType::SliceEnd));
    }

    /// Writes the ends of a track's slices up to `time`.
    #[inline]
    pub(super) fn end_slices(&mut self, track: TrackId, time: i64) {
        while let Some(end) = self.tracks.get(track).ends.pop_if(|end| end.time <= time) {
            self.end(track, end);
        }
    }

    fn end(&mut self, track: TrackId, end: SliceEnd) {
        let class = self.tracks.get(track).class;
        let event = Event { extra_counters: &end.counters, ..Event::new(end.time, track, EventKind::End) };
        self.packet(&event, EventForm::of(class.end()));
    }

    fn packet(&mut self, event: &Event<'_>, form: EventForm) {
        let time = self.set_time(event.time);
        self.describe(event, form, time);
        let (class, uuid, counter_category) = self.enter(event.track);
        self.count_cut_flows(event);
        self.fields.clear();
        if !event.extra_counters.is_empty() {
            self.extra_counters(event, time);
        }
        let Self { out, fields, sequences, locations, stacks, report, .. } = self;
        let sequence = &mut sequences[self.current];
        sequence.begin(out, time);
        let one;
        let categories = match event.categories {
            Categories::None => &[][..],
            Categories::One(category) if class == TrackClass::Counter && category.id == counter_category => {
                &[]
            }
            Categories::One(category) => {
                one = [sequence.name(out, InternedKind::Category, category)];
                &one[..]
            }
            Categories::Many(many) => {
                put_categories(out, fields, sequence, many);
                &[]
            }
        };
        let has_name = event.name.id.is_some() || !event.name.text.is_empty();
        let name = has_name.then(|| sequence.name(out, InternedKind::EventName, event.name));
        if !event.args.is_empty() {
            event.args.each(&mut |name, value| put_argument(out, fields, sequence, report, name, value));
        }
        let details = event.details();
        let location = details.location.map(|at| sequence.location(out, locations, at));
        let log = details.log.map(|log| sequence.log_message(out, locations, log));
        // Frames without a module and an address need no interning.
        let (inline, interned) = match details.stack {
            Some(stack) if is_of_names(stack) => (Some(stack), None),
            stack => (None, stack.and_then(|stack| sequence.callstack(out, stack, &mut stacks.shown))),
        };
        let (timestamp, clock_id) = sequence.timestamp(time);
        let legacy = legacy_event(event, form.legacy);
        let packet = te::Event {
            clock_id,
            categories,
            name,
            track_uuid: form.track.or((class != TrackClass::Thread).then_some(uuid)),
            counter: form.counter,
            flow_ids: details.flows,
            terminating_flow_ids: details.ending_flows,
            correlation: details.correlation.map(|text| te::Correlation::Name(Name::Text(text))),
            location,
            log,
            callstack: interned.map(te::Callstack::Iid),
            callstack_weight: details.stack_weight,
            ..te::Event::new(sequence.number, form.kind, timestamp)
        };
        te::event_with(out, &packet, |e| {
            e.extend_from_slice(fields);
            if let Some(stack) = inline {
                put_message(e, track_event::CALLSTACK, |message| put_inline_stack(message, stack));
            }
            if let Some(legacy) = legacy {
                put_message(e, track_event::LEGACY_EVENT, |l| legacy.put(l));
            }
        });
    }

    #[inline]
    fn count_cut_flows(&mut self, event: &Event<'_>) {
        if event.details.is_none() {
            return;
        }
        if let Some((id, _)) = event.bound() {
            self.report.add_many(CUT, self.flows.through(&[id]));
        }
        if !event.flows().is_empty() || !event.ending_flows().is_empty() {
            let cut = self.flows.through(event.flows()) + self.flows.through(event.ending_flows());
            self.report.add_many(CUT, cut);
        }
    }

    #[inline]
    fn set_time(&mut self, time: i64) -> u64 {
        self.time = u64::try_from(time).unwrap_or_else(|_| {
            self.report.add("times before 0, which became 0");
            0
        });
        self.time
    }

    /// Makes the sequence of the track's thread the current one. Returns the track's class, its UUID, and the
    /// category in its description.
    #[inline]
    fn enter(&mut self, id: TrackId) -> (TrackClass, TrackUuid, Option<StringId>) {
        let track = self.tracks.get(id);
        let known = (track.class, track.uuid, track.category);
        if track.class == TrackClass::Thread {
            if track.sequence == 0 {
                track.sequence = self.sequences.len();
                #[allow(clippy::cast_possible_truncation)] // fewer than tracks
                let number = SequenceId(self.sequences.len() as u32 + 1);
                self.sequences.push(Sequence::new(number, track.uuid));
            }
            self.current = track.sequence;
        }
        known
    }

    /// Describes the track of an event, if that is not done. A counter track gets the categories of its first
    /// value.
    fn describe(&mut self, event: &Event<'_>, form: EventForm, time: u64) {
        if form.counter.is_none() {
            return self.tracks.describe(&mut self.out, event.track, &[], time);
        }
        match event.categories {
            Categories::One(category) => {
                let track = self.tracks.get(event.track);
                track.category = track.category.or(category.id);
                self.tracks.describe(&mut self.out, event.track, &[category.text], time);
            }
            _ => self.tracks.describe(&mut self.out, event.track, &[], time),
        }
    }

    /// Adds the values of extra counters to the fields of the event. If their tracks equal the sequence's
    /// default, the tracks are omitted.
    fn extra_counters(&mut self, event: &Event<'_>, time: u64) {
        for (track, _) in event.extra_counters {
            self.tracks.describe(&mut self.out, *track, &[], time);
        }
        let is_whole = event.extra_counters.iter().all(|(_, value)| matches!(value, CounterValue::Int(_)));
        let sequence = &mut self.sequences[self.current];
        let uuids = event.extra_counters.iter().map(|(track, _)| self.tracks.get(*track).uuid);
        let uuids: Vec<_> = uuids.collect();
        if is_whole && sequence.extra_counters.is_empty() {
            sequence.set_extra_counters(uuids.clone());
        }
        let is_listed = is_whole && sequence.extra_counters == uuids;
        for ((_, value), uuid) in event.extra_counters.iter().zip(uuids) {
            let (field, of) = match value {
                CounterValue::Int(value) => {
                    put_uint(&mut self.fields, track_event::EXTRA_COUNTER_VALUES, value.cast_unsigned());
                    (track_event::EXTRA_COUNTER_TRACK_UUIDS, uuid)
                }
                CounterValue::Double(value) => {
                    let field = track_event::EXTRA_DOUBLE_COUNTER_VALUES;
                    hairline_formats::proto::put_double(&mut self.fields, field, *value);
                    (track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS, uuid)
                }
            };
            if !is_listed {
                put_uint(&mut self.fields, field, of.0);
            }
        }
    }
}

/// Whether the frames of a call stack are functions and lines only.
fn is_of_names(stack: &dyn Stack) -> bool {
    let mut is_of_names = true;
    stack.each(&mut |frame| {
        is_of_names &= frame.module.is_empty() && frame.build_id.is_empty() && frame.address == 0;
    });
    is_of_names
}

fn put_inline_stack(message: &mut Vec<u8>, stack: &dyn Stack) {
    stack.each(&mut |StackFrame { function, file, line, .. }| {
        te::put_inline_frame(message, &SourceLocation { file, function, line });
    });
}

/// The legacy part of an event: its phase, and the flow that it is bound to.
fn legacy_event(event: &Event<'_>, legacy: Option<LegacyEvent<'static>>) -> Option<LegacyEvent<'static>> {
    let Some(bound) = event.bound() else { return legacy };
    Some(LegacyEvent { bind: Some(binding(bound)), ..legacy.unwrap_or_default() })
}

/// A complete slice as a single event. Only a thread's slice of whole microseconds can have this form, and no
/// value of a counter at its end.
fn complete(class: TrackClass, event: &Event<'_>) -> Option<EventForm> {
    let EventKind::Complete { duration } = event.kind else { return None };
    let is_whole = class == TrackClass::Thread && duration >= 0 && duration % 1000 == 0;
    let has_one = is_whole && event.counter_values().all(|(_, _, passed)| passed == 0);
    let legacy = LegacyEvent { phase: b'X', duration_us: Some(duration / 1000), ..LegacyEvent::default() };
    has_one.then(|| EventForm::legacy(legacy))
}

/// The values of a complete slice's extra counters: at its begin and at its end.
fn counters(event: &Event<'_>) -> [Box<[(TrackId, CounterValue)]>; 2] {
    let part = |is_wanted: fn(i64) -> bool| {
        let of_part = event.counter_values().filter(|(_, _, passed)| is_wanted(*passed));
        of_part.map(|(track, value, _)| (track, value)).collect()
    };
    [part(|passed| passed == 0), part(|passed| passed > 0)]
}

/// Adds several categories to the fields of the event. Readers list ids before texts, so ids are used only if
/// all categories have one.
fn put_categories(out: &mut Vec<u8>, fields: &mut Vec<u8>, sequence: &mut Sequence, many: &dyn Texts) {
    let mut all_known = true;
    many.each(&mut |category| all_known &= category.id.is_some());
    many.each(&mut |category| {
        let category = Text { id: category.id.filter(|_| all_known), ..category };
        match sequence.name(out, InternedKind::Category, category) {
            Name::Iid(iid) => put_uint(fields, track_event::CATEGORY_IIDS, iid),
            Name::Text(text) => put_str(fields, track_event::CATEGORIES, text),
        }
    });
}

/// Adds an argument to the fields of the event.
#[inline]
pub(super) fn put_argument(
    out: &mut Vec<u8>,
    fields: &mut Vec<u8>,
    sequence: &mut Sequence,
    report: &mut Report,
    name: Text<'_>,
    value: Value<'_>,
) {
    let name = sequence.name(out, InternedKind::AnnotationName, name);
    let value = match value {
        Value::Null => return report.add("arguments without a value, left out"),
        Value::Interned { iid, text } => {
            let id = StringId::of_iid(iid);
            sequence.name(out, InternedKind::AnnotationText, Text { text, id });
            if id.is_some() { value } else { Value::Str(text) }
        }
        value => {
            report.add_many(TOO_DEEP, value.is_too_deep().into());
            report.add_many("bytes became text in hexadecimal", matches!(value, Value::Blob(_)).into());
            value
        }
    };
    match name {
        Name::Iid(iid) if !matches!(value, Value::Dict(_) | Value::Array(_)) => {
            put_short_annotation(fields, iid, &value);
        }
        name => put_named(fields, name, &value),
    }
}
