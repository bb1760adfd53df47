//! Events in brief: the fastest path, for who pairs and counts them.

use std::io::Read;

use hairline_formats::fxt::{EventKind as Kind, PlainEvent, ThreadRef};

use crate::fxt::read::state::FxtReader;
use crate::{BriefEvent, BriefKind, BriefUse, MOST_BRIEF};

impl<R: Read> FxtReader<R> {
    /// Reads events up to the first record that is none or of which more is to be said.
    pub(super) fn read_briefs(&mut self, wanted: BriefUse, briefs: &mut Vec<BriefEvent>) {
        let has_items = self.tracks.has_undescribed() || self.blobs.has_packets();
        if has_items || self.held || self.ready.is_some() || !self.started || !self.log.is_idle() {
            return;
        }
        let (offset, trace) = self.current.records.buffered();
        let (tables, rate) = (&self.current.tables, self.current.tables.rate());
        let (mut rest, mut size, mut thread) = (trace, 0, None);
        while briefs.len() < MOST_BRIEF {
            let Some((event, len)) = PlainEvent::decode(rest) else { break };
            if event.has_args && wanted == BriefUse::Writing {
                break;
            }
            // Events of one thread follow each other.
            let track = match thread {
                Some((index, track)) if index == event.thread => track,
                _ => {
                    let known = tables.thread(ThreadRef::Index(event.thread));
                    let Some(slot) = known.and_then(|known| known.track) else { break };
                    self.tracks.id(slot)
                }
            };
            thread = Some((event.thread, track));
            let Some(time) = rate.ns(event.timestamp) else { break };
            let Some(name) = tables.number(event.name) else { break };
            let Some(category) = tables.number(event.category) else { break };
            briefs.push(match event.kind {
                Kind::DurationBegin => BriefEvent { time, track, kind: BriefKind::Begin, name, category },
                // As in the general path, an end has no name.
                Kind::DurationEnd => BriefEvent { time, track, kind: BriefKind::End, name: 0, category: 0 },
                _ => BriefEvent { time, track, kind: BriefKind::Instant, name, category },
            });
            (rest, size) = (&rest[len..], len);
        }
        let at = trace.len() - rest.len();
        let last = at - size;
        self.current.records.pass(at);
        self.given = 0;
        if at > 0 {
            self.position = offset + last as u64;
        }
    }
}
