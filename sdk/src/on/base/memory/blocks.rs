//! Blocks of memory from the kernel.
//!
//! ```text
//! slab, mapped      [used][header|block][header|block] ... | free
//! larger block      [header|block                        ]   a mapping of its own
//! FREE[size]   ->  header of a free block  ->  the next one  ->  ..
//! ```
//!
//! A block of a slab has one of some sizes, its header included. A free one waits in the list of its size,
//! and the slab is never unmapped: a process keeps the memory of its most threads at a time. A larger block
//! is unmapped when it is free.
//!
//! Nothing here takes a lock, so a signal handler may interrupt it and allocate, and a fork loses at most the
//! blocks that other threads are about to take. The lists are stacks. A thread that takes the first block
//! reads its link while another thread may take that block too. The link is an atomic in the header, which no
//! owner of the block writes, and the number beside the head of a list changes with each change of the list:
//! a link that is out of date is not stored, unless the list was changed exactly a multiple of 2^20 times
//! between two instructions of the thread, and has the same first block again.

#![allow(unsafe_code)] // maps memory

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use hairline_shm::{map_memory, unmap_memory};

/// The alignment of every block.
const ALIGN: usize = 16;

/// The bytes of the smallest block of a slab, of the largest one whose size is the next multiple of
/// [`ALIGN`], and of the largest.
const SMALLEST: usize = 2 * ALIGN;
const FINE: usize = 1 << FINE_BITS;
const FINE_BITS: u32 = 7;
const LARGEST: usize = 1 << 14;

/// The sizes between two powers of two, above the fine ones.
const STEPS: usize = 4;

/// The number of sizes of blocks of slabs.
const SIZES: usize = size_for(LARGEST).0 as usize + 1;

/// The number of the smallest size that has room for so many bytes, and its bytes.
const fn size_for(bytes: usize) -> (u32, usize) {
    if bytes <= FINE {
        let units = if bytes < SMALLEST { SMALLEST / ALIGN } else { bytes.div_ceil(ALIGN) };
        return ((units - SMALLEST / ALIGN) as u32, units * ALIGN);
    }
    let below = (bytes - 1).ilog2(); // at least FINE_BITS
    let unit = below - STEPS.ilog2();
    let units = ((bytes - 1) >> unit) + 1;
    let before = FINE / ALIGN - SMALLEST / ALIGN + (below - FINE_BITS) as usize * STEPS;
    ((before + units - STEPS) as u32, units << unit)
}

/// Bytes of a slab.
const SLAB: usize = 128 << 10;

/// The number of the size of a block that is a mapping of its own.
const MAPPED: u32 = 64;
/// That of a block that is an allocation of its own.
const ALLOCATED: u32 = 65;

/// The unit of the larger blocks.
const PAGE: usize = 4096;

/// In front of each block.
#[repr(C, align(16))]
struct Header {
    /// The free block after this one, if it is free.
    next: AtomicPtr<Header>,
    /// The number of its size, [`MAPPED`] or [`ALLOCATED`].
    size: AtomicU32,
    /// The bytes of memory of its own, by [`PAGE`].
    pages: AtomicU32,
}

const HEADER: usize = size_of::<Header>();

/// A list of free blocks: the address of the first by [`ALIGN`] in the lower bits, and the number of changes
/// above.
struct Free(AtomicU64);

/// Bits of an address by [`ALIGN`]. The kernel gives no address of 2^48 or more to a program that does not
/// ask for it.
const ADDRESS: u64 = (1 << (48 - ALIGN.ilog2())) - 1;
const CHANGE: u64 = ADDRESS + 1;

static FREE: [Free; SIZES] = [const { Free(AtomicU64::new(0)) }; SIZES];

/// The first block of a list.
fn first(head: u64) -> *mut Header {
    std::ptr::with_exposed_provenance_mut((head & ADDRESS) as usize * ALIGN)
}

/// The list after `head` with another first block.
fn changed(head: u64, first: *mut Header) -> Option<u64> {
    let address = (first.expose_provenance() / ALIGN) as u64;
    (address <= ADDRESS).then_some(address | (head & !ADDRESS).wrapping_add(CHANGE))
}

impl Free {
    fn take(&self) -> Option<NonNull<Header>> {
        let mut head = self.0.load(Ordering::Acquire); // pairs with the Release in `put`
        loop {
            let taken = NonNull::new(first(head))?;
            // SAFETY: a header of a slab, which is never unmapped. Only atomics are in it.
            let next = unsafe { taken.as_ref() }.next.load(Ordering::Relaxed);
            let changed = changed(head, next)?;
            match self.0.compare_exchange_weak(head, changed, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(taken),
                Err(now) => head = now,
            }
        }
    }

    fn put(&self, header: NonNull<Header>) {
        let mut head = self.0.load(Ordering::Relaxed);
        // A block at an address that does not fit is lost.
        while let Some(changed) = changed(head, header.as_ptr()) {
            // SAFETY: as in `take`.
            unsafe { header.as_ref() }.next.store(first(head), Ordering::Relaxed);
            // Release pairs with the Acquire in `take`: the link, and all that the owner did with the block.
            match self.0.compare_exchange_weak(head, changed, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

/// The slab of which blocks are taken. Its first word is the number of bytes that are taken.
static CURRENT: AtomicPtr<AtomicUsize> = AtomicPtr::new(std::ptr::null_mut());

/// Gets zeroed memory. Returns [`MAPPED`] or [`ALLOCATED`] too.
///
/// The program's allocator is only asked where the kernel maps no more: there are limits (`vm.max_map_count`)
/// that the allocator has not met yet.
fn get(bytes: usize) -> Option<(NonNull<u8>, u32)> {
    if let Some(mapped) = map_memory(bytes) {
        return Some((mapped, MAPPED));
    }
    // SAFETY: the layout has a size.
    let allocated = unsafe { std::alloc::alloc_zeroed(layout(bytes)?) };
    Some((NonNull::new(allocated)?, ALLOCATED))
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, PAGE).ok()
}

/// Gives memory back.
///
/// # Safety
/// It comes from [`get`], and is not used any more.
unsafe fn give_back(memory: NonNull<u8>, bytes: usize, origin: u32) {
    match layout(bytes).filter(|_| origin == ALLOCATED) {
        // SAFETY: by the contract, with the layout of `get`.
        Some(layout) => unsafe { std::alloc::dealloc(memory.as_ptr(), layout) },
        // SAFETY: by the contract.
        None => unsafe { unmap_memory(memory, bytes) },
    }
}

/// Takes a block from the slab, and maps another one when it is used up.
fn take_new(bytes: usize) -> Option<NonNull<Header>> {
    loop {
        let slab = CURRENT.load(Ordering::Acquire); // pairs with the Release below
        // SAFETY: null, or a slab, which is never unmapped.
        if let Some(used) = unsafe { slab.as_ref() } {
            let at = used.fetch_add(bytes, Ordering::Relaxed);
            if at.checked_add(bytes).is_some_and(|end| end <= SLAB) {
                // SAFETY: within the slab, and taken by this call alone.
                return NonNull::new(unsafe { slab.byte_add(at) }.cast());
            }
        }
        let (memory, origin) = get(SLAB)?;
        let new = memory.cast::<AtomicUsize>();
        // SAFETY: zeroed memory of a slab, which no other thread has.
        unsafe { new.as_ref() }.store(HEADER, Ordering::Relaxed);
        if CURRENT.compare_exchange(slab, new.as_ptr(), Ordering::Release, Ordering::Relaxed).is_err() {
            // SAFETY: from `get` just now, and not shared.
            unsafe { give_back(memory, SLAB, origin) }; // another thread was first
        }
    }
}

/// Takes a block of a slab. Returns its bytes and the number of its size too.
fn take(whole: usize) -> Option<(NonNull<Header>, usize, u32)> {
    let (size, whole) = size_for(whole);
    Some((FREE[size as usize].take().or_else(|| take_new(whole))?, whole, size))
}

/// Gets a block that is memory of its own, as [`take`].
fn get_alone(whole: usize) -> Option<(NonNull<Header>, usize, u32)> {
    let whole = whole.checked_next_multiple_of(PAGE)?;
    let (memory, origin) = get(whole)?;
    Some((memory.cast(), whole, origin))
}

/// Allocates a block, whose bytes have any value. Returns the number of its bytes too: `bytes` or more.
fn allocate(bytes: usize) -> Option<(NonNull<u8>, usize)> {
    let whole = bytes.checked_add(HEADER)?;
    let taken = if whole <= LARGEST { take(whole) } else { None };
    // Where no slab can be had, a page may.
    let (header, whole, size) = taken.or_else(|| get_alone(whole))?;
    // SAFETY: a block of this call: at least a header of zeroed memory, or of one that was free.
    let of_block = unsafe { header.as_ref() };
    of_block.size.store(size, Ordering::Relaxed);
    of_block.pages.store(u32::try_from(whole / PAGE).ok()?, Ordering::Relaxed);
    // SAFETY: within the block.
    Some((unsafe { header.byte_add(HEADER) }.cast(), whole - HEADER))
}

/// Allocates a block of at least `bytes`. Returns the number of its bytes too.
///
/// Ends the process if there is no memory, like the standard library's containers.
pub(super) fn allocate_or_abort(bytes: usize) -> (NonNull<u8>, usize) {
    match allocate(bytes) {
        Some(block) => block,
        None => std::alloc::handle_alloc_error(layout(bytes).unwrap_or(Layout::new::<Header>())),
    }
}

/// Frees a block.
///
/// # Safety
/// `block` comes from [`allocate_or_abort`], and is not used any more.
pub(super) unsafe fn free(block: NonNull<u8>) {
    // SAFETY: each block has a header in front of it.
    let header = unsafe { block.byte_sub(HEADER) }.cast::<Header>();
    // SAFETY: as above.
    let of_block = unsafe { header.as_ref() };
    match of_block.size.load(Ordering::Relaxed) {
        origin @ (MAPPED | ALLOCATED) => {
            let len = of_block.pages.load(Ordering::Relaxed) as usize * PAGE;
            // SAFETY: the memory of this block alone.
            unsafe { give_back(header.cast(), len, origin) };
        }
        size => FREE[size as usize].put(header),
    }
}

/// Moves a value into memory that is never freed.
pub(crate) fn leak<T>(value: T) -> &'static mut T {
    let (bytes, align) = (size_of::<T>(), align_of::<T>());
    let (block, _) = allocate_or_abort(if align > ALIGN { bytes + align } else { bytes });
    // SAFETY: the block has room for the value behind the padding, and nobody else has it.
    unsafe {
        let place = block.as_ptr().byte_add(block.as_ptr().align_offset(align)).cast::<T>();
        place.write(value);
        &mut *place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_every_size_are_apart_and_can_be_filled() {
        let sizes = [1, 48, 49, 100, 1000, 4080, 4081, 16_368, 16_369, 100_000, 1 << 20];
        let blocks: Vec<_> = sizes
            .iter()
            .cycle()
            .take(500)
            .enumerate()
            .map(|(n, size)| {
                let (block, len) = allocate_or_abort(*size);
                assert!(len >= *size && block.as_ptr().addr() % ALIGN == 0);
                // SAFETY: a block of so many bytes.
                unsafe { block.as_ptr().write_bytes(n as u8, len) };
                (n as u8, block, len)
            })
            .collect();
        for (n, block, len) in blocks {
            // SAFETY: filled above, and freed once.
            unsafe {
                assert!(std::slice::from_raw_parts(block.as_ptr(), len).iter().all(|byte| *byte == n));
                free(block);
            }
        }
    }

    #[test]
    fn threads_that_take_and_free_blocks_at_once_never_have_the_same() {
        std::thread::scope(|threads| {
            for thread in 1..=4_u8 {
                threads.spawn(move || {
                    for round in 0..20_000_usize {
                        let blocks = [(); 3].map(|()| allocate_or_abort(40 + round % 100));
                        for (block, len) in blocks {
                            // SAFETY: a block of this thread.
                            unsafe { block.as_ptr().write_bytes(thread, len) };
                        }
                        for (block, len) in blocks {
                            // SAFETY: as above.
                            unsafe {
                                assert_eq!((*block.as_ptr(), *block.as_ptr().add(len - 1)), (thread, thread));
                                free(block);
                            }
                        }
                    }
                });
            }
        });
    }

    #[test]
    fn a_size_has_room_and_the_next_smaller_one_has_not() {
        let mut last = (0, SMALLEST);
        for bytes in 1..=LARGEST {
            let (size, whole) = size_for(bytes);
            assert!(whole >= bytes && whole.is_multiple_of(ALIGN) && (size as usize) < SIZES, "{bytes}");
            if size != last.0 {
                assert!(
                    size == last.0 + 1
                        && bytes == last.1 + 1
                        && whole <= last.1 + last.1.div_ceil(4).max(ALIGN),
                    "{bytes}"
                );
            }
            last = (size, whole);
        }
        assert_eq!(last, (SIZES as u32 - 1, LARGEST));
    }

    #[test]
    fn a_leaked_value_has_its_alignment() {
        #[repr(align(64))]
        struct Line(u8);
        for n in 0..100 {
            let line = leak(Line(n));
            assert_eq!((std::ptr::from_ref(line).addr() % 64, line.0), (0, n));
        }
    }
}
