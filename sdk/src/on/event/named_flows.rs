//! Which flows of this process have begun, for events that have only the header of a flow.
//!
//! A header says nothing of the events before. So the process remembers the flows that have begun in the last
//! session: a bit for each flow, by its serial number, 32 to a place.
//!
//! ```text
//! place n   block : 32 | bits : 32        the block is n, n + 1024, n + 2048 ... : the last one that was named
//! ```
//!
//! A flow of an older block than that of its place has begun, as far as the process knows: a begin is named
//! soon after the flow was made, and what is named late is an answer. A second begin would be an error of the
//! trace; a missing one is an arrow that begins at the next event.

use crate::on::base::lock::Mutex;
use crate::on::base::this_thread;
use crate::on::callsite::Epoch;

const PLACES: usize = 1024;

static BEGUN: Mutex<Begun> = Mutex::new(Begun::new(0));

struct Begun {
    epoch: u32,
    places: [Place; PLACES],
}

#[derive(Clone, Copy)]
struct Place {
    block: u32,
    bits: u32,
}

/// Records that the flow with this serial number has begun in the session with this epoch. Returns whether
/// that is new. False for a thread that may not wait for a lock: its event is not recorded.
pub(crate) fn begin(serial: u64, epoch: Epoch) -> bool {
    let Some(_busy) = this_thread::enter() else { return false };
    BEGUN.lock_unless_lost().is_some_and(|mut begun| begun.begin(serial, epoch.get()))
}

impl Begun {
    const fn new(epoch: u32) -> Self {
        Self { epoch, places: [Place { block: 0, bits: 0 }; PLACES] }
    }

    fn begin(&mut self, serial: u64, epoch: u32) -> bool {
        if self.epoch < epoch {
            *self = Self::new(epoch);
        }
        #[allow(clippy::cast_possible_truncation)] // the first 2^37 flows; then a place may forget its flows
        let (block, bit) = ((serial / 32) as u32, 1 << (serial % 32));
        let place = &mut self.places[block as usize % PLACES];
        if place.block < block {
            *place = Place { block, bits: 0 };
        }
        let is_new = self.epoch == epoch && place.block == block && place.bits & bit == 0;
        place.bits |= if is_new { bit } else { 0 };
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flow_begins_once_in_a_session() {
        let mut begun = Begun::new(2);
        for epoch in [2, 4] {
            let serials = || (1..32 * PLACES as u64).step_by(3);
            assert!(serials().all(|serial| begun.begin(serial, epoch)), "{epoch}");
            assert!(serials().all(|serial| !begun.begin(serial, epoch)), "{epoch}");
        }
        assert!(!begun.begin(2, 2), "an event of the session before");
    }

    #[test]
    fn a_flow_that_was_forgotten_has_begun() {
        let mut begun = Begun::new(2);
        let later = |serial| serial + 32 * PLACES as u64;
        assert!(begun.begin(7, 2) && begun.begin(later(7), 2) && begun.begin(later(8), 2));
        assert!(!begun.begin(7, 2) && !begun.begin(9, 2) && !begun.begin(later(7), 2));
    }
}
