//! Tracks of async intervals, used again when an interval has ended.
//!
//! Each interval needs a track on which nothing else happens at the time. A track for each would do, but a program that
//! answers a million requests would have a million tracks; with lanes it has as many as there are requests at once,
//! and what lies below them has its rows in the UI rather than a row for each request.
//!
//! ```text
//! lane 0   [ request 1 ]   [ request 3 .....
//! lane 1        [ request 2 ......... ]
//! ```

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::time::Instant;

use super::callsite::Callsite;
use super::lock::{Mutex, MutexGuard};
use super::thread::Spread;
use super::track::new_uuid;

/// Lanes that are kept for later. Where a program makes ever new parent tracks, all are forgotten at this many and
/// begun anew.
const MAX_FREE: usize = 1 << 16;

/// Whose lanes: intervals of one place in the code, under one track.
type Key = (u64, usize);

static FREE: Mutex<Option<Free>> = Mutex::new(None);

/// The lanes, held for a fork.
pub(super) type Held = MutexGuard<'static, Option<Free>>;

pub(super) fn hold(until: Instant) -> Option<Held> {
    FREE.try_lock_until(until)
}

#[derive(Default)]
pub(super) struct Free {
    lanes: HashMap<Key, Vec<Lane>, BuildHasherDefault<Spread>>,
    count: usize,
}

/// A track on which nothing happens, and the last time that something did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) uuid: u64,
    pub(crate) used_until: u64,
}

fn key(parent: u64, callsite: &'static Callsite) -> Key {
    (parent, std::ptr::from_ref(callsite).addr())
}

/// A lane below `parent` for an interval of `callsite` that begins now.
pub(crate) fn take(parent: u64, callsite: &'static Callsite) -> Lane {
    take_before(parent, callsite, u64::MAX)
}

/// The same for one that began at `since`.
pub(crate) fn take_before(parent: u64, callsite: &'static Callsite, since: u64) -> Lane {
    let fresh = || Lane { uuid: new_uuid(), used_until: 0 };
    if super::thread::is_barred() {
        return fresh(); // nothing is recorded there
    }
    let _busy = super::thread::busy();
    let mut free = FREE.lock();
    let free = free.get_or_insert_default();
    let lanes = free.lanes.get_mut(&key(parent, callsite));
    let fit = |lanes: &mut Vec<Lane>| {
        let at = lanes.iter().rposition(|lane| lane.used_until < since)?;
        Some(lanes.swap_remove(at))
    };
    match lanes.and_then(fit) {
        Some(lane) => {
            free.count -= 1;
            lane
        }
        None => fresh(),
    }
}

/// Gives a lane back on which nothing is open any more.
pub(crate) fn give_back(parent: u64, callsite: &'static Callsite, lane: Lane) {
    if super::thread::is_barred() {
        return;
    }
    let _busy = super::thread::busy();
    let mut free = FREE.lock();
    let free = free.get_or_insert_default();
    if free.count >= MAX_FREE {
        *free = Free::default();
    }
    free.lanes.entry(key(parent, callsite)).or_default().push(lane);
    free.count += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on::callsite::{CounterOptions, Kind, Site};

    static SITE: Site = Site { file: "f", line: 1, module: "m", counter: CounterOptions::NONE };
    static ONE: Callsite = Callsite::new(Kind::Scope, "t", "one", &[], &SITE);
    static OTHER: Callsite = Callsite::new(Kind::Scope, "t", "other", &[], &SITE);

    #[test]
    fn a_lane_is_used_again_by_intervals_of_its_place_and_parent() {
        let (a, b) = (take(7, &ONE), take(7, &ONE));
        assert_ne!(a.uuid, b.uuid);
        let ended = Lane { used_until: 5, ..a };
        give_back(7, &ONE, ended);
        assert_ne!(take(7, &OTHER).uuid, a.uuid);
        assert_ne!(take(8, &ONE).uuid, a.uuid);
        assert_eq!(take(7, &ONE), ended);
        assert_ne!(take(7, &ONE).uuid, a.uuid);
    }
}
