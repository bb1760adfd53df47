//! Bytes on the stack that nobody fills with zeros first: the traced program waits for each of them.

#![allow(unsafe_code)] // bytes that are written before they are read

use std::fmt;
use std::mem::MaybeUninit;

use crate::on::base::memory::Bytes;

/// At most `N` bytes on the stack.
pub(crate) struct Buffer<const N: usize> {
    bytes: [MaybeUninit<u8>; N],
    /// The first `len` bytes are written; at most `N`.
    len: usize,
}

impl<const N: usize> Buffer<N> {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self { bytes: [MaybeUninit::uninit(); N], len: 0 }
    }

    /// Appends the bytes. Returns false, and appends nothing, if there is no room for all of them.
    #[inline(always)]
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > N - self.len {
            return false;
        }
        // SAFETY: there is room for the bytes from `len` on. They are not in this buffer, which is borrowed
        // mutably.
        unsafe { copy(bytes, self.bytes.as_mut_ptr().add(self.len).cast()) };
        self.len += bytes.len();
        true
    }

    /// Returns the place after the content, if there is room for `bytes` more.
    #[inline(always)]
    pub(crate) fn room_for(&mut self, bytes: usize) -> Option<*mut u8> {
        // SAFETY: `len` is at most `N`.
        (bytes <= N - self.len).then(|| unsafe { self.bytes.as_mut_ptr().add(self.len).cast() })
    }

    /// Makes `bytes` more the content.
    ///
    /// # Safety
    /// They must have been written at the place that [`room_for`](Self::room_for) returned for as many.
    #[inline(always)]
    pub(crate) unsafe fn add_written(&mut self, bytes: usize) {
        debug_assert!(bytes <= N - self.len);
        self.len += bytes;
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Cuts the content to `len` bytes.
    #[inline(always)]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are written.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.len) }
    }

    #[inline(always)]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: the first `len` bytes are written.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_mut_ptr().cast(), self.len) }
    }
}

/// Copies the bytes to `to`. Most are short, and a call of `memcpy` takes longer than they do: up to 32 bytes
/// are copied by two moves that overlap.
///
/// # Safety
/// There must be room for the bytes at `to`, outside of `bytes`.
#[inline(always)]
pub(crate) unsafe fn copy(bytes: &[u8], to: *mut u8) {
    /// Copies the first and the last `size_of::<T>()` bytes, of which there are at least that many.
    #[inline(always)]
    unsafe fn ends<T>(from: *const u8, to: *mut u8, len: usize) {
        let last = len - size_of::<T>();
        // SAFETY: by the contract. Both are loaded before one is stored.
        unsafe {
            let head = from.cast::<T>().read_unaligned();
            let tail = from.add(last).cast::<T>().read_unaligned();
            to.cast::<T>().write_unaligned(head);
            to.add(last).cast::<T>().write_unaligned(tail);
        }
    }
    let (from, len) = (bytes.as_ptr(), bytes.len());
    // SAFETY: by the contract there is room for `len` bytes, and no move exceeds them.
    unsafe {
        // Comparisons in this order, which a `match` of ranges does not keep.
        if len >= 8 {
            if len <= 16 {
                ends::<u64>(from, to, len);
            } else if len <= 32 {
                ends::<[u64; 2]>(from, to, len);
            } else {
                to.copy_from_nonoverlapping(from, len);
            }
        } else if len >= 4 {
            ends::<u32>(from, to, len);
        } else if len >= 2 {
            ends::<u16>(from, to, len);
        } else if len == 1 {
            to.write(*from);
        }
    }
}

impl<const N: usize> fmt::Debug for Buffer<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// Bytes that are on the stack while there are at most `N`.
#[derive(Debug)]
pub(crate) struct Spilling<const N: usize> {
    few: Buffer<N>,
    /// All bytes, once there were more than `N`. It keeps its memory when it is emptied.
    many: Bytes,
}

impl<const N: usize> Spilling<N> {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self { few: Buffer::new(), many: Bytes::new() }
    }

    /// Appends the bytes.
    #[inline(always)]
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if !self.many.is_empty() || !self.few.push(bytes) {
            self.push_to_many(bytes);
        }
    }

    #[cold]
    fn push_to_many(&mut self, bytes: &[u8]) {
        if self.many.is_empty() {
            self.many.reserve(self.few.len() + bytes.len());
            self.many.extend_from_slice(self.few.as_slice());
        }
        self.many.extend_from_slice(bytes);
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        if self.many.is_empty() { self.few.len() } else { self.many.len() }
    }

    /// Cuts the content to `len` bytes.
    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.few.truncate(len); // bytes that are cut may have been the first of `many`
        self.many.truncate(len);
    }

    #[inline(always)]
    pub(crate) fn as_slice(&self) -> &[u8] {
        if self.many.is_empty() { self.few.as_slice() } else { &self.many }
    }

    #[inline(always)]
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        if self.many.is_empty() { self.few.as_mut_slice() } else { &mut self.many }
    }
}

/// Text that is on the stack while it has at most `N` bytes.
#[derive(Debug)]
pub(crate) struct SpillingText<const N: usize>(Spilling<N>);

impl<const N: usize> SpillingText<N> {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self(Spilling::new())
    }

    /// Appends the text.
    #[inline(always)]
    pub(crate) fn push(&mut self, text: &str) {
        self.0.push(text.as_bytes());
    }

    /// Removes all text.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
        self.0.truncate(0);
    }

    #[inline(always)]
    pub(crate) fn as_str(&self) -> &str {
        // SAFETY: only whole `str`s are appended.
        unsafe { std::str::from_utf8_unchecked(self.0.as_slice()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: usize = 24;

    #[test]
    fn a_buffer_holds_what_fits_and_refuses_the_rest_whole() {
        let mut buffer = Buffer::<ROOM>::new();
        assert!(
            buffer.push(&[1; ROOM - 1]) && !buffer.push(&[2; 2]) && buffer.push(&[3]) && !buffer.push(&[4])
        );
        assert!(buffer.push(&[]));
        assert_eq!((buffer.len(), buffer.as_slice()[ROOM - 1]), (ROOM, 3));
        buffer.truncate(1);
        buffer.as_mut_slice()[0] = 9;
        assert!(buffer.push(&[5]));
        assert_eq!(buffer.as_slice(), [9, 5]);
    }

    #[test]
    fn a_copy_of_every_length_is_whole_and_touches_nothing_beside_it() {
        let bytes: Vec<u8> = (1..100).collect();
        for len in 0..bytes.len() {
            let mut room = [0xaa; 101];
            // SAFETY: room for `len` bytes after the first.
            unsafe { copy(&bytes[..len], room.as_mut_ptr().add(1)) };
            assert_eq!(room[1..=len], bytes[..len]);
            assert_eq!((room[0], room[len + 1]), (0xaa, 0xaa), "{len}");
        }
    }

    #[test]
    fn bytes_that_are_written_in_place_follow_the_content_and_have_room() {
        let mut buffer = Buffer::<ROOM>::new();
        assert!(buffer.push(&[1; 3]) && buffer.room_for(ROOM - 2).is_none());
        let place = buffer.room_for(ROOM - 3).unwrap();
        // SAFETY: there is room for as many bytes, and all are written.
        unsafe {
            place.write_bytes(7, ROOM - 3);
            buffer.add_written(ROOM - 3);
        }
        assert_eq!((buffer.len(), buffer.as_slice()[2], buffer.as_slice()[ROOM - 1]), (ROOM, 1, 7));
        assert!(buffer.room_for(1).is_none() && buffer.room_for(0).is_some());
    }

    #[test]
    fn bytes_below_at_and_above_the_stack_size_are_complete_also_after_a_cut() {
        for len in [0, 1, ROOM - 1, ROOM, ROOM + 1, 4 * ROOM] {
            for cut in [0, 1, ROOM - 1, ROOM, ROOM + 1] {
                let (mut bytes, mut plain) = (Spilling::<ROOM>::new(), Vec::new());
                for round in 0..2 {
                    let more: Vec<u8> = (round..round + len as u8).collect();
                    bytes.push(&more);
                    plain.extend_from_slice(&more);
                    assert_eq!((bytes.as_slice(), bytes.len()), (&plain[..], plain.len()));
                    bytes.truncate(cut);
                    plain.truncate(cut);
                    assert_eq!(bytes.as_slice(), plain, "{len} cut to {cut}");
                }
            }
        }
    }
}
