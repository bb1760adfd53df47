//! Events of any kind as FXT records.
//!
//! | event | records |
//! |---|---|
//! | slice, instant or counter on the track of this thread | the record of its kind |
//! | slice or instant on the track of another thread | the record of its kind, with that thread inline |
//! | async interval | async records with its id |
//! | log message | a log record, and an instant with the text, since importers skip log records |
//! | flow | flow records, in the slice of this thread that the flow goes through |
//! | other tracks, counters with a unit | TrackEvent packets in a Perfetto blob, with their flows |

use std::fmt::Write;

use hairline_formats::track_event::TrackUuid;
use hairline_formats::{Value, fxt};

use crate::on::base::memory::{Bytes, List, Text};
use crate::on::base::platform::process;
use crate::on::callsite::{Callsite, StringId};
use crate::on::encode::fit::is_nested;
use crate::on::encode::no_room::NoRoom;
use crate::on::encode::{COUNTER_ID, FXT_THREAD, MAX_NAME, cut};
use crate::on::event::extras::FlowUse;
use crate::on::event::on_track::TrackRef;
use crate::on::event::owned_arguments::OwnedArguments;
use crate::on::event::track::TrackKind;
use crate::on::event::{Action, ArgumentName, Event, Moment};
use crate::vocabulary::Correlation;

/// The category and the name of all flow records. Readers distinguish flows by their ids.
const FLOW: fxt::StringRef<'static> = fxt::StringRef::Empty;

/// Whether FXT has a record for the event. Other events have a unit, or a track that FXT does not know: they
/// are TrackEvent packets in a blob.
pub(crate) fn has_own_record(event: &Event<'_>) -> bool {
    let is_counter = event.action == Action::Counter;
    match event.track {
        None => !is_counter || event.callsite.site().counter.is_plain(),
        Some(TrackRef::Track(track)) => matches!(track.kind(), TrackKind::Thread(_)) && !is_counter,
        Some(TrackRef::Async(interval)) => interval.is_plain() && !is_counter,
    }
}

/// How a record refers to its strings and its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum References {
    /// By their indexes in its sequence.
    Indexed,
    /// They are inline: the record needs no other one.
    Inline,
}

/// An argument of a record.
type Argument<'a> = (fxt::StringRef<'a>, Value<'a>);

/// The memory of a record's arguments, which are many bytes for a stack.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    arguments: List<Argument<'static>>,
    /// The number of leaves of each argument.
    leaves: List<usize>,
}

/// The parts of an event's record that do not come from the event.
pub(crate) struct Record<'a> {
    pub(crate) references: References,
    pub(crate) own_thread: &'a process::Thread,
    /// The track of this thread.
    pub(crate) own_track: TrackUuid,
    /// Whether a slice of this thread is open.
    pub(crate) in_slice: bool,
    /// Whether the record contains the event's place in the source.
    pub(crate) located: bool,
    pub(crate) at: &'a Moment,
}

impl Record<'_> {
    /// Writes the event and the flows through it. Returns the number of arguments that do not fit. `nested`
    /// is a buffer for nested values.
    pub(crate) fn put(
        &self,
        out: &mut Bytes,
        event: &Event<'_>,
        nested: &mut OwnedArguments,
        lists: &mut Lists,
    ) -> Result<u64, NoRoom> {
        let interned = self.source_index(event.callsite);
        let inline = (self.located && interned.is_none()).then(|| location(event.callsite));
        let own = [
            (
                if event.action == Action::End { "cpu_end_ns" } else { "cpu_begin_ns" },
                self.at.cpu.map(Value::U64),
            ),
            (
                "correlation_id",
                event.extras.correlation.map(|c| match c {
                    Correlation::Id(id) => Value::U64(id),
                    Correlation::Name(name) => Value::Str(cut(name)),
                }),
            ),
            ("source", interned.or_else(|| inline.as_ref().map(|text| Value::Str(text.as_str())))),
        ];
        let own = own.iter().filter_map(|&(name, value)| Some((fxt::StringRef::Inline(name), value?)));
        let mut args = std::mem::take(&mut lists.arguments).emptied();
        let omitted = self.put_arguments(&mut args, event, own, nested, &mut lists.leaves);
        if let Some((_, body)) = event.log {
            fxt::log(out, self.at.now, fxt::ThreadRef::Index(FXT_THREAD), body);
        }
        let outcome = self.put_records(out, event, &args);
        lists.arguments = args.emptied();
        outcome.map(|()| omitted)
    }

    /// Lists as many arguments as an event can have: those of the program in its order, as on the hot path,
    /// and then `own`. Where not all fit, those that are not nested come first. Returns the number of the
    /// others.
    fn put_arguments<'a>(
        &self,
        args: &mut List<Argument<'a>>,
        event: &Event<'a>,
        own: impl Iterator<Item = Argument<'a>> + Clone,
        nested: &'a mut OwnedArguments,
        leaves: &mut List<usize>,
    ) -> u64 {
        nested.clear();
        leaves.clear();
        for (key, value) in event.arguments() {
            let before = nested.count();
            nested.add_nested(key.name(), &value);
            leaves.push(nested.count() - before);
        }
        let mut nested = nested.iter();
        let flat = event.arguments().filter(|(_, value)| !is_nested(value)).count() + own.clone().count();
        let mut room_for_leaves = fxt::MAX_ARGS.saturating_sub(flat);
        let mut omitted = 0;
        let mut add = |argument, has_room| match has_room && args.len() < fxt::MAX_ARGS {
            true => args.push(argument),
            false => omitted += 1,
        };
        for ((key, value), leaves) in event.arguments().zip(leaves.iter()) {
            if !is_nested(&value) {
                add((self.key_ref(key), self.value(value)), true);
            }
            for (path, leaf) in nested.by_ref().take(*leaves) {
                add((fxt::StringRef::Inline(cut(path)), leaf), room_for_leaves > 0);
                room_for_leaves = room_for_leaves.saturating_sub(1);
            }
        }
        own.for_each(|argument| add(argument, true));
        omitted
    }

    /// Returns the event's place in the source as the index of a string of its sequence. `None` if the record
    /// has no place, or has its text inline.
    fn source_index(&self, callsite: &'static Callsite) -> Option<Value<'static>> {
        let is_indexed = self.located && self.references == References::Indexed;
        let index = is_indexed.then(|| callsite.location_id().index()).flatten()?;
        (index != 0).then_some(Value::Interned { iid: u64::from(index), text: "" })
    }

    fn value<'a>(&self, value: Value<'a>) -> Value<'a> {
        match value {
            Value::Interned { text, .. }
                if self.references == References::Inline || !fits_string_record(text) =>
            {
                Value::Str(text)
            }
            value => value,
        }
    }

    fn put_records(
        &self,
        out: &mut Bytes,
        event: &Event<'_>,
        args: &[(fxt::StringRef<'_>, Value<'_>)],
    ) -> Result<(), NoRoom> {
        let has_flows = event.extras.flows(self.at.new_flows).next().is_some();
        // A flow goes through an open slice. An instant with a flow becomes a slice of no length.
        let is_empty_slice = has_flows && event.action == Action::Instant && event.track.is_none();
        let (kind, payload) = match (event.action, event.track) {
            (Action::Begin, Some(TrackRef::Async(scope))) => {
                (fxt::EventKind::AsyncBegin, Some(scope.uuid().0))
            }
            (Action::End, Some(TrackRef::Async(scope))) => (fxt::EventKind::AsyncEnd, Some(scope.uuid().0)),
            (Action::Instant, Some(TrackRef::Async(scope))) => {
                (fxt::EventKind::AsyncInstant, Some(scope.uuid().0))
            }
            (Action::Begin, _) => (fxt::EventKind::DurationBegin, None),
            (Action::End, _) => (fxt::EventKind::DurationEnd, None),
            (Action::Instant, _) if is_empty_slice => (fxt::EventKind::DurationBegin, None),
            (Action::Instant, _) => (fxt::EventKind::Instant, None),
            (Action::Counter, _) => (fxt::EventKind::Counter, Some(COUNTER_ID)),
        };
        let main = fxt::Event {
            kind,
            timestamp: self.at.now,
            thread: self.thread(event),
            category: self.string_ref(event.callsite.category_id(), event.callsite.category()),
            name: match (event.track, event.action, event.extras.name) {
                // Readers find the begin of an async interval by its name.
                (Some(TrackRef::Async(scope)), Action::End, _) => self.name_of(scope.callsite(), None),
                (_, _, name) => self.name_of(event.callsite, name),
            },
            args,
            payload,
        };
        put_event(out, &main)?;
        if has_flows {
            self.put_flows_in_slice(out, event, &main, is_empty_slice)?;
        }
        Ok(())
    }

    /// Writes the flows through the event that `main` records, within a slice of this thread.
    /// `is_empty_slice`: `main` begins a slice that ends here.
    fn put_flows_in_slice(
        &self,
        out: &mut Bytes,
        event: &Event<'_>,
        main: &fxt::Event<'_>,
        is_empty_slice: bool,
    ) -> Result<(), NoRoom> {
        let here = fxt::Event { thread: self.own_thread(), args: &[], payload: None, ..*main };
        let is_own_slice = event.track.is_none() && event.action != Action::Counter;
        let needs_slice = !(is_empty_slice || is_own_slice || self.in_slice);
        if needs_slice {
            put_event(out, &fxt::Event { kind: fxt::EventKind::DurationBegin, ..here })?;
        }
        self.put_flows(out, event);
        if is_empty_slice || needs_slice {
            put_event(out, &fxt::Event { kind: fxt::EventKind::DurationEnd, ..here })?;
        }
        Ok(())
    }

    fn put_flows(&self, out: &mut Bytes, event: &Event<'_>) {
        for (flow, flow_use) in event.extras.flows(self.at.new_flows) {
            let kind = match flow_use {
                FlowUse::Begin => fxt::EventKind::FlowBegin,
                FlowUse::Step => fxt::EventKind::FlowStep,
                FlowUse::End => fxt::EventKind::FlowEnd,
            };
            let flow = fxt::Event {
                kind,
                timestamp: self.at.now,
                thread: self.own_thread(),
                category: FLOW,
                name: FLOW,
                args: &[],
                payload: Some(flow.id()),
            };
            fxt::event(out, &flow);
        }
    }

    /// The thread of the event: this thread, or the thread whose track the event is on.
    fn thread(&self, event: &Event<'_>) -> fxt::ThreadRef {
        match event.track {
            Some(TrackRef::Track(track)) if track.track_uuid() != self.own_track => match track.kind() {
                TrackKind::Thread(thread) => {
                    fxt::ThreadRef::Inline { process: u64::from(thread.pid), thread: u64::from(thread.tid) }
                }
                _ => self.own_thread(),
            },
            _ => self.own_thread(),
        }
    }

    fn own_thread(&self) -> fxt::ThreadRef {
        match self.references {
            References::Indexed => fxt::ThreadRef::Index(FXT_THREAD),
            References::Inline => fxt::ThreadRef::Inline {
                process: u64::from(self.own_thread.pid),
                thread: u64::from(self.own_thread.tid),
            },
        }
    }

    fn key_ref<'a>(&self, key: ArgumentName<'a>) -> fxt::StringRef<'a> {
        match key {
            ArgumentName::Key(key) => self.string_ref(key.id(), key.name()),
            ArgumentName::Text(name) => fxt::StringRef::Inline(cut(name)),
        }
    }

    fn name_of<'a>(&self, callsite: &'static Callsite, name: Option<&'a str>) -> fxt::StringRef<'a> {
        match name {
            Some(name) => fxt::StringRef::Inline(cut(name)),
            None => self.string_ref(callsite.name_id(), callsite.name()),
        }
    }

    /// Refers to a string by its index, or inline if the string has none.
    fn string_ref(&self, id: StringId, text: &'static str) -> fxt::StringRef<'static> {
        match id.index() {
            Some(index) if self.references == References::Indexed => indexed(index),
            _ => fxt::StringRef::Inline(cut(text)),
        }
    }
}

/// Writes a record, if FXT has room for one of this length.
fn put_event(out: &mut Bytes, event: &fxt::Event<'_>) -> Result<(), NoRoom> {
    let too_long = |value: &Value<'_>| matches!(value, Value::Str(s) if s.len() > fxt::MAX_STRING);
    if event.args.iter().any(|(_, value)| too_long(value)) || fxt::event_words(event) > fxt::MAX_RECORD_WORDS
    {
        return Err(NoRoom::TooLarge);
    }
    fxt::event(out, event);
    Ok(())
}

/// Returns the place of a callsite in the source.
pub(crate) fn location(callsite: &'static Callsite) -> Text {
    let (site, mut text) = (callsite.site(), Text::default());
    let _ = write!(text, "{}:{}", cut(site.file), site.line); // it takes all
    text
}

/// Whether a string record holds the text. Names are cut to that length; values of arguments are not.
pub(crate) fn fits_string_record(text: &str) -> bool {
    text.len() <= MAX_NAME
}

/// Refers to a string by its index, or omits the string if it has none: for records of a fixed length.
pub(crate) fn index_only(id: StringId) -> fxt::StringRef<'static> {
    id.index().map_or(fxt::StringRef::Empty, indexed)
}

fn indexed(index: u16) -> fxt::StringRef<'static> {
    if index == 0 { fxt::StringRef::Empty } else { fxt::StringRef::Index(index) }
}
