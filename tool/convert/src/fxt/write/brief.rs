//! The fastest path: events in brief, which have nothing but ids.

use std::io::Write;

use hairline_formats::fxt::{self, PutWords as _};

use crate::fxt::write::state::FxtWriter;
use crate::fxt::write::tracks::{OutputTrack, OutputTrackKind};
use crate::{BriefEvent, BriefKind, Strings};

impl<W: Write> FxtWriter<W> {
    /// Writes the first of these events, all on one track, up to one that needs another path. Returns their
    /// number.
    pub(super) fn short_briefs(&mut self, briefs: &[BriefEvent], texts: &Strings) -> usize {
        let Some(track) = briefs.first().map(|brief| brief.track) else { return 0 };
        if self.lasting.has_points() || !self.waiting.is_empty() {
            return 0;
        }
        let Self { tracks, strings, output, last_time, .. } = self;
        let Some(OutputTrack { kind: OutputTrackKind::Thread { index: thread @ 1.., open, .. }, .. }) =
            tracks.get_mut(track)
        else {
            return 0;
        };
        let (thread, full, mut written) = (u64::from(*thread), output.full(), 0);
        let out = &mut output.bytes;
        for brief in briefs {
            if out.len() >= full {
                break;
            }
            let &BriefEvent { time, kind, name, category, .. } = brief;
            let Ok(timestamp) = u64::try_from(time) else { break };
            let indices = (strings.known_number(category), strings.known_number(name));
            let (Some(category_index), Some(name_index)) = indices else { break };
            // A slice without a text has no label, whatever the number of the empty text.
            let label = |number| if texts.is_empty_text(number) { 0 } else { u64::from(number) };
            let kind = match kind {
                BriefKind::Begin if open.begin_label(time, || (label(name), label(category))) => {
                    fxt::EventKind::DurationBegin
                }
                BriefKind::End if open.end_label(time, (label(name), label(category))) => {
                    fxt::EventKind::DurationEnd
                }
                BriefKind::Instant => fxt::EventKind::Instant,
                _ => break,
            };
            // From here on the event is written.
            out.word(fxt::event_header(kind, 2, 0, thread, category_index, name_index));
            out.word(timestamp);
            (*last_time, written) = (Some(timestamp), written + 1);
        }
        written
    }
}
