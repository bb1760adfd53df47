//! Intervals of FXT that share an id. Importers of FXT show them on one track, whatever their names.

use std::collections::HashMap;

use crate::{Track, TrackId, TrackKind};

/// The limit for ids; some 2 MB.
const MOST: usize = 1 << 16;

/// What reports say of such intervals.
pub(crate) const SHARED: &str =
    "intervals of other names with the id of one before, which importers of FXT show with it";

/// The first track with each id.
#[derive(Debug, Default)]
pub(crate) struct SharedIds(HashMap<u64, TrackId>);

impl SharedIds {
    /// Adds a track. Returns whether another interval of FXT has its id.
    pub(crate) fn add(&mut self, track: &Track) -> bool {
        let TrackKind::Async { id, scope } = &track.kind else { return false };
        // Other formats have a category as scope, or a process as parent.
        if track.parent.is_some() || *scope != track.name || scope.is_empty() {
            return false;
        }
        if self.0.len() == MOST {
            self.0.clear();
        }
        *self.0.entry(*id).or_insert(track.id) != track.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_interval_with_an_id_shares_it() {
        let interval = |number, name: &str| {
            let kind = TrackKind::Async { id: 5, scope: name.into() };
            Track { name: name.into(), ..Track::new(TrackId(number), kind) }
        };
        let mut ids = SharedIds::default();
        assert_eq!(
            [(0, "a"), (1, "b"), (0, "a")].map(|(n, name)| ids.add(&interval(n, name))),
            [false, true, false]
        );
    }

    #[test]
    fn memory_is_bounded() {
        let mut ids = SharedIds::default();
        for id in 0..3 * MOST as u64 {
            let kind = TrackKind::Async { id, scope: "a".into() };
            ids.add(&Track { name: "a".into(), ..Track::new(TrackId(0), kind) });
        }
        assert!(ids.0.len() <= MOST);
    }
}
