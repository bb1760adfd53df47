//! An event, taken out of its packet. Its bytes are kept until the next one, so that its arguments are read where they stand.

use std::ops::Range;

use hairline_formats::trace_event_json::Json;
use hairline_formats::track_event::{
    self, Annotation, AnnotationValue, Annotations, CounterValue, Priority, TrackEvent,
};
use hairline_formats::{DecodeError, Entries, Value};

use super::sequence::{Place, Sequence};
use super::state::State;
use super::table::{Name, Table};
use crate::{Arguments, Categories, Context, Event, EventKind, Log, Text, Texts, TrackId};

/// A string of the event that is being read.
#[derive(Clone, Debug, Default)]
pub(super) enum Word {
    /// There is none.
    #[default]
    None,
    /// By its number on the sequence.
    Iid(u64),
    /// In full, a part of [`Current::own`].
    Own(Range<usize>),
}

/// The event that is being read.
#[derive(Debug)]
pub(super) struct Current {
    /// The place of its sequence among all.
    pub(super) sequence: usize,
    pub(super) time: i64,
    pub(super) track: TrackId,
    pub(super) kind: EventKind,
    pub(super) name: Word,
    pub(super) categories: Vec<Word>,
    /// The counter whose categories it has, if it has none of its own.
    pub(super) counter: Option<u32>,
    pub(super) flows: Vec<u64>,
    pub(super) ending_flows: Vec<u64>,
    pub(super) extra_counters: Vec<(TrackId, CounterValue)>,
    pub(super) correlation: Word,
    pub(super) place: Option<Place>,
    pub(super) log: Option<(u64, Priority)>,
    /// Texts that the event has in full.
    own: String,
    /// The event as it stands in the packet, if it has arguments.
    bytes: Vec<u8>,
}

impl Default for Current {
    fn default() -> Self {
        Self {
            sequence: 0,
            time: 0,
            track: TrackId(0),
            kind: EventKind::Instant,
            name: Word::None,
            categories: Vec::new(),
            counter: None,
            flows: Vec::new(),
            ending_flows: Vec::new(),
            extra_counters: Vec::new(),
            correlation: Word::None,
            place: None,
            log: None,
            own: String::new(),
            bytes: Vec::new(),
        }
    }
}

impl Current {
    /// Forgets the event before this one, and keeps what memory it had.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.name = Word::None;
        self.categories.clear();
        self.counter = None;
        self.flows.clear();
        self.ending_flows.clear();
        self.extra_counters.clear();
        self.correlation = Word::None;
        self.place = None;
        self.log = None;
        self.own.clear();
        self.bytes.clear();
    }

    /// Keeps a text that the event has in full.
    pub(super) fn keep(&mut self, text: &str) -> Word {
        let start = self.own.len();
        self.own.push_str(text);
        Word::Own(start..self.own.len())
    }

    /// Keeps a name or a category.
    #[inline]
    pub(super) fn word(&mut self, name: track_event::Name<'_>) -> Word {
        match name {
            track_event::Name::Iid(iid) => Word::Iid(iid),
            track_event::Name::Text(text) => self.keep(text),
        }
    }

    /// Keeps an event's bytes, for its arguments.
    pub(super) fn keep_bytes(&mut self, event: &[u8]) {
        self.bytes.extend_from_slice(event);
    }

    /// Takes what lists the event has.
    pub(super) fn take_lists(
        &mut self,
        event: &TrackEvent<'_>,
        context: &Context,
    ) -> Result<(), DecodeError> {
        for iid in event.category_iids() {
            self.categories.push(Word::Iid(iid?));
        }
        for category in event.categories() {
            let word = self.keep(category?);
            self.categories.push(word);
        }
        for id in event.flow_ids() {
            self.flows.push(context.flow(id?));
        }
        for id in event.terminating_flow_ids() {
            self.ending_flows.push(context.flow(id?));
        }
        if event.has_annotations() {
            self.keep_bytes(event.bytes());
        }
        Ok(())
    }

    #[inline]
    fn text<'s>(&'s self, word: &Word, table: &'s Table<Name>) -> Text<'s> {
        match word {
            Word::None => Text::default(),
            Word::Iid(iid) => table.get(*iid).map(Name::text).unwrap_or_default(),
            Word::Own(range) => Text::from(&self.own[range.clone()]),
        }
    }
}

impl State {
    fn current_sequence(&self) -> &Sequence {
        &self.sequences[self.current.sequence]
    }

    /// The event that was read last, as an item.
    #[inline]
    pub(super) fn event(&self) -> Event<'_> {
        let (current, sequence) = (&self.current, self.current_sequence());
        let categories = match &current.categories[..] {
            [] => {
                let counter = current.counter.and_then(|track| self.tracks.get(track).counter());
                let category = counter.and_then(|counter| counter.categories.as_ref());
                category.map_or(Categories::None, |category| Categories::One(category.text()))
            }
            [one] => Categories::One(current.text(one, &sequence.categories)),
            _ => Categories::Many(self),
        };
        Event {
            name: current.text(&current.name, &sequence.names),
            categories,
            args: if current.bytes.is_empty() { &crate::NoArguments } else { self },
            flows: &current.flows,
            ending_flows: &current.ending_flows,
            extra_counters: &current.extra_counters,
            correlation: match &current.correlation {
                Word::None => None,
                word => Some(current.text(word, &sequence.correlations).text),
            },
            location: current.place.as_ref().map(Place::location),
            log: current.log.map(|(body, priority)| Log {
                body: sequence.log_bodies.get(body).map_or("", |body| &body.text),
                priority,
            }),
            ..Event::new(current.time, current.track, current.kind)
        }
    }
}

impl Texts for State {
    fn each(&self, show: &mut dyn FnMut(Text<'_>)) {
        let table = &self.current_sequence().categories;
        self.current.categories.iter().for_each(|word| show(self.current.text(word, table)));
    }
}

impl Arguments for State {
    fn each(&self, show: &mut dyn FnMut(Text<'_>, Value<'_>)) {
        let sequence = self.current_sequence();
        // What is not well-formed was refused when the packet was read, except deep inside: there it ends the arguments.
        for annotation in Annotations::of_event(&self.current.bytes).map_while(Result::ok) {
            with_value(&annotation, sequence, &mut |value| show(name(&annotation, sequence), value));
        }
    }

    fn is_empty(&self) -> bool {
        self.current.bytes.is_empty()
    }
}

fn name<'a>(annotation: &Annotation<'a>, sequence: &'a Sequence) -> Text<'a> {
    let known = annotation.name_iid.and_then(|iid| sequence.annotation_names.get(iid));
    known.map_or_else(|| Text::from(annotation.name.unwrap_or_default()), Name::text)
}

fn with_value(annotation: &Annotation<'_>, sequence: &Sequence, show: &mut dyn FnMut(Value<'_>)) {
    match &annotation.value {
        AnnotationValue::Value(value) => show(*value),
        AnnotationValue::StringIid(iid) => show(match sequence.annotation_texts.get(*iid) {
            Some(Name { text, id: Some(id) }) => Value::Interned { iid: u64::from(id.0) + 1, text },
            Some(Name { text, id: None }) => Value::Str(text),
            None => Value::Null,
        }),
        AnnotationValue::Json(text) => match Json::new(text) {
            Some(json) => json.with(show),
            None => show(Value::Str(text)),
        },
        AnnotationValue::Dict(entries) => show(Value::Dict(&Nested { entries: entries.clone(), sequence })),
        AnnotationValue::Array(entries) => show(Value::Array(&Nested { entries: entries.clone(), sequence })),
        _ => show(Value::Null),
    }
}

/// What a dict or an array holds.
struct Nested<'a> {
    entries: Annotations<'a>,
    sequence: &'a Sequence,
}

impl Entries for Nested<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        for entry in self.entries.clone().map_while(Result::ok) {
            with_value(&entry, self.sequence, &mut |value| show(name(&entry, self.sequence).text, value));
        }
    }
}
