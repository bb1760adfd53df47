//! Lanes: tracks that async intervals take turns on.
//!
//! No two intervals may overlap on one track. With a new track for each interval, a program that answers a
//! million requests would have a million tracks. With lanes, it has as many tracks as there are requests at
//! the same time, and the intervals below a request use few rows of the UI.
//!
//! ```text
//! lane 0   [ request 1 ]   [ request 3 .....
//! lane 1        [ request 2 ......... ]
//! ```
//!
//! The lane that was given back last is in a [`Spot`], chosen by a hash of its key. Most lanes are taken from
//! there and put there again, which needs no lock. All others are in [`Free`].

use std::time::Instant;

use hairline_formats::track_event::TrackUuid;

use crate::on::base::lock::{Fixed, Grow, Map, Mutex, MutexGuard};
use crate::on::base::sets::Spread;
use crate::on::base::spot::{Spot, Words};
use crate::on::base::this_thread;
use crate::on::callsite::Callsite;
use crate::on::event::interval::Lane;
use crate::on::event::track::new_uuid;

/// The most free lanes. At this number all free lanes are forgotten: a program may make new parent tracks
/// without end.
const MAX_FREE: usize = 1 << 16;

/// The owner of lanes: a parent track, and the address of the callsite of the intervals below it.
type Key = (TrackUuid, usize);

const SPOTS: usize = 64;

/// A key and its lane each.
static PARKED: [Spot; SPOTS] = [const { Spot::new() }; SPOTS];

static FREE: Mutex<Free> =
    Mutex::new(Free { keys: Map::with_hasher(Fixed::new()), nodes: Vec::new(), first_empty: None });

/// The locked lanes, held during a fork.
pub(crate) type Held = MutexGuard<'static, Free>;

pub(crate) fn hold(until: Instant) -> Option<Held> {
    FREE.try_lock_until(until)
}

/// Free lanes. The lanes of all keys are in one list, so that the lists of single keys never grow:
/// `lock/growing.rs`.
#[derive(Default)]
pub(crate) struct Free {
    /// The node of the lane that was given back last; `None` if the key has no free lane now.
    keys: Map<Key, Option<usize>, Spread>,
    nodes: Vec<Node>,
    /// The first node without a lane; `next` links the other ones.
    first_empty: Option<usize>,
}

/// A node of the lists of lanes, and of the list of empty nodes.
#[derive(Clone, Copy)]
struct Node {
    lane: Lane,
    /// The node of the lane of this key that was given back before; in an empty node, the next empty node.
    next: Option<usize>,
}

impl Grow for Free {
    fn with_room(entries: usize) -> Self {
        Self { keys: Grow::with_room(entries), nodes: Grow::with_room(entries), first_empty: None }
    }

    fn entries(&self) -> usize {
        self.keys.entries().max(self.nodes.entries())
    }

    fn has_room(&self, more: usize) -> bool {
        self.keys.has_room(more) && self.nodes.has_room(more)
    }

    fn take_over(&mut self, smaller: &mut Self) {
        self.keys.take_over(&mut smaller.keys);
        self.nodes.take_over(&mut smaller.nodes);
        self.first_empty = smaller.first_empty;
    }
}

impl Free {
    /// Takes the lane of the key that was given back last, of those that were last used before `since`.
    fn take(&mut self, key: Key, since: u64) -> Option<Lane> {
        let latest = self.keys.get_mut(&key)?;
        let mut after = None;
        let mut at = (*latest)?;
        while self.nodes[at].lane.used_until >= since {
            after = Some(at);
            at = self.nodes[at].next?;
        }
        let Node { lane, next } = self.nodes[at];
        match after {
            Some(after) => self.nodes[after].next = next,
            None => *latest = next,
        }
        self.nodes[at].next = self.first_empty.replace(at);
        Some(lane)
    }

    /// Returns the number of entries that giving back a lane of the key may add.
    fn new_entries(&self, key: Key) -> usize {
        usize::from(self.first_empty.is_none() || !self.keys.contains_key(&key))
    }

    /// Gives the lane back. The caller has made room for [`new_entries`](Self::new_entries).
    fn give_back(&mut self, key: Key, lane: Lane) {
        if self.keys.len() >= MAX_FREE || self.nodes.len() >= MAX_FREE && self.first_empty.is_none() {
            self.keys.clear();
            self.nodes.clear();
            self.first_empty = None;
        }
        let latest = self.keys.entry(key).or_default();
        let node = Node { lane, next: *latest };
        *latest = Some(match self.first_empty {
            Some(at) => {
                self.first_empty = self.nodes[at].next;
                self.nodes[at] = node;
                at
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        });
    }
}

fn key(parent: TrackUuid, callsite: &'static Callsite) -> Key {
    (parent, std::ptr::from_ref(callsite).addr())
}

/// Takes a lane below `parent` for an interval of `callsite` that begins now.
pub(crate) fn take(parent: TrackUuid, callsite: &'static Callsite) -> Lane {
    take_before(parent, callsite, u64::MAX)
}

/// Takes a lane below `parent` for an interval of `callsite` that began at `since`.
pub(crate) fn take_before(parent: TrackUuid, callsite: &'static Callsite, since: u64) -> Lane {
    let key = key(parent, callsite);
    let is_own = |words: &Words| is_of(words, key) && words[3] < since;
    match spot(key).take_if(is_own) {
        Some([_, _, uuid, used_until]) => Lane { uuid: TrackUuid(uuid), used_until },
        None => take_listed(key, since),
    }
}

#[inline(never)]
fn take_listed(key: Key, since: u64) -> Lane {
    let fresh = || Lane { uuid: new_uuid(), used_until: 0 };
    let Some(_busy) = this_thread::enter() else { return fresh() }; // the interval will not be recorded
    let mut free = FREE.lock();
    free.take(key, since).unwrap_or_else(fresh)
}

/// Gives back a lane without an open interval.
pub(crate) fn give_back(parent: TrackUuid, callsite: &'static Callsite, lane: Lane) {
    let key = key(parent, callsite);
    if !spot(key).put(words(key, lane)) {
        give_back_listed(key, lane);
    }
}

/// Gives back a lane whose spot is taken. If that is by another key, which may never be used again, the spot
/// changes its owner.
#[inline(never)]
fn give_back_listed(key: Key, lane: Lane) {
    let Some(_busy) = this_thread::enter() else { return };
    match spot(key).take_if(|words| !is_of(words, key)) {
        Some(other) => {
            let [parent, callsite, uuid, used_until] = other;
            list((TrackUuid(parent), callsite as usize), Lane { uuid: TrackUuid(uuid), used_until });
            if !spot(key).put(words(key, lane)) {
                list(key, lane);
            }
        }
        None => list(key, lane),
    }
}

/// Adds a lane to the list. This thread is busy.
fn list(key: Key, lane: Lane) {
    let mut free = FREE.lock_with_room(|free| {
        let more = free.new_entries(key);
        (free, more)
    });
    free.give_back(key, lane);
}

/// Returns the spot of a key. Uuids are random, and callsites are at least 16 bytes apart.
fn spot((parent, callsite): Key) -> &'static Spot {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let hash = (parent.0 ^ callsite as u64).wrapping_mul(SPREAD);
    &PARKED[(hash >> (64 - SPOTS.trailing_zeros())) as usize]
}

fn words((parent, callsite): Key, lane: Lane) -> Words {
    [parent.0, callsite as u64, lane.uuid.0, lane.used_until]
}

fn is_of(words: &Words, (parent, callsite): Key) -> bool {
    words[..2] == [parent.0, callsite as u64]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::CallsiteKind;
    use crate::site::Site;

    static SITE: Site = Site { file: "f", line: 1, module: "m", ..Site::NOWHERE };
    static ONE: Callsite = Callsite::new(CallsiteKind::Scope, "t", "one", &[], &SITE);
    static OTHER: Callsite = Callsite::new(CallsiteKind::Scope, "t", "other", &[], &SITE);

    #[test]
    fn a_lane_is_reused_by_intervals_of_its_callsite_and_parent() {
        let (a, b) = (take(TrackUuid(7), &ONE), take(TrackUuid(7), &ONE));
        assert_ne!(a.uuid, b.uuid);
        let ended = Lane { used_until: 5, ..a };
        give_back(TrackUuid(7), &ONE, ended);
        assert_ne!(take(TrackUuid(7), &OTHER).uuid, a.uuid);
        assert_ne!(take(TrackUuid(8), &ONE).uuid, a.uuid);
        assert_eq!(take(TrackUuid(7), &ONE), ended);
        assert_ne!(take(TrackUuid(7), &ONE).uuid, a.uuid);
    }

    #[test]
    fn callsites_that_share_a_spot_keep_their_lanes() {
        const CALLSITES: usize = 4 * SPOTS;
        let callsites: Vec<&'static Callsite> = (0..CALLSITES)
            .map(|_| &*Box::leak(Box::new(Callsite::new(CallsiteKind::Scope, "t", "one", &[], &SITE))))
            .collect();
        let take_all = || callsites.iter().map(|callsite| take(TrackUuid(9), callsite)).collect::<Vec<_>>();
        let lanes = take_all();
        for _ in 0..2 {
            std::iter::zip(&callsites, &lanes)
                .for_each(|(callsite, lane)| give_back(TrackUuid(9), callsite, *lane));
            assert_eq!(take_all(), lanes);
        }
    }

    #[test]
    fn lanes_are_found_at_every_position_of_the_list() {
        let mut free = Free::default();
        let lane = |n: u64| Lane { uuid: TrackUuid(n), used_until: n };
        for n in 0..100 {
            free.give_back((TrackUuid(n % 7), 0), lane(n));
        }
        let nodes = free.nodes.len();
        assert_eq!(free.take((TrackUuid(3), 0), 50), Some(lane(45))); // in the middle of the key's lanes
        assert_eq!(free.take((TrackUuid(3), 0), 4), Some(lane(3))); // the first of them
        assert_eq!(free.take((TrackUuid(3), 0), 3), None);
        assert_eq!(free.take((TrackUuid(3), 0), u64::MAX), Some(lane(94))); // the last of them
        assert_eq!(free.take((TrackUuid(3), 0), u64::MAX), Some(lane(87))); // the one before
        free.give_back((TrackUuid(3), 0), lane(94));
        (200..203).for_each(|n| free.give_back((TrackUuid(3), 0), lane(n)));
        assert_eq!(free.nodes.len(), nodes, "empty nodes are used again");
        let rest: Vec<_> =
            std::iter::from_fn(|| free.take((TrackUuid(3), 0), u64::MAX)).map(|l| l.uuid.0).collect();
        let taken = [3, 45, 87];
        let expected = (0..100).filter(|n| n % 7 == 3 && !taken.contains(n)).chain(200..203).rev();
        assert_eq!(rest, expected.collect::<Vec<_>>(), "the last first");
        assert_eq!(free.take((TrackUuid(4), 0), u64::MAX), Some(lane(95)));
    }

    #[test]
    fn a_lane_that_was_free_before_needs_no_room() {
        let mut free = Free::with_room(16);
        let lane = Lane { uuid: TrackUuid(1), used_until: 1 };
        while free.nodes.has_room(1) {
            assert_eq!(free.new_entries((TrackUuid(3), 0)), 1);
            free.give_back((TrackUuid(3), 0), lane);
        }
        let both = [free.take((TrackUuid(3), 0), u64::MAX), free.take((TrackUuid(3), 0), u64::MAX)];
        for lane in both.into_iter().flatten() {
            assert_eq!(free.new_entries((TrackUuid(3), 0)), 0);
            free.give_back((TrackUuid(3), 0), lane);
        }
        assert_eq!(free.new_entries((TrackUuid(4), 0)), 1, "a new key");
    }

    #[test]
    fn free_lanes_never_exceed_their_limit() {
        let mut free = Free::default();
        for n in 0..3 * MAX_FREE as u64 {
            free.give_back((TrackUuid(n), 0), Lane { uuid: TrackUuid(n), used_until: 0 });
            free.give_back((TrackUuid(0), 1), Lane { uuid: TrackUuid(n), used_until: 0 });
            assert!(free.keys.len() <= MAX_FREE && free.nodes.len() <= MAX_FREE);
        }
    }
}
