//! Tracks that are no threads, grouped by name: the lanes of one interval are one row.

use std::collections::HashMap;

use hairline_convert::{ByTrack, Track, TrackId, TrackKind};

use crate::track_names::TrackNames;

/// The group of each track.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    by_track: ByTrack<Kind>,
    by_name: HashMap<(Option<TrackId>, String), u32>,
    /// The first track of each group, and the number of tracks.
    groups: Vec<(TrackId, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Kind {
    #[default]
    Unknown,
    Thread,
    Group(u32),
}

impl Groups {
    /// Stores the description of a track.
    pub(super) fn set(&mut self, track: &Track, names: &TrackNames) {
        let old = *self.by_track.at(track.id);
        *self.by_track.at(track.id) = match (&track.kind, old) {
            (TrackKind::Thread { .. }, _) => Kind::Thread,
            (TrackKind::Counter(_), _) => return,
            // A description without a name may follow one with a name.
            (_, Kind::Group(_)) if track.name.is_empty() => return,
            _ => Kind::Group(self.group(track, names, old)),
        };
    }

    fn group(&mut self, track: &Track, names: &TrackNames, old: Kind) -> u32 {
        let process = names.process_of(track.id).filter(|process| *process != track.id);
        // Intervals of FXT and JSON have a track each, without a name.
        let name = if matches!(track.kind, TrackKind::Process { .. }) {
            names.name(track.id)
        } else {
            track.name.to_string()
        };
        let next = self.groups.len() as u32; // there are fewer than 2^32 tracks
        let group = *self.by_name.entry((process, name)).or_insert(next);
        if group == next {
            self.groups.push((track.id, 0));
        }
        if !matches!(old, Kind::Group(old) if old == group) {
            self.groups[group as usize].1 += 1;
        }
        group
    }

    /// The group of a track, or `None` for a thread.
    pub(super) fn of(&self, track: TrackId) -> Option<u32> {
        match self.by_track.get(track) {
            Some(Kind::Thread) => None,
            Some(Kind::Group(group)) => Some(*group),
            _ => Some(u32::MAX - 1),
        }
    }

    /// The first track of a group, and the number of its tracks.
    pub(crate) fn about(&self, group: u32) -> Option<(TrackId, u64)> {
        self.groups.get(group as usize).copied()
    }
}
