//! The reasons for which events are lost.

/// Why an event was not recorded. The number is the index of the reason's count in the header of the region.
///
/// ```
/// use hairline_shm::{LOSS_REASONS, LossReason, Region, RegionConfig};
///
/// let region = Region::create(&RegionConfig::small())?;
/// region.count_lost(LossReason::TooLarge, 2);
/// for reason in LOSS_REASONS {
///     if region.lost(reason) > 0 {
///         assert_eq!((reason.as_str(), region.lost(reason)), ("too large", 2));
///     }
/// }
/// # Ok::<(), hairline_shm::RegionError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum LossReason {
    /// No chunk was free: the ring was too small for the speed of the drain thread.
    BufferFull = 0,
    /// The thread was already writing an event (a signal handler, an allocator that traces).
    Reentrant = 1,
    /// The record does not fit into one chunk.
    TooLarge = 2,
    /// The chunk writer of the thread was already gone (a destructor that traces).
    ThreadExit = 3,
    /// The output could not be written. The records were committed and then discarded.
    Output = 4,
    /// Not an event: an argument for which the record of its event has no room.
    Argument = 5,
    /// Not an event: a chunk whose header contradicts itself, because another process has written into it.
    /// Its records are not read.
    Damaged = 6,
    /// Not an event: a record of the kernel, such as a context switch, a sample or the stack of an event, that
    /// found no room in its ring.
    KernelRing = 7,
}

/// All reasons, in the order of their numbers.
pub const LOSS_REASONS: [LossReason; 8] = [
    LossReason::BufferFull,
    LossReason::Reentrant,
    LossReason::TooLarge,
    LossReason::ThreadExit,
    LossReason::Output,
    LossReason::Argument,
    LossReason::Damaged,
    LossReason::KernelRing,
];

impl LossReason {
    /// The reason in words, as the tail of a trace has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BufferFull => "buffer full",
            Self::Reentrant => "re-entrant",
            Self::TooLarge => "too large",
            Self::ThreadExit => "thread exit",
            Self::Output => "output",
            Self::Argument => "arguments",
            Self::Damaged => "damaged chunks",
            Self::KernelRing => "kernel ring full",
        }
    }
}
