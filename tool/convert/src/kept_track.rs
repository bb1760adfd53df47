//! The description of a track, as a reader stores it.

use std::sync::Arc;

use crate::{Track, TrackId, TrackKind};

/// A description in little memory: nearly all tracks of a trace with millions are threads, or have nothing
/// but a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum KeptTrack {
    /// A track that has no further property.
    Plain {
        id: TrackId,
        parent: Option<TrackId>,
        source_id: u64,
        name: Arc<str>,
        /// The ids of the process and the thread, if it is a thread. Otherwise it has slices. Larger ones
        /// are rare.
        ids: Option<(u32, u32)>,
    },
    Full(Box<Track>),
}

impl From<Track> for KeptTrack {
    fn from(track: Track) -> Self {
        let ids = match track.kind {
            TrackKind::Thread { pid, tid } => u32::try_from(pid).ok().zip(u32::try_from(tid).ok()),
            _ => None,
        };
        let Track { id, parent, source_id, .. } = track;
        let plain = Self::Plain { id, parent, source_id, name: Arc::clone(&track.name), ids };
        if plain.track() == track { plain } else { Self::Full(Box::new(track)) }
    }
}

impl KeptTrack {
    pub(crate) fn id(&self) -> TrackId {
        match self {
            Self::Plain { id, .. } => *id,
            Self::Full(track) => track.id,
        }
    }

    pub(crate) fn source_id(&self) -> u64 {
        match self {
            Self::Plain { source_id, .. } => *source_id,
            Self::Full(track) => track.source_id,
        }
    }

    /// The process id, if it is the track of a process.
    pub(crate) fn process(&self) -> Option<u64> {
        match self {
            Self::Full(track) => match track.kind {
                TrackKind::Process { pid, .. } => Some(pid),
                _ => None,
            },
            Self::Plain { .. } => None,
        }
    }

    /// The process and the thread id, if it is the track of a thread.
    pub(crate) fn thread(&self) -> Option<(u64, u64)> {
        match self {
            Self::Plain { ids, .. } => ids.map(|(pid, tid)| (pid.into(), tid.into())),
            Self::Full(track) => match track.kind {
                TrackKind::Thread { pid, tid } => Some((pid, tid)),
                _ => None,
            },
        }
    }

    /// Whether it is a track of states.
    pub(crate) fn has_states(&self) -> bool {
        matches!(self, Self::Full(track) if matches!(track.kind, TrackKind::States))
    }

    pub(crate) fn track(&self) -> Track {
        match self {
            Self::Plain { id, parent, source_id, name, ids } => {
                let thread = |(pid, tid): (u32, u32)| TrackKind::Thread { pid: pid.into(), tid: tid.into() };
                let kind = ids.map_or(TrackKind::Slices, thread);
                let (parent, name) = (*parent, Arc::clone(name));
                Track { parent, name, source_id: *source_id, ..Track::new(*id, kind) }
            }
            Self::Full(track) => Track::clone(track),
        }
    }

    pub(crate) fn change<T>(&mut self, change: impl FnOnce(&mut Track) -> T) -> T {
        let mut track = self.track();
        let result = change(&mut track);
        *self = track.into();
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_is_kept_as_it_is_and_a_plain_one_in_little_memory() {
        let thread = Track::new(TrackId(1), TrackKind::Thread { pid: 1, tid: 2 });
        let named = Track { name: "main".into(), parent: Some(TrackId(0)), source_id: 7, ..thread.clone() };
        let ranked = Track { rank: Some(3), ..named.clone() };
        let process = Track::new(TrackId(0), TrackKind::process(1));
        let large = Track::new(TrackId(1), TrackKind::Thread { pid: 1, tid: 1 << 32 });
        let all = [(thread, true), (named, true), (ranked, false), (process, false), (large, false)];
        for (track, is_plain) in all {
            let kept = KeptTrack::from(track.clone());
            assert_eq!((kept.track(), matches!(kept, KeptTrack::Plain { .. })), (track, is_plain));
        }
        assert!(size_of::<KeptTrack>() <= 48, "there may be millions of tracks");
    }
}
