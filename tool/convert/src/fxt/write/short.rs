//! The fast path for slices and instants of threads with an index, whose names and categories have one too.

use std::io::Write;

use hairline_formats::fxt::{self, MAX_RECORD_WORDS, PutWords as _};

use crate::fxt::write::state::FxtWriter;
use crate::fxt::write::tracks::{OutputTrack, OutputTrackKind};
use crate::{Categories, Event, EventKind};

impl<W: Write> FxtWriter<W> {
    /// Writes an event. Returns `false` and changes nothing if the event needs the general path.
    #[inline]
    pub(super) fn short(&mut self, event: &Event<'_>) -> bool {
        if event.details.is_some() || !event.extra_counters.is_empty() {
            return false;
        }
        let Ok(time) = u64::try_from(event.time) else { return false };
        let category = match event.categories {
            Categories::None => Some(0),
            Categories::One(category) => self.strings.known(category),
            Categories::Many(_) => None,
        };
        let (Some(category), Some(name)) = (category, self.strings.known(event.name)) else { return false };
        if self.lasting.has_points() || !self.waiting.is_empty() {
            return false;
        }
        let Some(OutputTrack { kind: OutputTrackKind::Thread { index: thread @ 1.., open, .. }, .. }) =
            self.tracks.get_mut(event.track)
        else {
            return false;
        };
        let kind = match event.kind {
            EventKind::Begin if open.begin_in_order(event) => fxt::EventKind::DurationBegin,
            EventKind::End if open.end_innermost(event) => fxt::EventKind::DurationEnd,
            EventKind::Instant => fxt::EventKind::Instant,
            _ => return false,
        };
        // From here on the event is written.
        let thread = u64::from(*thread);
        self.last_time = Some(time);
        let (mut count, mut words) = (0, 2);
        if !event.args.is_empty() {
            let Self { args, strings, output, report, .. } = self;
            args.clear();
            args.add_all(event.args, strings, &mut output.bytes, report);
            count = args.fitted(MAX_RECORD_WORDS - words, report);
            words += args.bytes.len() / 8;
            strings.end_record();
        }
        let header = fxt::event_header(kind, words as u64, count, thread, category, name);
        let out = &mut self.output.bytes;
        out.word(header);
        out.word(time);
        if words > 2 {
            out.extend_from_slice(&self.args.bytes);
        }
        true
    }
}
