//! The fastest path: slices, instants and counter values on known tracks, with interned ids. Nothing but
//! arguments is copied.

use hairline_formats::track_event::{EventType, InternedEvent, TrackUuid, fields::sequence_flags};

use crate::track_event::read::pending::Interned;
use crate::track_event::read::state::State;
use crate::track_event::read::table::Table;
use crate::track_event::read::texts::InternedText;
use crate::{Categories, Event, EventKind, NoArguments, Text};

impl State {
    /// Reads an event. Returns `None` if the packet needs another path, which then reads it from the same
    /// state.
    #[inline(always)] // the event then stays in registers
    pub(super) fn interned(&mut self, event: &InternedEvent<'_>) -> Option<Interned> {
        let (index, place, uuid) = self.place(event)?;
        let sequence = self.sequences.get_mut(index)?;
        let is_defined = |table: &Table<InternedText>, iid| iid == 0 || table.get(iid).is_some();
        if !is_defined(&sequence.names, event.name) || !is_defined(&sequence.categories, event.category) {
            return None;
        }
        // From here on the event is read.
        let time = self.clocks.time(sequence, None, event.timestamp)?;
        let has_args = !event.annotated.is_empty();
        self.current.bytes.clear();
        if has_args {
            self.current.keep_bytes(event.annotated);
        }
        let kind = match event.kind {
            EventType::SliceBegin => EventKind::Begin,
            EventType::SliceEnd => EventKind::End,
            EventType::Counter => EventKind::Counter(self.counter(index, place, uuid, event.counter?)?),
            _ => EventKind::Instant,
        };
        let (name, category) = (event.name, event.category);
        let counter = event.counter.map(|_| place);
        let track = self.tracks.get(place).id();
        Some(Interned { sequence: index, time, track, kind, name, category, counter, has_args })
    }

    /// Returns the sequence and the track of an event with its UUID, if the sequence is known and the event does
    /// not begin it anew. A counter value has the track of a counter.
    #[inline(always)] // as `interned`
    pub(super) fn place(&mut self, event: &InternedEvent<'_>) -> Option<(usize, u32, TrackUuid)> {
        let index = self.sequence(event.sequence)?;
        let sequence = self.sequences.get(index)?;
        let is_known = event.flags & sequence_flags::NEEDS == 0 || sequence.is_valid;
        if event.flags & sequence_flags::CLEARED != 0 || !is_known {
            return None;
        }
        let uuid = sequence.track_of(event.track_uuid);
        let place = self.tracks.find_again(uuid)?;
        if event.counter.is_some() {
            self.tracks.get(place).counter()?;
        }
        Some((index, place, uuid))
    }

    /// As `interned`, for packets that are read in the longer way.
    #[inline(never)]
    pub(super) fn interned_too(&mut self, event: &InternedEvent<'_>) -> Option<Interned> {
        self.interned(event)
    }

    /// The event as an item.
    #[inline(always)] // as `interned`
    pub(super) fn interned_event(&self, event: Interned) -> Event<'_> {
        let sequence = &self.sequences[event.sequence];
        let category = self.text(&sequence.categories, event.category);
        let counter = || self.tracks.get(event.counter?).counter()?.categories;
        let category = category.or_else(|| counter().map(|category| self.texts.text(category)));
        Event {
            name: self.text(&sequence.names, event.name).unwrap_or_default(),
            categories: category.map_or(Categories::None, Categories::One),
            args: if event.has_args { self } else { &NoArguments },
            ..Event::new(event.time, event.track, event.kind)
        }
    }

    #[inline]
    fn text(&self, table: &Table<InternedText>, iid: u64) -> Option<Text<'_>> {
        if iid == 0 { None } else { table.get(iid).map(|text| self.texts.text(*text)) }
    }
}
