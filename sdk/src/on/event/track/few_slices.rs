//! The open slices of a track while they are few: in one word, without a lock.
//!
//! ```text
//! epoch : 32 | zeros  1  bit of the first slice ... bit of the last slice
//! ```
//!
//! The 1 above the bits shows how many they are. Without it the slices are elsewhere, under a lock: more than
//! [`MOST`], or of no session yet. Only the holder of that lock changes such a word.

use crate::on::base::sync::{AtomicU64, Ordering, const_unless_loom};

/// The most slices in the word.
pub(crate) const MOST: u32 = 31;

/// The open slices of a track, and the time of its last event.
#[derive(Debug)]
pub(crate) struct FewSlices {
    word: AtomicU64,
    /// The time of the last begin, end or instant in the session of the word. Threads' clocks may be some ns
    /// apart, or have the same tick, and the slices and instants on a track must be in their order.
    last_time: AtomicU64,
}

/// What the word was when an operation could not change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl FewSlices {
    const_unless_loom! {
        pub(crate) fn new() -> Self {
            Self { word: AtomicU64::new(0), last_time: AtomicU64::new(0) }
        }
    }

    /// Returns the epoch of the last slice or instant; 0 before the first.
    #[inline]
    pub(crate) fn epoch(&self) -> u32 {
        self.get().epoch()
    }

    #[inline]
    pub(crate) fn get(&self) -> Word {
        Word(self.word.load(Ordering::Acquire))
    }

    /// Adds the bit of a slice, with the time of its begin if that is in the trace.
    #[inline]
    pub(crate) fn push(&self, epoch: u32, begun_at: Option<u64>) -> Result<(), Word> {
        if let Some(time) = begun_at {
            self.set_last_time(epoch, time); // before the bit: see `update`
        }
        self.update(|word| {
            let has_room = word.epoch() == epoch && word.is_here() && word.len() < MOST;
            has_room.then(|| (Word(word.with_epoch(word.bits() << 1 | u32::from(begun_at.is_some()))), ()))
        })
    }

    /// Removes the bit of the last slice and returns it; false if there is none.
    #[inline]
    pub(crate) fn pop(&self, epoch: u32) -> Result<bool, Word> {
        self.update(|word| {
            let is_here = word.epoch() == epoch && word.is_here();
            is_here.then(|| match word.len() {
                0 => (word, false),
                _ => (Word(word.with_epoch(word.bits() >> 1)), word.bits() & 1 != 0),
            })
        })
    }

    /// Returns the time that the next begin, end or instant must come after, in the session with this epoch.
    #[inline]
    pub(crate) fn last_time(&self, epoch: u32) -> u64 {
        if self.epoch() == epoch { self.last_time.load(Ordering::Relaxed) } else { 0 }
    }

    /// Records the time of a begin, end or instant in the session with this epoch.
    #[inline]
    pub(crate) fn set_last_time(&self, epoch: u32, time: u64) {
        if self.epoch() == epoch {
            // Simultaneous events have no order, but what follows them comes after the latest.
            self.last_time.fetch_max(time, Ordering::Relaxed);
        }
    }

    /// Begins the session of an epoch in place of `word`, if that is still there. For the lock's holder.
    pub(crate) fn begin(&self, word: Word, epoch: u32) {
        // Who sees the word of the new session (Acquire) sees this, or a later time.
        self.last_time.store(0, Ordering::Relaxed);
        self.replace(word, epoch, Some(NONE));
    }

    /// Replaces `word` by one of the epoch with these bits, if it is still there. For the lock's holder.
    pub(crate) fn replace(&self, word: Word, epoch: u32, bits: Option<u32>) -> bool {
        let new = u64::from(epoch) << 32 | u64::from(bits.unwrap_or(0));
        self.word.compare_exchange(word.0, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Acquire and Release pair with each other: the thread that removes the bit of a slice sees what was
    /// stored before the bit was added, such as the time of the begin, which its end must come after.
    #[inline(always)]
    fn update<R>(&self, change: impl Fn(Word) -> Option<(Word, R)>) -> Result<R, Word> {
        let mut word = self.get();
        loop {
            let Some((new, result)) = change(word) else { return Err(word) };
            match self.word.compare_exchange(word.0, new.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(result),
                Err(now) => word = Word(now),
            }
        }
    }
}

/// The bits of no slice.
pub(crate) const NONE: u32 = 1;

#[allow(clippy::cast_possible_truncation)] // the halves are meant
impl Word {
    #[inline]
    pub(crate) fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the 1 and the bits below it; 0 if the slices are elsewhere.
    #[inline]
    pub(crate) fn bits(self) -> u32 {
        self.0 as u32
    }

    /// Whether the slices are in the word.
    #[inline]
    pub(crate) fn is_here(self) -> bool {
        self.bits() != 0
    }

    /// Returns the number of slices in the word.
    #[inline]
    pub(crate) fn len(self) -> u32 {
        31 - self.bits().leading_zeros().min(31)
    }

    fn with_epoch(self, bits: u32) -> u64 {
        u64::from(self.epoch()) << 32 | u64::from(bits)
    }
}
