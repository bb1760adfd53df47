//! The holds of locks that are timed, in a session with a limit for them.
//!
//! ```text
//! thread 1   [ write .......... ]      [ send .... ]
//!   hold        [ hold: cache ............... ]        a lane below the thread
//!   hold              [ hold: journal ..... ]          the lane of the second place
//! ```
//!
//! A hold begins and ends inside of slices that it does not nest with: guards live as long as the program
//! wants. So it is on no track of such slices, but on a lane below its thread. It is written when it is over
//! and as long as the limit: a short one leaves nothing.
//!
//! Each thread has some places for the locks that it holds. A place has one hold at a time, and the slices of
//! its holds are on one lane: none overlaps another one there. So nothing grows with the number of locks, and
//! no lock is larger for it.

use std::cell::Cell;
use std::fmt::Write;

use hairline_formats::Value;
use hairline_formats::track_event::TrackUuid;

use crate::on::base::memory::Text;
use crate::on::base::{clock, this_thread};
use crate::on::callsite::{Callsite, Epoch, Key, watched};
use crate::on::event::interval::Lane;
use crate::on::event::track::Track;
use crate::on::thread::guards::interval::AsyncScope;
use crate::site::{CallsiteKind, Site};
use crate::sync::name::{Name, Place};

pub(super) static HOLD: Callsite =
    Callsite::new(CallsiteKind::Scope, "lock", "hold", &HOLD_KEYS, &Site::NOWHERE);

static HOLD_KEYS: [Key; 1] = [Key::new("at")];

/// The locks that a thread may hold at once. With one more, the oldest hold is forgotten: it may be that of a
/// guard which the program has forgotten.
const MOST: usize = 16;

thread_local! {
    static PLACES: Places = const {
        Places { locks: [const { Cell::new(0) }; MOST], holds: [const { Cell::new(Hold::NONE) }; MOST] }
    };
}

struct Places {
    /// The address of the lock at each place; 0 at one that is free.
    locks: [Cell<usize>; MOST],
    /// The hold at each place, or the last one there.
    holds: [Cell<Hold>; MOST],
}

#[derive(Clone, Copy)]
struct Hold {
    /// How often the lock had been taken alone. With another number, the hold is over: another thread has
    /// released the lock, or there was another lock at this address.
    number: u32,
    /// How often the thread has it: a reader may have it several times. It holds the lock up to the last one.
    times: u32,
    since: u64,
    epoch: Option<Epoch>,
    place: Option<Place>,
    /// The lane of this place of the thread, in the session with that epoch.
    lane: Lane,
}

impl Hold {
    const NONE: Self = Self {
        number: 0,
        times: 0,
        since: 0,
        epoch: None,
        place: None,
        lane: Lane { uuid: TrackUuid(0), used_until: 0 },
    };
}

/// Prepares this thread for holds, under no lock of the program: this allocates.
pub(super) fn prepare() {
    drop(Track::of_this_thread());
}

/// Notes that this thread has taken the lock at this address, in the session with this epoch.
pub(super) fn begin(lock: usize, number: u32, epoch: Epoch, place: Place) {
    PLACES.with(|Places { locks, holds }| {
        let own = locks.iter().position(|at| at.get() == lock);
        let oldest = || (0..MOST).min_by_key(|at| holds[*at].get().since);
        let free = || locks.iter().position(|at| at.get() == 0).or_else(oldest);
        let Some(at) = own.or_else(free) else { return };
        let before = holds[at].get();
        if own.is_some() && (before.number, before.epoch) == (number, Some(epoch)) {
            return holds[at].set(Hold { times: before.times + 1, ..before });
        }
        let lane = if before.epoch == Some(epoch) { before.lane } else { Hold::NONE.lane };
        locks[at].set(lock);
        let (epoch, place) = (Some(epoch), Some(place));
        holds[at].set(Hold { number, times: 1, since: clock::boottime(), epoch, place, lane });
    });
}

/// Ends a hold of this thread, and records it if it was long. The lock is about to be released.
pub(super) fn end(lock: usize, number: u32, name: &Name) {
    PLACES.with(|Places { locks, holds }| {
        let Some(at) = locks.iter().position(|at| at.get() == lock) else { return };
        let mut hold = holds[at].get();
        if hold.number == number && hold.times > 1 {
            return holds[at].set(Hold { times: hold.times - 1, ..hold });
        }
        locks[at].set(0);
        let (now, limit) = (clock::boottime(), watched::hold_limit());
        if hold.number == number && limit != 0 && now.saturating_sub(hold.since) >= limit {
            record(&mut hold, name, now);
            holds[at].set(hold);
        }
    });
}

#[cold]
fn record(hold: &mut Hold, name: &Name, now: u64) {
    let track = {
        let _busy = this_thread::busy();
        Track::kept_of_this_thread()
    };
    // A hold that began in an earlier session has another epoch.
    let epoch = hold.epoch.filter(|epoch| HOLD.epoch() == Some(*epoch));
    let (Some(epoch), Some(place), Some(track)) = (epoch, hold.place, track) else { return };
    let (mut slice, mut at) = (Text::default(), Text::default());
    let _ = write!(slice, "hold: {name}"); // a text takes all
    let _ = write!(at, "{}:{}", place.file(), place.line());
    let named = (slice.as_str(), &[Value::Str(at.as_str())][..]);
    AsyncScope::record_past(&HOLD, epoch, named, (track, &mut hold.lane), (hold.since, now));
}
