//! Events in brief: the fastest path, for who pairs and counts them.

use std::io::Read;

use hairline_formats::fxt::{EventKind as Kind, PlainEvent, StringRef, ThreadRef};

use crate::fxt::read::state::FxtReader;
use crate::fxt::read::tables::Tables;
use crate::fxt::read::tracks::Tracks;
use crate::{BriefEvent, BriefKind, BriefUse, MOST_BRIEF};

impl<R: Read> FxtReader<R> {
    /// Reads events up to the first record that is none or of which more is to be said.
    pub(super) fn read_briefs(&mut self, wanted: BriefUse, briefs: &mut Vec<BriefEvent>) {
        let has_items = self.tracks.has_undescribed() || self.blobs.has_packets();
        if has_items || self.held || self.ready.is_some() || !self.started || !self.log.is_idle() {
            return;
        }
        let (offset, trace) = self.current.records.buffered();
        let (mut at, mut last) = (0, 0);
        while briefs.len() < MOST_BRIEF {
            let Some((event, size)) = PlainEvent::decode(&trace[at..]) else { break };
            if event.has_args && wanted == BriefUse::Writing {
                break;
            }
            let Some(brief) = brief(&event, &self.current.tables, &self.tracks) else { break };
            briefs.push(brief);
            (last, at) = (at, at + size);
        }
        self.current.records.pass(at);
        self.given = 0;
        if at > 0 {
            self.position = offset + last as u64;
        }
    }
}

/// An event, unless its record needs another path.
#[inline(always)] // the event then stays in registers
fn brief(event: &PlainEvent, tables: &Tables, tracks: &Tracks) -> Option<BriefEvent> {
    let time = tables.rate().ns(event.timestamp)?;
    let track = tracks.id(tables.thread(ThreadRef::Index(event.thread))?.track?);
    let (name, category) = (number(tables, event.name)?, number(tables, event.category)?);
    Some(match event.kind {
        Kind::DurationBegin => BriefEvent { time, track, kind: BriefKind::Begin, name, category },
        // As in the general path, an end has no name.
        Kind::DurationEnd => BriefEvent { time, track, kind: BriefKind::End, name: 0, category: 0 },
        _ => BriefEvent { time, track, kind: BriefKind::Instant, name, category },
    })
}

/// The number of a string. `None` if it has none, or is not defined.
#[inline(always)] // as `brief`
fn number(tables: &Tables, index: u16) -> Option<u32> {
    if index == 0 { Some(0) } else { BriefEvent::number(tables.string(StringRef::Index(index))?.id) }
}
