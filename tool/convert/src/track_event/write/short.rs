//! The fast path for slices and instants of threads whose names and categories were emitted.

use hairline_formats::track_event::{EventType, ShortEvent};

use crate::track_event::write::event::put_argument;
use crate::track_event::write::state::State;
use crate::{Categories, Event, EventKind, StringId, Text};

impl State {
    /// Writes an event. Returns `false` and changes nothing if the event needs the general path.
    #[inline]
    pub(super) fn short(&mut self, event: &Event<'_>) -> bool {
        let kind = match event.kind {
            EventKind::Begin => EventType::SliceBegin,
            EventKind::End => EventType::SliceEnd,
            EventKind::Instant => EventType::Instant,
            _ => return false,
        };
        let category = match event.categories {
            Categories::None => None,
            Categories::One(Text { id: Some(id), .. }) => Some(id),
            _ => return false,
        };
        let has_text = event.name.id.is_none() && !event.name.text.is_empty();
        if has_text || event.details.is_some() || !event.extra_counters.is_empty() {
            return false;
        }
        let (Ok(time), Some(index)) = (u64::try_from(event.time), self.tracks.plain_thread(event.track))
        else {
            return false;
        };
        let Self { out, fields, sequences, report, .. } = self;
        let sequence = &mut sequences[index];
        let Some(timestamp) = sequence.since_last(time).filter(|_| sequence.knows(category, event.name.id))
        else {
            return false;
        };
        // From here on the event is written.
        (self.time, self.current) = (time, index);
        fields.clear();
        if !event.args.is_empty() {
            event.args.each(&mut |name, value| put_argument(out, fields, sequence, report, name, value));
        }
        let iid = |id: Option<StringId>| id.map_or(0, StringId::iid);
        let (number, category, name) = (sequence.number, iid(category), iid(event.name.id));
        sequence.pass(time, kind);
        ShortEvent { sequence: number, timestamp, kind, category, name }.put(out, fields);
        true
    }
}
