//! Which flows of this process have begun, for events that have only the header of a flow.
//!
//! A header says nothing of the events before. So the process remembers the flows that have begun in the last
//! session: a bit for each flow, by its serial number, 32 to a place.
//!
//! ```text
//! place n   session : 12 | turn : 20 | bits : 32        block n + 1024 * turn: the last one that was named
//! ```
//!
//! A flow of an older block than that of its place has begun, as far as the process knows: a begin is named
//! soon after the flow was made, and what is named late is an answer. A second begin would be an error of the
//! trace; a missing one is an arrow that begins at the next event.
//!
//! A place is one word, and says all: no other memory depends on it, and so each access is Relaxed. Nothing
//! is locked, so a child that is forked meanwhile goes on with the words as they are.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::on::callsite::Epoch;

const PLACES: u64 = 1024;
const SESSION_BITS: u32 = 12;
const TURN_BITS: u32 = 20;

static BEGUN: [AtomicU64; PLACES as usize] = [const { AtomicU64::new(0) }; PLACES as usize];

/// Records that the flow with this serial number has begun in the session with this epoch. Returns whether
/// that is new.
pub(crate) fn begin(serial: u64, epoch: Epoch) -> bool {
    begin_in(&BEGUN, serial, epoch.get())
}

fn begin_in(places: &[AtomicU64; PLACES as usize], serial: u64, epoch: u32) -> bool {
    let block = serial / 32;
    let place = &places[(block % PLACES) as usize];
    let named =
        |word| with(word, low(u64::from(epoch), SESSION_BITS), low(block / PLACES, TURN_BITS), serial);
    place.fetch_update(Ordering::Relaxed, Ordering::Relaxed, named).is_ok()
}

/// Returns the word of a place in which this flow has begun too; `None` if it has begun before.
fn with(word: u64, session: u64, turn: u64, serial: u64) -> Option<u64> {
    let bit = 1 << (serial % 32);
    let (its_session, its_turn) = (word >> (TURN_BITS + 32), low(word >> 32, TURN_BITS));
    let fresh = (session << TURN_BITS | turn) << 32 | bit;
    if word == 0 || is_later(session, its_session, SESSION_BITS) {
        return Some(fresh);
    }
    if session != its_session || is_later(its_turn, turn, TURN_BITS) {
        return None; // an event of the session before, or a flow that was forgotten
    }
    match turn == its_turn {
        true => (word & bit == 0).then_some(word | bit),
        false => Some(fresh),
    }
}

/// Whether one number comes after another, of two that count on from 0 after so many bits.
fn is_later(one: u64, other: u64, bits: u32) -> bool {
    (1..1 << (bits - 1)).contains(&low(one.wrapping_sub(other), bits))
}

fn low(number: u64, bits: u32) -> u64 {
    number & ((1 << bits) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn none() -> [AtomicU64; PLACES as usize] {
        [const { AtomicU64::new(0) }; PLACES as usize]
    }

    #[test]
    fn each_flow_begins_once_in_a_session() {
        let begun = none();
        // The numbers of sessions count on from 0 after 4,095.
        for epoch in [2, 4, 2000, 4000, 4098] {
            let serials = || (1..32 * PLACES).step_by(3);
            assert!(serials().all(|serial| begin_in(&begun, serial, epoch)), "{epoch}");
            assert!(serials().all(|serial| !begin_in(&begun, serial, epoch)), "{epoch}");
        }
        assert!(!begin_in(&begun, 2, 4096), "an event of the session before");
    }

    #[test]
    fn a_flow_that_was_forgotten_has_begun() {
        for turns in [1, 1 << (TURN_BITS - 2)] {
            let begun = none();
            let later = |serial| serial + 32 * PLACES * turns;
            assert!(begin_in(&begun, 7, 2) && begin_in(&begun, later(7), 2) && begin_in(&begun, later(8), 2));
            assert!(!begin_in(&begun, 7, 2) && !begin_in(&begun, 9, 2) && !begin_in(&begun, later(7), 2));
        }
    }

    #[test]
    fn of_many_threads_one_begins_a_flow() {
        let begun = none();
        let count = || (0..20_000).filter(|serial| begin_in(&begun, *serial, 2)).count();
        let total: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().expect("its count")).sum()
        });
        assert_eq!(total, 20_000);
    }
}
