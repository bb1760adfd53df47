//! Reads the calling thread's own stack, also in a signal handler: it never faults.
//!
//! The page of the stack pointer is there. What lies behind it may not be, and memory above a stack may be
//! unmapped at any time. So the kernel copies it, by `process_vm_readv`, up to the first page that is not
//! there. A call takes some 1.2 us, whether for 16 bytes or for 4 KiB.

#![allow(unsafe_code)] // reads memory, and calls the system

use std::arch::asm;
use std::ops::Range;

use crate::chain::{self, Frame, follow};
use crate::ring::Claimed;

/// A page at least. The pages of all processors are multiples of it.
const PAGE: usize = 4096;

/// The bytes that are copied beyond the end of a chain of frame pointers. The functions of a C library that
/// call those of a program have no frame pointers in most distributions. So much is enough for glibc 2.36.
const BEYOND: usize = 512;

/// The least number of bytes that the kernel copies for a chain.
const AT_ONCE: usize = 4096;

/// The most calls of the kernel for a chain.
const MOST_CALLS: u32 = 16;

/// What of a stack is in a sample.
#[derive(Debug)]
pub(crate) struct Copied {
    /// The number of addresses.
    pub(crate) passed: u32,
    /// The frame at which the bytes begin.
    pub(crate) from: Frame,
    pub(crate) bytes: u32,
}

/// Copies what the ring's samples have of the calling thread's stack, from this frame on. `tid` returns the
/// thread's id.
pub(super) fn copy(claimed: &mut Claimed<'_>, from: Frame, tid: impl Fn() -> u32) -> Copied {
    let (to, room) = claimed.stack();
    if claimed.follows_frame_pointers() {
        let (copied, reached) = follow_to(to, room, from, claimed.reach(), tid);
        claimed.set_reach(reached);
        return copied;
    }
    // SAFETY: the memory is the writer's, and has this size.
    let bytes = unsafe { copy_top(from[1], to, room, tid) };
    Copied { passed: 0, from, bytes: bytes as u32 }
}

/// Copies the addresses of a chain, and a part of the stack beyond its end. Returns also how far from the
/// stack pointer it read. `expected`: what that may be.
fn follow_to(
    to: *mut u8,
    room: usize,
    from: Frame,
    expected: usize,
    tid: impl Fn() -> u32,
) -> (Copied, usize) {
    let [_, sp, _] = from;
    let most = chain::MOST.min(room / 16);
    // SAFETY: half of the room, or less.
    let copy = unsafe { to.add(most * 8) };
    let mut seen =
        Seen { sp, in_place: page_of(sp), window: 0..0, copy, room: room - most * 8, expected, calls: 0 };
    let mut passed = 0;
    let end = follow(
        from,
        |at| seen.frame(at, &tid),
        |instruction| {
            let has_room = passed < most;
            if has_room {
                // SAFETY: within the room, and aligned as the slots are.
                unsafe { to.cast::<u64>().add(passed).write(instruction) };
                passed += 1;
            }
            has_room
        },
    );
    let [_, end_sp, _] = end;
    // SAFETY: behind the addresses there is as much room as they have at most, less what they take.
    let behind = unsafe { to.add(passed * 8) };
    let bytes = seen.copy_to(end_sp, behind, BEYOND.min(room - passed * 8), tid);
    let reached = (end_sp - sp) as usize + BEYOND;
    (Copied { passed: passed as u32, from: end, bytes: bytes as u32 }, reached)
}

/// The parts of a stack that can be read without a fault.
struct Seen {
    sp: u64,
    /// The rest of the stack pointer's page.
    in_place: Range<u64>,
    /// The addresses of which there is a copy.
    window: Range<u64>,
    copy: *mut u8,
    room: usize,
    expected: usize,
    calls: u32,
}

impl Seen {
    /// Returns the two words at this address.
    fn frame(&mut self, at: u64, tid: impl Fn() -> u32) -> Option<[u64; 2]> {
        let end = at.checked_add(16)?;
        let is_in = |part: &Range<u64>| part.start <= at && end <= part.end;
        if is_in(&self.in_place) {
            // SAFETY: in the page on which the thread has its innermost frame, and aligned: each step of a
            // chain looks.
            return Some(unsafe { [word(at), word(at + 8)] });
        }
        if !is_in(&self.window) {
            let expected = self.expected.saturating_sub((at - self.sp) as usize);
            let want = expected.max(AT_ONCE).min(self.room);
            self.calls += 1;
            if want < 16 || self.calls > MOST_CALLS {
                return None;
            }
            // SAFETY: `copy` has this room.
            let copied = unsafe { by_kernel(tid(), at, self.copy, want) }?;
            self.window = at..at + copied as u64;
            if copied < 16 {
                return None;
            }
        }
        let words = self.copied(at).cast::<[u64; 2]>();
        // SAFETY: within the window, of which all is initialised.
        Some(unsafe { words.read_unaligned() })
    }

    /// Where the copy of this address of the window is.
    fn copied(&self, at: u64) -> *const u8 {
        self.copy.wrapping_add((at - self.window.start) as usize)
    }

    /// Copies `most` bytes from an address on, or as many as are there. `to` may overlap with the window.
    fn copy_to(&self, at: u64, to: *mut u8, most: usize, tid: impl Fn() -> u32) -> usize {
        let end = at.saturating_add(most as u64);
        let is_in = |part: &Range<u64>| part.start <= at && end <= part.end;
        if is_in(&self.window) {
            // SAFETY: the window has all of it, and the caller has the room.
            unsafe { std::ptr::copy(self.copied(at), to, most) };
            return most;
        }
        // SAFETY: the caller has the room.
        match (!is_in(&self.in_place)).then(|| unsafe { by_kernel(tid(), at, to, most) }).flatten() {
            Some(copied) => copied,
            // SAFETY: as above; the addresses are in place.
            None if self.in_place.contains(&at) => unsafe {
                copy_in_place(at..self.in_place.end.min(end), to)
            },
            None => 0,
        }
    }
}

/// Copies `room` bytes from the stack pointer on, or as many as are there. Returns their number.
///
/// # Safety
/// `to` has this room, which is the caller's.
unsafe fn copy_top(sp: u64, to: *mut u8, room: usize, tid: impl Fn() -> u32) -> usize {
    let (page, end) = (page_of(sp), sp.saturating_add(room as u64));
    // SAFETY: as for this function.
    let by_kernel = (end > page.end).then(|| unsafe { by_kernel(tid(), sp, to, room) });
    // The call is not needed, not there, or refused.
    // SAFETY: as for this function; a part of the page.
    by_kernel.flatten().unwrap_or_else(|| unsafe { copy_in_place(page.start..page.end.min(end), to) })
}

/// Returns the addresses from a stack pointer on that are on its page. That is mapped, unless the stack is
/// empty: at the begin of a page nothing is known.
fn page_of(sp: u64) -> Range<u64> {
    let in_page = sp % PAGE as u64;
    if in_page == 0 { sp..sp } else { sp..sp - in_page + PAGE as u64 }
}

/// Copies memory of this process, up to the first page that is not there. Returns the number of bytes; `None`
/// if the kernel refuses all.
///
/// # Safety
/// `to` has `room` bytes, which are the caller's. `tid` is the calling thread.
unsafe fn by_kernel(tid: u32, from: u64, to: *mut u8, room: usize) -> Option<usize> {
    let local = libc::iovec { iov_base: to.cast(), iov_len: room };
    let remote = libc::iovec { iov_base: from as *mut libc::c_void, iov_len: room };
    // SAFETY: the kernel writes at most `room` bytes to `to`, and looks whether it may read the others.
    let copied = unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            tid,
            &raw const local,
            1_usize,
            &raw const remote,
            1_usize,
            0_usize,
        )
    };
    usize::try_from(copied).ok().map(|copied| copied.min(room))
}

/// Copies the whole words of a part of the stack pointer's page. Returns the number of bytes.
///
/// # Safety
/// The page is that of the calling thread's stack pointer, and the part does not begin before it. `to` has
/// room for it.
unsafe fn copy_in_place(part: Range<u64>, to: *mut u8) -> usize {
    let words = part.end.saturating_sub(part.start) as usize / 8;
    for index in 0..words {
        // SAFETY: inside of the page, on which the thread has its innermost frame; a stack pointer is aligned
        // to 8 bytes, as the slots are.
        unsafe { to.cast::<u64>().add(index).write(word(part.start + index as u64 * 8)) };
    }
    words * 8
}

/// Reads a word of a stack, to which other threads may write meanwhile. It is no read of a variable, and may
/// be between two, where a sanitizer of addresses permits none: so it is an instruction.
///
/// # Safety
/// The address is mapped, and aligned.
unsafe fn word(at: u64) -> u64 {
    let word: u64;
    // SAFETY: reads mapped memory.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, [{}]", out(reg) word, in(reg) at, options(nostack, readonly, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("ldr {}, [{}]", out(reg) word, in(reg) at, options(nostack, readonly, preserves_flags));
    }
    word
}
