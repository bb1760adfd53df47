//! Bytes on the stack that nobody fills with zeros first: the traced program waits for each of them.

#![allow(unsafe_code)] // bytes that are written before they are read

use std::fmt;
use std::mem::MaybeUninit;

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
        unsafe {
            let to = self.bytes.as_mut_ptr().add(self.len).cast::<u8>();
            to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.len += bytes.len();
        true
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
    many: Vec<u8>,
}

impl<const N: usize> Spilling<N> {
    #[inline(always)]
    pub(crate) const fn new() -> Self {
        Self { few: Buffer::new(), many: Vec::new() }
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
            self.many.extend_from_slice(self.few.as_slice());
        }
        self.many.extend_from_slice(bytes);
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        if self.many.is_empty() { self.few.len() } else { self.many.len() }
    }

    /// Cuts the content to `len` bytes.
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
        assert!(buffer.push(&[1; ROOM - 1]) && !buffer.push(&[2; 2]) && buffer.push(&[3]) && !buffer.push(&[4]));
        assert!(buffer.push(&[]));
        assert_eq!((buffer.len(), buffer.as_slice()[ROOM - 1]), (ROOM, 3));
        buffer.truncate(1);
        buffer.as_mut_slice()[0] = 9;
        assert!(buffer.push(&[5]));
        assert_eq!(buffer.as_slice(), [9, 5]);
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
