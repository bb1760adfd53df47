//! The heap profile on the region's tape: what recovery has of it when the process is killed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hairline_shm::{Region, Tape};
use hairline_stacks::{HeapProfile as Profile, HeapProgress, KeptAt};

use crate::on::encode::HEAP_TAPE;

/// The bytes of the tape. A profile of up to a quarter has room, some 20,000 stacks of 25 frames. The
/// system gives the memory when it is first written.
pub(crate) const TAPE_BYTES: u32 = 8 << 20;

/// The time between two writes. A look at the sums of 10,000 stacks takes some 50 us.
const EVERY: Duration = Duration::from_millis(100);

/// The tape of the session's region.
#[derive(Debug)]
pub(super) struct OnTape {
    tape: Tape,
    region: Arc<Region>,
    /// Where the last whole profile ends; `None` before the first.
    whole_until: Option<u64>,
    last: Instant,
    /// The samples, the live bytes and the progress of the trace that the tape has.
    has: (u64, u64, HeapProgress),
}

impl OnTape {
    pub(super) fn of(region: &Arc<Region>) -> Option<Self> {
        let tape = Tape::of(region, HEAP_TAPE)?;
        let region = Arc::clone(region);
        Some(Self {
            tape,
            region,
            whole_until: None,
            last: Instant::now(),
            has: (0, 0, HeapProgress::default()),
        })
    }

    /// Whether there is something to be written, and it is time.
    pub(super) fn is_due(&self, profile: &Profile, progress: HeapProgress) -> bool {
        let (_, _, before) = self.has;
        self.has != now(profile, progress) && (self.last.elapsed() >= EVERY || progress != before)
    }

    /// Writes what has changed; everything in each quarter of the tape, so that what is overwritten is
    /// not needed. Returns `false` if the profile is too large. It is then on the tape no more, which
    /// says so.
    pub(super) fn write(&mut self, profile: &mut Profile, moment: KeptAt) -> bool {
        (self.last, self.has) = (Instant::now(), now(profile, moment.progress));
        let (begin, (_, len)) = (self.tape.end(), self.tape.filled());
        let is_whole = self.whole_until.is_none_or(|end| begin - end > len / 4);
        if is_whole {
            profile.keep_again();
        }
        profile.keep(moment);
        let mut has_room = true;
        profile.take_entries(|entry| has_room &= self.tape.append(entry));
        if is_whole {
            // Four of these have room: the one before, this one, and twice what changes until the next.
            has_room &= self.tape.end() - begin <= self.tape.filled().1 / 4;
            self.whole_until = Some(self.tape.end());
        }
        if !has_room {
            self.region.forget_tape(HEAP_TAPE, self.tape.end());
            profile.keep_none();
            profile.take_entries(|entry| _ = self.tape.append(entry));
        }
        has_room
    }
}

fn now(profile: &Profile, progress: HeapProgress) -> (u64, u64, HeapProgress) {
    let totals = profile.totals();
    (totals.samples, totals.live, progress)
}
