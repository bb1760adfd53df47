//! The fast path for plain events: they change no state, and have only the common fields.

use hairline_formats::track_event::{EventType, Name, PlainEvent, fields::sequence_flags};

use crate::track_event::read::current::TextRef;
use crate::track_event::read::state::State;
use crate::{Context, EventKind};

impl State {
    /// Reads an event into the current one. Returns `None` and changes nothing if the packet needs the
    /// general path.
    #[inline]
    pub(super) fn plain(&mut self, event: &PlainEvent<'_>, context: &Context) -> Option<()> {
        let index = self.sequence(event.sequence)?;
        let sequence = &mut self.sequences[index];
        let is_known = event.flags & sequence_flags::NEEDS == 0 || sequence.is_valid;
        if event.flags & sequence_flags::CLEARED != 0 || !is_known {
            return None;
        }
        let uuid = sequence.track_of(event.track_uuid);
        let track = self.tracks.find_again(uuid)?;
        match event.kind {
            EventType::SliceBegin | EventType::SliceEnd | EventType::Instant => {}
            EventType::Counter if event.counter.is_some() => drop(self.tracks.get(track).counter()?),
            _ => return None,
        }
        if let Some(Name::Iid(iid)) = event.name {
            self.sequences[index].names.get(iid)?;
        }
        if let Some(Name::Iid(iid)) = event.category {
            self.sequences[index].categories.get(iid)?;
        }
        // From here on the event is plain.
        let time = self.clocks.time(&mut self.sequences[index], event.clock_id, event.timestamp)?;
        self.current.clear();
        let kind = match event.kind {
            EventType::SliceBegin => EventKind::Begin,
            EventType::SliceEnd => EventKind::End,
            EventType::Counter => {
                self.current.counter = Some(track);
                EventKind::Counter(self.counter(index, track, uuid, event.counter?)?)
            }
            _ => EventKind::Instant,
        };
        let current = &mut self.current;
        (current.time, current.kind, current.track) = (time, kind, self.tracks.get(track).id());
        current.name = event.name.map_or(TextRef::None, |name| current.text_ref(name));
        if let Some(category) = event.category {
            let category = current.text_ref(category);
            current.categories.push(category);
        }
        if let Some(id) = event.flow_id {
            current.flows.push(context.flow(id));
        }
        if let Some(id) = event.terminating_flow_id {
            current.ending_flows.push(context.flow(id));
        }
        if !event.annotated.is_empty() {
            current.keep_bytes(event.annotated);
        }
        Some(())
    }
}
