//! Plain stores into a chunk's payload, with the interface that the encoders of both formats write to.

#![allow(unsafe_code)] // raw stores; the caller guarantees the room

use hairline_formats::{fxt, proto};

/// A value at any address. A load or a store of it is one instruction in every build. `read_unaligned` and
/// `write_unaligned` are the same in an optimised build, and calls that check their arguments in a debug
/// build.
#[repr(C, packed)]
struct Anywhere<T>(T);

/// A write position.
pub(crate) struct Raw(*mut u8);

/// Returns the pointer. The compiler keeps it in a register, and does not know where it comes from. Otherwise
/// it computes the place again at each use, from parts that take more registers; and it keeps in registers
/// what it loaded through an earlier copy of the pointer.
#[inline(always)]
pub(crate) fn settled<T>(pointer: *mut T) -> *mut T {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let mut pointer = pointer;
        #[allow(clippy::pointers_in_nomem_asm_block)] // it accesses nothing
        // SAFETY: no instruction; the result is the same pointer.
        unsafe {
            std::arch::asm!("/* {0} */", inout(reg) pointer, options(pure, nomem, nostack, preserves_flags));
        }
        pointer
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    pointer
}

/// As [`settled`], for a reference.
#[inline(always)]
pub(crate) fn settled_ref<T>(reference: &T) -> &T {
    // SAFETY: the same pointer.
    unsafe { &*settled(std::ptr::from_ref(reference).cast_mut()) }
}

impl Raw {
    /// Starts writing at `at`.
    ///
    /// # Safety
    /// All bytes written through the result must fit between `at` and the end of the room less [`OVERHANG`].
    /// Nobody else may read or write there meanwhile.
    #[inline(always)]
    pub(crate) unsafe fn at(at: *mut u8) -> Self {
        Self(at)
    }

    /// Returns the place of the next store.
    #[inline(always)]
    pub(crate) fn position(&self) -> *mut u8 {
        self.0
    }

    /// Stores 8 bytes and advances by `len`: the next store overwrites the others.
    #[inline(always)]
    pub(crate) fn word_of(&mut self, word: u64, len: usize) {
        debug_assert!(len <= 8);
        // SAFETY: room for `len` by the contract of `at`; the bytes stored beyond are within the overhang.
        unsafe {
            *self.0.cast() = Anywhere(word.to_le());
            self.0 = self.0.add(len);
        }
    }

    /// Stores 16 bytes and advances by `len`: the next store overwrites the others.
    #[inline(always)]
    pub(crate) fn two_words_of(&mut self, words: [u64; 2], len: usize) {
        debug_assert!(len <= 16);
        // SAFETY: as in `word_of`.
        unsafe {
            *self.0.cast() = Anywhere([words[0].to_le(), words[1].to_le()]);
            self.0 = self.0.add(len);
        }
    }

    /// Writes a varint of any length; short ones without a loop.
    #[inline(always)]
    pub(crate) fn varint(&mut self, value: u64) {
        if value < 0x80 {
            self.word_of(value, 1); // nearly every length and string id
        } else if value < 1 << 14 {
            self.word_of((value + (value & !0x7f)) | 0x80, 2);
        } else if value < 1 << 56 {
            let (bytes, len) = proto::varint_up_to_8(value);
            self.word_of(bytes, len);
        } else {
            // SAFETY: room by the contract of `at`.
            *self = unsafe { long_varint(self.0, value) };
        }
    }

    /// Copies the first `len` of the bytes, and stores 48 if it is less.
    ///
    /// # Safety
    /// The bytes stored beyond `len` must be of this record, or of the overhang.
    #[inline(always)]
    pub(crate) unsafe fn copy_of_96(&mut self, bytes: &[u8; 96], len: usize) {
        type Half = Anywhere<[u64; 6]>;
        debug_assert!(len <= 96);
        let from = bytes.as_ptr();
        // SAFETY: the loads are inside `bytes`. Room by the contract; the second store, which overlaps the
        // first one, ends at `len`.
        unsafe {
            *self.0.cast() = from.cast::<Half>().read();
            if len > 48 {
                let at = len - 48;
                *self.0.add(at).cast() = from.add(at).cast::<Half>().read();
            }
            self.0 = self.0.add(len);
        }
    }
}

/// Lengths that are known after what they count.
impl Raw {
    /// Returns the bytes from `start`, an earlier position of this record, to the next store.
    #[inline(always)]
    pub(crate) fn distance(&self, start: *mut u8) -> usize {
        self.0.addr() - start.addr()
    }

    /// Stores a length of `bytes` bytes, 1 or 2, in front of `content`: a varint, padded in 2 bytes.
    ///
    /// # Safety
    /// The bytes in front of `content` must be of this record. The length must be below 2^(7 * `bytes`).
    #[inline(always)]
    pub(crate) unsafe fn set_length(content: *mut u8, bytes: usize, len: usize) {
        debug_assert!(len >> (7 * bytes) == 0);
        // SAFETY: by the contract.
        unsafe {
            let at = content.sub(bytes);
            if bytes == 1 {
                *at = len as u8;
            } else {
                *at.cast() = Anywhere((len as u16 & 0x7f | 0x80 | (len as u16 >> 7) << 8).to_le());
            }
        }
    }
}

/// The same position. Nothing that is written through it makes a call: a function of the hot path would save
/// registers for that.
pub(crate) struct Leaf<'r>(pub(crate) &'r mut Raw);

impl Leaf<'_> {
    /// The most bytes of a text, where a loop of stores is surely no slower than a call.
    pub(crate) const LONGEST: usize = 128;

    /// Writes a stream of a text, which is not empty, and `end`, of which there are `end_len` bytes.
    #[inline(always)]
    pub(crate) fn stream_with_end(&mut self, text: &[u8], end: u32, end_len: usize) {
        let len = text.len() + end_len;
        let padded = (len + 7) & !7;
        // SAFETY: room for `padded` bytes and the overhang, by the contract of `at`.
        unsafe {
            let next = self.0.0.add(padded);
            *self.0.0.add(padded - 8).cast() = Anywhere(0_u64);
            self.copy(text);
            *self.0.0.cast() = Anywhere(end.to_le()); // a byte that is too much is 0, or of the next word
            self.0.0 = next;
        }
    }

    /// Writes a stream of two texts with `between`, a byte. The first is not empty.
    #[inline(always)]
    pub(crate) fn stream_of_two(&mut self, first: &[u8], between: u8, second: &[u8]) {
        let padded = (first.len() + 1 + second.len() + 7) & !7;
        // SAFETY: as above.
        unsafe {
            let next = self.0.0.add(padded);
            *self.0.0.add(padded - 8).cast() = Anywhere(0_u64);
            self.copy(first);
            self.0.0.write(between);
            self.0.0 = self.0.0.add(1);
            self.copy(second);
            self.0.0 = next;
        }
    }

    /// Copies `bytes`. The usual lengths are two stores that overlap.
    #[inline(always)]
    fn copy(&mut self, bytes: &[u8]) {
        #[inline(always)]
        unsafe fn one<T>(from: *const u8, to: *mut u8, at: usize) {
            // SAFETY: by the contract of `at` there is room at `to`. The loads stay inside `bytes`.
            unsafe {
                let value = from.add(at).cast::<Anywhere<T>>().read();
                to.add(at).cast::<Anywhere<T>>().write(value);
            }
        }
        #[inline(always)]
        unsafe fn ends<T>(from: *const u8, to: *mut u8, len: usize) {
            // SAFETY: as above; there are at least as many bytes as `T` has.
            unsafe {
                one::<T>(from, to, 0);
                one::<T>(from, to, len - size_of::<T>());
            }
        }
        let (from, to, len) = (bytes.as_ptr(), self.0.0, bytes.len());
        // SAFETY: room for `len` bytes by the contract of `at`, and no store exceeds them.
        unsafe {
            if matches!(len, 8..=16) {
                ends::<u64>(from, to, len);
            } else if len > 16 {
                if len <= 32 {
                    ends::<[u64; 2]>(from, to, len);
                } else if len <= 64 {
                    ends::<[u64; 4]>(from, to, len);
                } else {
                    // `settled`: the compiler would unroll the loop, and save registers for it.
                    let (mut next, mut place) = (from, to);
                    while next < from.add(len - 64) {
                        one::<[u64; 8]>(next, place, 0);
                        (next, place) = (settled(next.add(64).cast_mut()), place.add(64));
                    }
                    one::<[u64; 8]>(from, to, len - 64);
                }
            } else if len >= 4 {
                ends::<u32>(from, to, len);
            } else if len >= 2 {
                ends::<u16>(from, to, len);
            } else if len == 1 {
                one::<u8>(from, to, 0);
            }
            self.0.0 = to.add(len);
        }
    }
}

impl proto::PutBytes for Leaf<'_> {
    #[inline(always)]
    fn bytes(&mut self, bytes: &[u8]) {
        self.copy(bytes);
    }

    #[inline(always)]
    fn varint(&mut self, value: u64) {
        let mut rest = value;
        while rest >= 0x80 {
            self.0.word_of(rest | 0x80, 1);
            rest >>= 7;
        }
        self.0.word_of(rest, 1);
    }

    #[inline(always)]
    fn fixed64(&mut self, value: u64) {
        self.0.word_of(value, 8);
    }

    #[inline(always)]
    fn word(&mut self, word: u64, len: usize) {
        self.0.word_of(word, len);
    }
}

/// Messages whose content has less than 128 bytes.
impl proto::PutMessages for Leaf<'_> {
    #[inline(always)]
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        let tag = proto::tag(field, proto::WireType::Bytes);
        debug_assert!(tag < 0x80, "a tag of one byte");
        self.0.word_of(u64::from(tag), 2);
        let content = self.0.position();
        write(self);
        // SAFETY: the length's byte follows the tag.
        unsafe { Raw::set_length(content, 1, self.0.distance(content)) };
    }
}

impl fxt::PutWords for Leaf<'_> {
    #[inline(always)]
    fn word(&mut self, w: u64) {
        self.0.word_of(w, 8);
    }

    #[inline(always)]
    fn stream(&mut self, bytes: &[u8]) {
        let padded = (bytes.len() + 7) & !7; // fewer instructions than `next_multiple_of`
        if padded == 0 {
            return;
        }
        // SAFETY: room for `padded` bytes by the contract of `at`.
        unsafe {
            *self.0.0.add(padded - 8).cast() = Anywhere(0_u64);
            let end = self.0.0.add(padded);
            self.copy(bytes);
            self.0.0 = end;
        }
    }
}

/// Writes a varint at `at`, and returns the place after it. By value: a position that is passed by reference
/// would be in memory from its first store on.
///
/// # Safety
/// Room for the varint and the overhang.
#[inline(never)]
unsafe fn long_varint(at: *mut u8, mut value: u64) -> Raw {
    let mut raw = Raw(at);
    while value >= 0x80 {
        raw.word_of(value & 0x7f | 0x80, 1);
        value >>= 7;
    }
    raw.word_of(value, 1);
    raw
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on::session::room::OVERHANG;

    #[test]
    fn a_varint_equals_the_plain_one_at_every_boundary() {
        let edges = (0..64).map(|bit| 1_u64 << bit);
        for value in edges.flat_map(|v| [v, v - 1, u64::MAX / v]) {
            let mut plain = Vec::new();
            proto::put_varint(&mut plain, value);
            let mut room = [0xaa_u8; proto::MAX_VARINT + OVERHANG];
            // SAFETY: room for the longest varint and the overhang.
            let mut raw = unsafe { Raw::at(room.as_mut_ptr()) };
            raw.varint(value);
            let written = raw.distance(room.as_mut_ptr());
            assert_eq!(&room[..written], plain, "{value:#x}");
        }
    }

    #[test]
    fn a_length_that_is_stored_last_equals_the_varint_of_its_value() {
        for (len, bytes) in [(0, 1), (1, 1), (0x7f, 1), (0, 2), (0x7f, 2), (0x80, 2), (0x3fff, 2)] {
            let mut room = [0xaa_u8; 4];
            // SAFETY: two bytes in front of the content.
            unsafe { Raw::set_length(room.as_mut_ptr().add(3), bytes, len) };
            let groups = room[3 - bytes..3].iter().enumerate();
            let value = groups.fold(0, |value, (at, byte)| value | usize::from(byte & 0x7f) << (7 * at));
            assert_eq!((value, room[2] & 0x80, room[0], room[3]), (len, 0, 0xaa, 0xaa), "{len:#x}");
            assert!(bytes == 1 || room[1] & 0x80 != 0);
        }
    }

    #[test]
    fn what_a_leaf_writes_equals_the_plain_encoding_for_every_length() {
        use proto::PutBytes;
        let lengths = (0..=Leaf::LONGEST).chain([191, 192, 193, 256, 257, 300]);
        let numbers = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, u64::MAX >> bit]);
        for (len, number) in lengths.cycle().zip(numbers.cycle()).take(3 * 64 * 129) {
            let text: Vec<u8> = (0..len).map(|at| at as u8 | 0x80).collect();
            let mut plain = Vec::new();
            plain.varint(number);
            plain.bytes(&text);
            plain.resize(plain.len().next_multiple_of(8), 0);
            fxt::PutWords::stream(&mut plain, &text);
            let mut room = [0xaa_u8; 2 * 304 + 32 + OVERHANG];
            // SAFETY: room for both texts and more, and the overhang.
            let mut raw = unsafe { Raw::at(room.as_mut_ptr()) };
            Leaf(&mut raw).varint(number);
            Leaf(&mut raw).bytes(&text);
            let padding = raw.distance(room.as_mut_ptr()).wrapping_neg() % 8;
            PutBytes::word(&mut Leaf(&mut raw), 0, padding);
            fxt::PutWords::stream(&mut Leaf(&mut raw), &text);
            let written = raw.distance(room.as_mut_ptr());
            assert_eq!(&room[..written], plain, "{len} {number:#x}");
        }
    }

    #[test]
    fn a_copy_of_constants_stores_nothing_beyond_them_or_48_bytes() {
        let bytes: [u8; 96] = std::array::from_fn(|at| at as u8);
        for len in 0..=96 {
            let mut room = [0xaa_u8; 128];
            // SAFETY: room for all of them.
            let mut raw = unsafe { Raw::at(room.as_mut_ptr()) };
            // SAFETY: as above.
            unsafe { raw.copy_of_96(&bytes, len) };
            assert_eq!((raw.distance(room.as_mut_ptr()), &room[..len]), (len, &bytes[..len]));
            assert!(room[len.max(48)..].iter().all(|byte| *byte == 0xaa), "{len}");
        }
    }

    #[test]
    fn streams_of_every_length_are_padded_with_zeros() {
        for len in 0..64 {
            let text: Vec<u8> = (1..=len).collect();
            let mut plain = Vec::new();
            fxt::PutWords::stream(&mut plain, &text);
            let mut room = [0xaa_u8; 64 + OVERHANG];
            // SAFETY: 64 bytes of room and the overhang.
            let mut raw = unsafe { Raw::at(room.as_mut_ptr()) };
            fxt::PutWords::stream(&mut Leaf(&mut raw), &text);
            let written = raw.distance(room.as_mut_ptr());
            assert_eq!(&room[..written], plain);
        }
    }
}
