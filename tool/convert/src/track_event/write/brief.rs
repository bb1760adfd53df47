//! The fastest path: events in brief, which have nothing but ids.

use hairline_formats::track_event::{EventType, ShortEvent};

use crate::track_event::write::state::State;
use crate::{BriefEvent, BriefKind, StringId};

impl State {
    /// Writes the first of these events, all on one track, up to one that needs another path. Returns their
    /// number.
    pub(super) fn briefs(&mut self, briefs: &[BriefEvent]) -> usize {
        let Some(track) = briefs.first().map(|brief| brief.track) else { return 0 };
        let Some(index) = self.tracks.plain_thread(track) else { return 0 };
        let Self { out, sequences, time: latest, current, .. } = self;
        let sequence = &mut sequences[index];
        let mut written = 0;
        for brief in briefs {
            let BriefEvent { time, kind, name, category, .. } = *brief;
            let kind = match kind {
                BriefKind::Begin => EventType::SliceBegin,
                BriefKind::End => EventType::SliceEnd,
                BriefKind::Instant => EventType::Instant,
                BriefKind::Counter => break,
            };
            let Ok(time) = u64::try_from(time) else { break };
            let id = |number: u32| StringId::of_iid(u64::from(number));
            let is_known = sequence.knows(id(category), id(name));
            let Some(timestamp) = sequence.since_last(time).filter(|_| is_known) else { break };
            sequence.pass(time, kind);
            let (category, name) = (u64::from(category), u64::from(name));
            ShortEvent { sequence: sequence.number, timestamp, kind, category, name }.put(out, &[]);
            (*latest, written) = (time, written + 1);
        }
        if written > 0 {
            *current = index;
        }
        written
    }
}
