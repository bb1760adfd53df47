//! The current event as an item. Its arguments are decoded on demand from its bytes, which are kept until the
//! next event.

use hairline_formats::trace_event_json::Json;
use hairline_formats::track_event::{Annotation, AnnotationValue, Annotations, NestedValue, NestedValues};
use hairline_formats::{Entries, Value};

use crate::track_event::read::current::TextRef;
use crate::track_event::read::sequence::{OwnedLocation, Rest, Sequence, UndefinedArguments};
use crate::track_event::read::state::State;
use crate::track_event::read::texts::SharedTexts;
use crate::{Arguments, Categories, Detailed, Event, EventDetails, Log, NoArguments, Stack, Text, Texts};

impl State {
    fn current_sequence(&self) -> &Sequence {
        &self.sequences[self.current.sequence]
    }

    /// The current event as an item.
    #[inline]
    pub(super) fn event(&self) -> Event<'_> {
        let (current, sequence) = (&self.current, self.current_sequence());
        let categories = match &current.categories[..] {
            [] => {
                let counter = current.counter.and_then(|track| self.tracks.get(track).counter());
                let category = counter.and_then(|counter| counter.categories);
                category.map_or(Categories::None, |category| Categories::One(self.texts.text(category)))
            }
            [one] => Categories::One(current.text(one, &sequence.categories, &self.texts)),
            _ => Categories::Many(self),
        };
        Event {
            name: current.text(&current.name, &sequence.names, &self.texts),
            categories,
            args: if current.bytes.is_empty() { &NoArguments } else { self },
            extra_counters: &current.extra_counters,
            details: current.has_details().then_some(self as &dyn Detailed),
            ..Event::new(current.time, current.track, current.kind)
        }
    }
}

impl Detailed for State {
    fn details(&self) -> EventDetails<'_> {
        let (current, sequence) = (&self.current, self.current_sequence());
        EventDetails {
            flows: &current.flows,
            ending_flows: &current.ending_flows,
            bound: current.bound,
            correlation: match &current.correlation {
                TextRef::None => None,
                text_ref => Some(current.text(text_ref, &sequence.rest().correlations, &self.texts).text),
            },
            location: current.location.as_ref().map(OwnedLocation::location),
            log: current.log.map(|(body, priority)| Log {
                body: sequence.rest().log_bodies.get(body).map_or("", |body| self.texts.text(*body).text),
                priority,
                tag: current.tag.as_ref().map(OwnedLocation::location),
            }),
            stack: current.has_stack.then_some(self as &dyn Stack),
            stack_weight: current.stack_weight,
        }
    }
}

impl Texts for State {
    fn each(&self, show: &mut dyn FnMut(Text<'_>)) {
        let table = &self.current_sequence().categories;
        let text = |text_ref| self.current.text(text_ref, table, &self.texts);
        self.current.categories.iter().for_each(|text_ref| show(text(text_ref)));
    }
}

impl Arguments for State {
    fn each(&self, show: &mut dyn FnMut(Text<'_>, Value<'_>)) {
        let rest = self.current_sequence().rest();
        let texts = Interning { rest, texts: &self.texts, undefined: &self.undefined };
        // Errors on the top level were found when the packet was read. An error in nested arguments ends
        // them.
        for annotation in Annotations::of_event(&self.current.bytes).map_while(Result::ok) {
            let lossy = texts.lossy_name(&annotation);
            texts.with_value(&annotation, &mut |value| {
                show(lossy.as_deref().map_or_else(|| texts.name(&annotation), Text::from), value);
            });
        }
    }

    fn is_empty(&self) -> bool {
        self.current.bytes.is_empty()
    }
}

/// The texts that arguments refer to.
#[derive(Clone, Copy)]
struct Interning<'a> {
    rest: &'a Rest,
    texts: &'a SharedTexts,
    undefined: &'a UndefinedArguments,
}

impl<'a> Interning<'a> {
    /// The name of an argument, if it is not UTF-8.
    #[inline]
    fn lossy_name(self, annotation: &Annotation<'_>) -> Option<String> {
        let bytes = annotation.wrong_name?;
        self.undefined.add_wrong_text();
        Some(String::from_utf8_lossy(bytes).into_owned())
    }

    fn name(self, annotation: &Annotation<'a>) -> Text<'a> {
        let known = annotation.name_iid.and_then(|iid| {
            let known = self.rest.annotation_names.get(iid);
            if known.is_none() && iid != 0 {
                self.undefined.add_name(iid);
            }
            known
        });
        match known {
            Some(known) => self.texts.text(*known),
            None => Text::from(annotation.name.unwrap_or_default()),
        }
    }

    fn with_value(self, annotation: &Annotation<'_>, show: &mut dyn FnMut(Value<'_>)) {
        match &annotation.value {
            // A text that is not UTF-8: of events that take the short way, arguments are not looked at before.
            AnnotationValue::Value(Value::Blob(bytes)) => {
                self.undefined.add_wrong_text();
                show(Value::Str(&String::from_utf8_lossy(bytes)));
            }
            AnnotationValue::Value(value) => show(*value),
            AnnotationValue::StringIid(iid) => show(match self.rest.annotation_texts.get(*iid) {
                Some(known) => match self.texts.text(*known) {
                    Text { text, id: Some(id) } => Value::Interned { iid: id.iid(), text },
                    Text { text, id: None } => Value::Str(text),
                },
                None => {
                    self.undefined.add_text(*iid);
                    Value::Null
                }
            }),
            AnnotationValue::Json(text) => match Json::new(text) {
                Some(json) => json.with(show),
                None => show(Value::Str(text)),
            },
            AnnotationValue::Nested(value) => show_nested(value, self.undefined, show),
            AnnotationValue::Dict(entries) => {
                show(Value::Dict(&Nested { entries: entries.clone(), texts: self }));
            }
            AnnotationValue::Array(entries) => {
                show(Value::Array(&Nested { entries: entries.clone(), texts: self }));
            }
            _ => show(Value::Null),
        }
    }
}

/// Shows a value of an older tracer.
fn show_nested(value: &NestedValue<'_>, undefined: &UndefinedArguments, show: &mut dyn FnMut(Value<'_>)) {
    match value {
        NestedValue::Value(Value::Blob(bytes)) => {
            undefined.add_wrong_text();
            show(Value::Str(&String::from_utf8_lossy(bytes)));
        }
        NestedValue::Value(value) => show(*value),
        NestedValue::Dict(values) => show(Value::Dict(&Older { values: values.clone(), undefined })),
        NestedValue::Array(values) => show(Value::Array(&Older { values: values.clone(), undefined })),
    }
}

/// The entries of a dict or an array of an older tracer.
struct Older<'a> {
    values: NestedValues<'a>,
    undefined: &'a UndefinedArguments,
}

impl Entries for Older<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        for (key, value) in self.values.clone().map_while(Result::ok) {
            show_nested(&value, self.undefined, &mut |value| show(key, value));
        }
    }
}

/// The entries of a dict or an array.
struct Nested<'a> {
    entries: Annotations<'a>,
    texts: Interning<'a>,
}

impl Entries for Nested<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        for entry in self.entries.clone().map_while(Result::ok) {
            let lossy = self.texts.lossy_name(&entry);
            self.texts.with_value(&entry, &mut |value| {
                show(lossy.as_deref().unwrap_or_else(|| self.texts.name(&entry).text), value);
            });
        }
    }
}
