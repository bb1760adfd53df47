//! The fast path for plain events: begins, ends and instants of threads that are known.

use std::io::Read;

use hairline_formats::fxt::{EventKind as Kind, PlainEvent, StringRef, ThreadRef};

use crate::fxt::read::current::Current;
use crate::fxt::read::state::FxtReader;
use crate::{Categories, Event, EventKind, NoArguments, Text, TrackId};

/// A plain event with its time and track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain {
    event: PlainEvent,
    time: i64,
    track: TrackId,
}

impl<R: Read> FxtReader<R> {
    /// Advances to the next record and reads it if it is a plain event. If it is anything else, returns
    /// `None`; the general path then reads the same record.
    #[inline]
    pub(super) fn plain(&mut self) -> Option<Plain> {
        let is_between = !self.held && self.ready.is_none() && self.started && self.log.is_idle();
        if !is_between {
            return None;
        }
        let (position, event) = self.current.records.advance_plain()?;
        (self.position, self.given, self.held) = (position, 0, true); // until it is read
        let tables = &self.current.tables;
        let time = tables.rate().ns(event.timestamp)?;
        let slot = tables.thread(ThreadRef::Index(event.thread))?.track?;
        if !tables.has_string(reference(event.name)) || !tables.has_string(reference(event.category)) {
            return None;
        }
        self.held = false;
        Some(Plain { event, time, track: self.tracks.id(slot) })
    }
}

impl Plain {
    #[inline]
    pub(super) fn event<R: Read>(self, current: &Current<R>) -> Event<'_> {
        let Self { event: PlainEvent { kind, category, name, has_args, .. }, time, track } = self;
        let (kind, category, name) = match kind {
            Kind::DurationBegin => (EventKind::Begin, category, name),
            // As in the general path, an end has no name.
            Kind::DurationEnd => (EventKind::End, 0, 0),
            _ => (EventKind::Instant, category, name),
        };
        let text = |index| current.tables.string(reference(index)).unwrap_or_default();
        Event {
            name: if name == 0 { Text::default() } else { text(name) },
            categories: if category == 0 { Categories::None } else { Categories::One(text(category)) },
            args: if has_args { current } else { &NoArguments },
            ..Event::new(time, track, kind)
        }
    }
}

#[inline]
fn reference(index: u16) -> StringRef<'static> {
    if index == 0 { StringRef::Empty } else { StringRef::Index(index) }
}
