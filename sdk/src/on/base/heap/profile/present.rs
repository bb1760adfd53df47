//! Samples of allocations, from the threads to the session's own thread.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use hairline_sampler::{Sample, Stacks, Undisturbed};

use crate::on::base::clock;
use crate::on::base::heap::profile::blocks::{Blocks, Slot};
use crate::on::base::heap::profile::countdown::{Distance, Weight, weight};
use crate::on::base::heap::switch::set_profile;
use crate::on::base::memory::leak;
use crate::on::base::platform::own_thread::{self, Handle};
use crate::on::base::platform::process;
use crate::on::base::wakes::{Wakes, Woken};
use crate::on::base::{forever, this_thread};
use crate::sampling::OwnStacks;

/// The samples that the ring has room for, of 8 KiB each: with one in 512 KiB, those of 256 MiB between two
/// reads.
const SAMPLES: u32 = 512;

/// After so many samples the reader is woken.
const WAKES_AFTER: u64 = SAMPLES as u64 / 4;

/// The most bytes of a stack that a sample copies.
const STACK: u32 = 8 << 10;

static BLOCKS: Blocks = Blocks::new();
/// The ring; null before the first profile of the process. It is never freed: a thread may be in it.
static STACKS: AtomicPtr<Stacks> = AtomicPtr::new(std::ptr::null_mut());
/// How far the ring has been read.
static POSITION: AtomicU64 = AtomicU64::new(0);
/// Whether there is a [`Reader`].
static IS_READ: AtomicBool = AtomicBool::new(false);
/// The thread that reads.
static READER: Wakes = Wakes::new();
/// The mean of the bytes between two samples.
static MEAN: AtomicU64 = AtomicU64::new(1);
/// Where stacks end, by the region of the stack pointer, so that a sample copies no more than is needed: an
/// address, 0, or [`UNKNOWABLE`]. Relaxed: it bounds a copy, and guards no memory.
static ENDS: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];
/// A stack went on after its end.
const UNKNOWABLE: u64 = u64::MAX;
/// Samples that found no room, in the ring or in the table of blocks, and the bytes that they stood for.
static LOST: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// A sampled block that is being freed or moved.
pub(crate) type Taken = Slot;

/// A thread's countdown to its next sample.
#[derive(Debug)]
pub(crate) struct Countdown(Distance);

impl Countdown {
    pub(crate) const fn new() -> Self {
        Self(Distance::new())
    }

    /// Subtracts an allocation, unless that would end the countdown. Returns whether it goes on.
    #[inline(always)]
    pub(crate) fn subtract(&self, size: usize) -> bool {
        self.0.subtract(size)
    }

    /// Subtracts an allocation. Returns whether it is the one that is sampled. `has_begun`: whether the
    /// countdown is one of this profile.
    pub(crate) fn is_turn_of(&self, size: usize, profile: u32, has_begun: bool) -> bool {
        let mean = if profile == 0 { None } else { Some(MEAN.load(Ordering::Relaxed)) };
        if !has_begun {
            self.0.begin(mean, || clock::boottime() ^ (&raw const size).addr() as u64 | 1);
        }
        !self.subtract(size) && {
            self.0.begin(mean, || 1);
            true
        }
    }
}

/// Samples an allocation. Its stack begins with the frame of the function whose registers these are: the
/// reader passes over one frame of Hairline's.
pub(crate) fn sample(block: *mut u8, size: usize, profile: u32, registers: [u64; 3]) {
    if this_thread::is_barred() || own_thread::is_own() {
        return;
    }
    let undisturbed = Undisturbed::new(); // a jump out of a handler would leave the thread busy, and a place taken
    let _busy = this_thread::busy();
    // Acquire pairs with the Release of `Reader::begin`.
    let Some(stacks) = forever::get(STACKS.load(Ordering::Acquire)) else { return };
    let weight = weight(size, MEAN.load(Ordering::Relaxed));
    let Some(slot) = BLOCKS.insert(block.addr() as u64) else { return lose(weight) };
    let Some(here) = stacks.claim(&undisturbed) else {
        BLOCKS.cancel(slot);
        return lose(weight);
    };
    let wakes = here.number() % WAKES_AFTER == WAKES_AFTER - 1;
    let note = [u64::from(profile) << 32 | u64::from(slot.number), weight.bytes, weight.count];
    let [_, sp, _] = registers;
    here.at_most(stack_at(sp)).sample_from(registers, note);
    if wakes {
        READER.wake();
    }
}

/// The place for the end of the stack to which a stack pointer belongs.
fn end_of(sp: u64) -> &'static AtomicU64 {
    let region = (sp >> 16).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    &ENDS[(region >> 58) as usize]
}

/// Returns the bytes that a sample with this stack pointer copies.
fn stack_at(sp: u64) -> usize {
    let known = end_of(sp).load(Ordering::Relaxed).checked_sub(sp);
    known.filter(|bytes| (1..u64::from(STACK)).contains(bytes)).unwrap_or(STACK.into()) as usize
}

/// Notes where the stack of a sample ended, of which `copied` bytes were there; 0 for not within them.
fn learn([sp, end]: [u64; 2], copied: usize) {
    let known = end_of(sp);
    let before = known.load(Ordering::Relaxed);
    // A copy was too short: here stacks do not end where others have ended.
    let is_wrong = end == 0 && copied < STACK as usize && copied == stack_at(sp);
    // The later one of two ends that are within reach of each other serves both.
    let is_new = end > before || before - end > u64::from(STACK);
    if before != UNKNOWABLE && (is_wrong || end != 0 && is_new) {
        known.store(if is_wrong { UNKNOWABLE } else { end }, Ordering::Relaxed);
    }
}

fn lose(weight: Weight) {
    LOST.iter().zip([1, weight.bytes]).for_each(|(lost, more)| _ = lost.fetch_add(more, Ordering::Relaxed));
}

/// Whether a block that is about to be freed or moved may have a sample. Most have none.
#[inline(always)]
pub(crate) fn may_have(block: *mut u8) -> bool {
    BLOCKS.may_have(block.addr() as u64)
}

/// Returns the sample of a block that is about to be freed or moved, if it has one.
pub(crate) fn take(block: *mut u8) -> Option<Taken> {
    BLOCKS.take(block.addr() as u64)
}

/// Counts the free of a sampled block.
pub(crate) fn freed(taken: Taken) {
    BLOCKS.push(taken);
}

/// Notes that the block was not moved.
pub(crate) fn put_back(taken: Taken, block: *mut u8) {
    BLOCKS.put_back(taken, block.addr() as u64);
}

/// In a forked child: no thread is in the ring any more, and what it has is the parent's.
pub(crate) fn leave_in_child() {
    STACKS.store(std::ptr::null_mut(), Ordering::Relaxed);
    READER.leave_in_child();
    POSITION.store(0, Ordering::Relaxed);
    IS_READ.store(false, Ordering::Relaxed);
}

/// The reader of the samples. While it exists, threads sample.
#[derive(Debug)]
pub(crate) struct Reader {
    stacks: &'static Stacks,
    profile: u32,
    /// The process that reads. A forked child may drop its copy, and have a reader of its own.
    process: u32,
    /// The thread that reads.
    here: Option<Woken>,
    /// Numbers of blocks that were freed, but whose samples were not read yet.
    waiting: Vec<u32>,
    lost_before: [u64; 2],
}

impl Reader {
    /// Begins a profile with one sample in `mean` bytes.
    ///
    /// # Errors
    /// Those of the ring's memory; [`ResourceBusy`](io::ErrorKind::ResourceBusy) if another reader exists.
    pub(crate) fn begin(mean: u64, own: OwnStacks) -> io::Result<Self> {
        static LAST: AtomicU32 = AtomicU32::new(0);
        if IS_READ.swap(true, Ordering::Acquire) {
            return Err(io::ErrorKind::ResourceBusy.into()); // pairs with the Release of the drop
        }
        let stacks = match forever::get(STACKS.load(Ordering::Acquire)) {
            Some(stacks) => stacks,
            None => match Stacks::new(SAMPLES, STACK) {
                Ok(stacks) => leak(stacks),
                Err(e) => {
                    IS_READ.store(false, Ordering::Release);
                    return Err(e);
                }
            },
        };
        stacks.follow_frame_pointers(own == OwnStacks::ByFramePointers);
        STACKS.store(std::ptr::from_ref(stacks).cast_mut(), Ordering::Release);
        BLOCKS.forget();
        MEAN.store(mean.max(1), Ordering::Relaxed);
        let profile = LAST.fetch_add(1, Ordering::Relaxed) % 0xff_ffff + 1;
        let lost_before = LOST.each_ref().map(|lost| lost.load(Ordering::Relaxed));
        set_profile(profile);
        let process = process::id();
        Ok(Self { stacks, profile, process, here: None, waiting: Vec::new(), lost_before })
    }

    /// Makes the calling thread the one that reads.
    pub(crate) fn is_here(&mut self) {
        let handle = Arc::new(Handle::default());
        handle.set_to_current();
        self.here = Some(READER.set(handle));
    }

    /// Shows the samples and frees since the last call. `allocated` gets the slot, the bytes and the count of
    /// a sample, and the sample, and returns the stack pointer, and the end of the stack or 0.
    /// `freed` returns whether it knows the sample of a slot.
    pub(crate) fn read<T>(
        &mut self,
        to: &mut T,
        allocated: impl Fn(&mut T, [u64; 3], &Sample<'_>) -> [u64; 2],
        freed: impl Fn(&mut T, u32) -> bool,
    ) {
        let position = self.stacks.read(POSITION.load(Ordering::Relaxed), |note, sample| {
            let [of, bytes, count] = note;
            // A thread may be late with a sample of the profile before.
            if of >> 32 == u64::from(self.profile) {
                let end = allocated(to, [u64::from(of as u32), bytes, count], sample);
                if sample.call_chain.is_empty() {
                    learn(end, sample.stack.len());
                }
            }
        });
        POSITION.store(position, Ordering::Relaxed);
        // After the ring, whose samples take time: a block that was freed meanwhile is not live.
        BLOCKS.freed(|number| self.waiting.push(number));
        self.waiting.retain(|number| {
            let is_known = freed(to, *number);
            if is_known {
                BLOCKS.release(*number);
            }
            !is_known
        });
    }

    /// Returns the number of samples that found no room, and the bytes that they stood for.
    pub(crate) fn lost(&self) -> [u64; 2] {
        std::array::from_fn(|n| LOST[n].load(Ordering::Relaxed) - self.lost_before[n])
    }

    /// Ends the sampling. What the ring has can still be read.
    pub(crate) fn stop(&self) {
        set_profile(0);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        if self.process != process::id() {
            return;
        }
        self.stop();
        self.here = None;
        IS_READ.store(false, Ordering::Release); // pairs with the Acquire of `begin`
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_ends_where_stacks_of_the_region_do_until_one_goes_on() {
        let (most, sp, end) = (STACK as usize, 0x7_0001_1000, 0x7_0001_1400);
        assert_eq!(stack_at(sp), most, "not known");
        learn([sp, 0], most);
        assert_eq!(stack_at(sp), most, "too deep");
        learn([sp, end], most);
        learn([sp + 8, end - 8], 1016);
        assert_eq!((stack_at(sp), stack_at(sp - 16)), (0x400, 0x410), "the later end");
        assert_eq!((stack_at(end), stack_at(end - u64::from(STACK))), (most, most), "another stack");
        learn([sp, 0], 0x300);
        assert_eq!(stack_at(sp), 0x400, "no more was there");
        learn([sp, 0], 0x400);
        learn([sp, end], most);
        assert_eq!(stack_at(sp), most, "for good");
    }
}
