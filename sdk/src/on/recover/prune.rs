//! Clears away what a program that crashes all day leaves in the machine's memory.

use std::cmp::Reverse;

use hairline_formats::truncate_utf8;
use hairline_shm::recover::{DeadRegion, Found, Life, find, room};

/// The part of `/dev/shm` that the regions of dead processes may take.
const SHARE: u64 = 4;

/// Removes the oldest regions that processes of this program left when they died, where there is no room for all of them: but for the
/// newest one, so many that what is left takes no more than a quarter of `/dev/shm`.
pub(crate) fn prune(process_name: &str) {
    let (Ok(found), Ok(room)) = (find(), room()) else { return };
    let process_name = truncate_utf8(process_name, 63); // as the region has it
    let mut dead: Vec<Dead> = found.iter().filter_map(|found| Dead::of(found, process_name)).collect();
    dead.sort_by_key(|dead| Reverse(dead.last_look));
    for old in surplus(&dead, room / SHARE) {
        // Whoever is recovering it has it locked.
        let _ = DeadRegion::open(&old.found.path).and_then(DeadRegion::remove);
    }
}

struct Dead<'f> {
    found: &'f Found,
    bytes: u64,
    last_look: u64,
}

impl<'f> Dead<'f> {
    fn of(found: &'f Found, process_name: &str) -> Option<Self> {
        let facts = found.facts.as_ref().ok()?;
        let is_ours = found.life == Life::Dead && facts.process_name == process_name;
        is_ours.then_some(Self { found, bytes: found.len, last_look: facts.last_look })
    }
}

/// Of the regions, the newest first, those for which there is no room.
fn surplus<'d, 'f>(dead: &'d [Dead<'f>], room: u64) -> &'d [Dead<'f>] {
    let mut taken = 0;
    let fits = |dead: &&Dead<'_>| {
        taken += dead.bytes;
        taken <= room
    };
    let kept = dead.iter().take_while(fits).count().max(1).min(dead.len());
    &dead[kept..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surplus_of(bytes: &[u64], room: u64) -> usize {
        let found = Found {
            path: "/nowhere".into(),
            len: 0,
            pid: 1,
            life: Life::Unknown,
            facts: Err(hairline_shm::recover::RecoverError::Busy { path: "/nowhere".into() }),
        };
        let dead: Vec<Dead> =
            bytes.iter().map(|bytes| Dead { found: &found, bytes: *bytes, last_look: 0 }).collect();
        surplus(&dead, room).len()
    }

    #[test]
    fn the_oldest_go_where_there_is_no_room_and_the_newest_stays() {
        assert_eq!(surplus_of(&[], 10), 0);
        assert_eq!(surplus_of(&[10], 10), 0);
        assert_eq!(surplus_of(&[11], 10), 0);
        assert_eq!(surplus_of(&[4, 4, 4, 1], 10), 2, "none is skipped for a smaller one that is older");
        assert_eq!(surplus_of(&[11, 1, 1], 10), 2);
        assert_eq!(surplus_of(&[1; 10], 10), 0);
    }
}
