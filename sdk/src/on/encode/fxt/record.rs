//! Events as FXT records, of any kind.
//!
//! | what | how |
//! |---|---|
//! | slices, instants, counters of this thread; of another one | their own records; with its thread in full |
//! | async intervals | async records, by their number |
//! | log messages | log records, and instants with the text as an argument: importers pass over the former |
//! | flows | flow records, in the slice of this thread that they belong to |
//! | other tracks, counters with a unit | TrackEvent packets in a Perfetto blob, with their flows |

use hairline_formats::{Value, fxt};

use crate::on::base::few::Few;
use crate::on::base::platform::process;
use crate::on::callsite::Callsite;
use crate::on::encode::no_room::NoRoom;
use crate::on::encode::track_event::packet::{Voice, location};
use crate::on::encode::{COUNTER_ID, FXT_THREAD, MAX_NAME, cut};
use crate::on::event::extras::Correlation;
use crate::on::event::on_track::TrackRef;
use crate::on::event::owned_arguments::OwnedArguments;
use crate::on::event::text::Text;
use crate::on::event::track::TrackKind;
use crate::on::event::{Action, ArgumentName, Event, Moment};

/// The category and the name of all flow records: flows are told apart by their ids.
const FLOW: fxt::StringRef<'static> = fxt::StringRef::Empty;

/// How an event goes into an FXT trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As a record of its own.
    Record,
    /// As a TrackEvent packet.
    Blob,
}

/// What an event needs: a track that FXT knows nothing of, or a unit, makes it a blob.
pub(crate) fn form(event: &Event<'_>) -> Form {
    let counter = event.action == Action::Counter;
    match event.track {
        None if counter && !event.callsite.site().counter.is_plain() => Form::Blob,
        None => Form::Record,
        Some(TrackRef::Track(track)) if matches!(track.kind(), TrackKind::Thread(_)) && !counter => {
            Form::Record
        }
        Some(TrackRef::Async(scope)) if scope.is_plain() && !counter => Form::Record,
        Some(_) => Form::Blob,
    }
}

/// What varies of a record beside the event itself.
pub(crate) struct Record<'a> {
    pub(crate) epoch: u32,
    /// In full: with its strings and its thread in it.
    pub(crate) voice: Voice,
    /// The track of this thread.
    pub(crate) own_track: u64,
    /// Whether a slice of this thread is open.
    pub(crate) in_slice: bool,
    /// Whether the event says where in the source it is.
    pub(crate) located: bool,
    pub(crate) at: &'a Moment,
}

impl Record<'_> {
    /// Writes the event and the flows that go through it. Gives the number of arguments that it had no room for.
    pub(crate) fn put(
        &self,
        out: &mut Vec<u8>,
        event: &Event<'_>,
        nested: &mut OwnedArguments,
    ) -> Result<u64, NoRoom> {
        let mut args = Few::<_>::new((fxt::StringRef::Empty, Value::Null));
        nested.clear();
        for (key, value) in event.arguments() {
            if !nested.add_nested(key.name(), &value) {
                let value = match value {
                    Value::Interned { text, .. } if self.voice == Voice::Full || !has_record(text) => {
                        Value::Str(text)
                    }
                    value => value,
                };
                args.push((self.key_ref(key), value));
            }
        }
        nested.iter().for_each(|(path, value)| args.push((fxt::StringRef::Inline(cut(path)), value)));
        let cpu = self.at.cpu.map(Value::U64);
        let location = location(event.callsite);
        let place = self.located.then(|| Text::display(&format_args!("{}:{}", location.file, location.line)));
        let own = [
            (if event.action == Action::End { "cpu_end_ns" } else { "cpu_begin_ns" }, cpu),
            (
                "correlation_id",
                event.extras.correlation.map(|c| match c {
                    Correlation::Id(id) => Value::U64(id),
                    Correlation::Name(name) => Value::Str(cut(name)),
                }),
            ),
            ("source", place.as_ref().map(Text::value)),
        ];
        for (name, value) in own {
            value.into_iter().for_each(|value| args.push((fxt::StringRef::Inline(name), value)));
        }
        let all = args.as_slice();
        let kept = &all[..all.len().min(fxt::MAX_ARGS)];
        if let Some((_, body)) = event.log {
            fxt::log(out, self.at.now, fxt::ThreadRef::Index(FXT_THREAD), body);
        }
        self.put_records(out, event, kept)?;
        Ok((all.len() - kept.len()) as u64)
    }

    fn put_records(
        &self,
        out: &mut Vec<u8>,
        event: &Event<'_>,
        args: &[(fxt::StringRef<'_>, Value<'_>)],
    ) -> Result<(), NoRoom> {
        let flows = event.extras.flows(self.epoch).next().is_some();
        // A flow goes through an open slice. Where the event is none, or is on another track, a slice without length stands
        // in for it on this thread.
        let stands_in = flows && event.action == Action::Instant && event.track.is_none();
        let (kind, payload) = match (event.action, event.track) {
            (Action::Begin, Some(TrackRef::Async(scope))) => (fxt::EventKind::AsyncBegin, Some(scope.uuid())),
            (Action::End, Some(TrackRef::Async(scope))) => (fxt::EventKind::AsyncEnd, Some(scope.uuid())),
            (Action::Instant, Some(TrackRef::Async(scope))) => {
                (fxt::EventKind::AsyncInstant, Some(scope.uuid()))
            }
            (Action::Begin, _) => (fxt::EventKind::DurationBegin, None),
            (Action::End, _) => (fxt::EventKind::DurationEnd, None),
            (Action::Instant, _) if stands_in => (fxt::EventKind::DurationBegin, None),
            (Action::Instant, _) => (fxt::EventKind::Instant, None),
            (Action::Counter, _) => (fxt::EventKind::Counter, Some(COUNTER_ID)),
        };
        let main = fxt::Event {
            kind,
            timestamp: self.at.now,
            thread: self.thread(event),
            category: self.string_ref(event.callsite.category_id(), event.callsite.category()),
            name: match (event.track, event.action, event.extras.name) {
                // An async interval is found again by its name.
                (Some(TrackRef::Async(scope)), Action::End, _) => self.name_of(scope.callsite(), None),
                (_, _, name) => self.name_of(event.callsite, name),
            },
            args,
            payload,
        };
        put_whole(out, &main)?;
        if flows {
            let here = fxt::Event { thread: self.own_thread(), args: &[], payload: None, ..main };
            let anchored =
                stands_in || event.track.is_none() && event.action != Action::Counter || self.in_slice;
            if !anchored {
                put_whole(out, &fxt::Event { kind: fxt::EventKind::DurationBegin, ..here })?;
            }
            self.put_flows(out, event);
            if stands_in || !anchored {
                put_whole(out, &fxt::Event { kind: fxt::EventKind::DurationEnd, ..here })?;
            }
        }
        Ok(())
    }

    fn put_flows(&self, out: &mut Vec<u8>, event: &Event<'_>) {
        for (flow, ends) in event.extras.flows(self.epoch) {
            let kind = match (flow.has_begun(self.epoch), ends) {
                (false, _) => fxt::EventKind::FlowBegin,
                (true, false) => fxt::EventKind::FlowStep,
                (true, true) => fxt::EventKind::FlowEnd,
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

    /// The event's thread: this one, or the one whose track it is on.
    fn thread(&self, event: &Event<'_>) -> fxt::ThreadRef {
        match event.track {
            Some(TrackRef::Track(track)) if track.uuid() != self.own_track => match track.kind() {
                TrackKind::Thread(thread) => fxt::ThreadRef::Inline {
                    process: u64::from(process::id()),
                    thread: u64::from(thread.tid),
                },
                _ => self.own_thread(),
            },
            _ => self.own_thread(),
        }
    }

    fn own_thread(&self) -> fxt::ThreadRef {
        match self.voice {
            Voice::Sequence => fxt::ThreadRef::Index(FXT_THREAD),
            Voice::Full => fxt::ThreadRef::Inline {
                process: u64::from(process::id()),
                thread: u64::from(process::tid()),
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

    /// By index as far as the table goes, inline beyond.
    fn string_ref(&self, id: u32, text: &'static str) -> fxt::StringRef<'static> {
        match u16::try_from(id) {
            Ok(index) if index <= fxt::MAX_STRING_INDEX && self.voice == Voice::Sequence => indexed(index),
            _ => fxt::StringRef::Inline(cut(text)),
        }
    }
}

fn put_whole(out: &mut Vec<u8>, event: &fxt::Event<'_>) -> Result<(), NoRoom> {
    let too_long = |value: &Value<'_>| matches!(value, Value::Str(s) if s.len() > fxt::MAX_STRING);
    if event.args.iter().any(|(_, value)| too_long(value)) || fxt::event_words(event) > fxt::MAX_RECORD_WORDS
    {
        return Err(NoRoom::TooLarge);
    }
    fxt::event(out, event);
    Ok(())
}

/// Whether an interned string has a record: those are of names, which are cut, and an argument's value is not.
pub(crate) fn has_record(text: &str) -> bool {
    text.len() <= MAX_NAME
}

/// By index, or not at all: for records whose length is fixed.
pub(crate) fn index_only(id: u32) -> fxt::StringRef<'static> {
    u16::try_from(id).ok().filter(|i| *i <= fxt::MAX_STRING_INDEX).map_or(fxt::StringRef::Empty, indexed)
}

fn indexed(index: u16) -> fxt::StringRef<'static> {
    if index == 0 { fxt::StringRef::Empty } else { fxt::StringRef::Index(index) }
}
