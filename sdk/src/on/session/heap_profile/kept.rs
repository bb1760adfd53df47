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

#[cfg(test)]
mod tests {
    use hairline_formats::track_event::SequenceId;
    use hairline_shm::{RegionConfig, tape_entries};
    use hairline_stacks::{Allocated, HeapWindow, REGISTERS};

    use super::*;

    /// Adds an allocation whose stack no other one has.
    fn allocate(profile: &mut Profile, n: u32) {
        let caller = (allocate as *const ()).addr() as u64 + u64::from(n);
        let stack = [[0; 8], caller.to_ne_bytes()].concat(); // at the frame pointer
        let registers = &[0x10; 4][..REGISTERS.count_ones() as usize];
        let call_chain = hairline_perf::Words::default();
        let (bytes, count) = (1 << 20, 1 << 16);
        profile.allocated(&Allocated { slot: n, bytes, count, call_chain, registers, stack: &stack });
    }

    #[test]
    fn a_profile_is_written_again_and_again_and_one_that_is_too_large_is_not_there() {
        let region = Region::create(&RegionConfig { tapes: [0, 0, 64 << 10], ..RegionConfig::small() });
        let mut tape = OnTape::of(&region.expect("a region")).expect("a tape");
        let mut profile = Profile::packets(SequenceId(9), std::process::id(), 100, "heap.rs");
        let read = |tape: &OnTape| {
            let bytes = tape.tape.read(0);
            HeapWindow::read(&tape_entries(&bytes).collect::<Vec<_>>(), false).map(|window| window.is_some())
        };
        for n in 0..100 {
            allocate(&mut profile, n);
        }
        for n in 0..10_000 {
            allocate(&mut profile, n % 100);
            assert!(tape.write(&mut profile, KeptAt::default()), "{n}");
            assert!(n % 50 > 0 || read(&tape) == Ok(true), "{n}");
        }
        assert!(tape.tape.end() > 3 * (64 << 10), "it has gone round");
        let is_too_large = (100..4_000).any(|n| {
            allocate(&mut profile, n);
            !tape.write(&mut profile, KeptAt::default())
        });
        assert!(is_too_large && read(&tape).is_err());
    }
}
