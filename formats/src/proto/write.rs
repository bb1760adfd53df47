//! Writes fields: a tag and a value each.

use std::ops::DerefMut;

use crate::proto::read::{Field, FieldValue};
use crate::proto::wire::{MAX_VARINT, WireType, tag, varint_len};

/// An output of fields.
///
/// `Vec<u8>` implements it. Only [`bytes`](PutBytes::bytes) is required; an output that can store numbers
/// faster overrides the other methods.
///
/// ```
/// use hairline_formats::proto::{PutBytes, put_str};
///
/// /// Counts the bytes of fields without storing them.
/// struct Count(usize);
/// impl PutBytes for Count {
///     fn bytes(&mut self, bytes: &[u8]) {
///         self.0 += bytes.len();
///     }
/// }
///
/// let mut count = Count(0);
/// put_str(&mut count, 1, "net");
/// assert_eq!(count.0, 5); // tag, length and text
/// ```
pub trait PutBytes {
    /// Appends the bytes.
    fn bytes(&mut self, bytes: &[u8]);

    /// Appends a varint in its shortest form.
    #[inline]
    fn varint(&mut self, value: u64) {
        if value < 0x80 {
            return self.bytes(&[value as u8]); // nearly all varints
        }
        put_long_varint(self, value);
    }

    /// Appends 8 bytes, little-endian.
    #[inline]
    fn fixed64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Appends the lowest `len` bytes of a word, at most 8, little-endian.
    #[inline]
    fn word(&mut self, word: u64, len: usize) {
        self.bytes(&word.to_le_bytes()[..len.min(8)]);
    }
}

/// An output of messages whose length is known only after their content.
///
/// `Vec<u8>` implements it. A caller with memory of its own and of a fixed size can give each length a fixed
/// size too.
pub trait PutMessages: PutBytes + Sized {
    /// Appends a nested message. `write` appends its fields.
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self));
}

/// An output that holds its bytes, and grows.
///
/// `Vec<u8>` implements it. A caller with memory of its own implements it for that, and writes packets there.
pub trait Growing: PutMessages + DerefMut<Target = [u8]> {
    /// Removes all bytes behind the first `len`.
    fn cut(&mut self, len: usize);
}

impl Growing for Vec<u8> {
    fn cut(&mut self, len: usize) {
        self.truncate(len);
    }
}

impl PutMessages for Vec<u8> {
    #[inline]
    fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        put_message(self, field, write);
    }
}

fn put_long_varint(out: &mut (impl PutBytes + ?Sized), value: u64) {
    let mut buffer = [0; MAX_VARINT];
    let len = varint_len(value);
    let mut rest = value;
    for byte in &mut buffer[..len] {
        *byte = rest as u8 | 0x80;
        rest >>= 7;
    }
    buffer[len - 1] &= 0x7f;
    out.bytes(&buffer[..len]);
}

/// The top bit of each byte: another byte follows.
const CONTINUED: u64 = 0x8080_8080_8080_8080;

/// Spreads a value of 56 bits over the seven low bits of eight bytes: first its halves, then quarters, then
/// eighths.
#[inline]
fn spread_out(value: u64) -> u64 {
    let word = value & 0x0fff_ffff | (value & 0x00ff_ffff_f000_0000) << 4;
    let word = word & 0x0000_3fff_0000_3fff | (word & 0x0fff_c000_0fff_c000) << 2;
    word & 0x007f_007f_007f_007f | (word & 0x3f80_3f80_3f80_3f80) << 1
}

/// Returns the varint of a value from 2^49 to 2^56 - 1: 8 bytes, the first in the lowest bits.
///
/// ```
/// use hairline_formats::proto::{put_varint, varint_of_8};
///
/// let value = 1 << 49;
/// let mut out = Vec::new();
/// put_varint(&mut out, value);
/// assert_eq!(out, varint_of_8(value).to_le_bytes());
/// ```
#[inline]
#[must_use]
pub fn varint_of_8(value: u64) -> u64 {
    debug_assert!(value >> 49 != 0 && value >> 56 == 0);
    spread_out(value) | CONTINUED >> 8
}

/// Returns the varint of a value below 2^56, padded to 8 bytes, the first in the lowest bits.
///
/// ```
/// use hairline_formats::proto::varint_in_8;
///
/// assert_eq!(varint_in_8(150).to_le_bytes(), [0x96, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00]);
/// ```
#[inline]
#[must_use]
pub fn varint_in_8(value: u64) -> u64 {
    debug_assert!(value >> 56 == 0);
    spread_out(value) | CONTINUED >> 8
}

/// Returns the varint of a value below 2^56, the first byte in the lowest bits, and its size in bytes. The
/// bytes above it are 0.
///
/// ```
/// use hairline_formats::proto::varint_up_to_8;
///
/// assert_eq!(varint_up_to_8(150), (0x01_96, 2)); // the bytes 96 01
/// ```
#[inline]
#[must_use]
pub fn varint_up_to_8(value: u64) -> (u64, usize) {
    debug_assert!(value >> 56 == 0);
    let len = varint_len(value);
    (spread_out(value) | CONTINUED & !(u64::MAX << (8 * (len - 1))), len)
}

impl PutBytes for Vec<u8> {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    /// Without a loop and without a copy of unknown length.
    #[inline]
    fn varint(&mut self, value: u64) {
        if value < 0x80 {
            return self.push(value as u8);
        }
        if value >= 1 << 56 {
            return put_long_varint(self, value);
        }
        let (bytes, len) = varint_up_to_8(value);
        let end = self.len() + len;
        self.extend_from_slice(&bytes.to_le_bytes());
        self.truncate(end);
    }
}

/// Writes a varint without a tag.
///
/// ```
/// let mut out = Vec::new();
/// hairline_formats::proto::put_varint(&mut out, 150);
/// assert_eq!(out, [0x96, 0x01]);
/// ```
#[inline]
pub fn put_varint(out: &mut impl PutBytes, value: u64) {
    out.varint(value);
}

#[inline]
fn put_tag(out: &mut impl PutBytes, field: u32, wire: WireType) {
    out.varint(u64::from(tag(field, wire)));
}

/// Writes a field of type `uint32`, `uint64`, `bool` or an enum.
///
/// ```
/// let mut out = Vec::new();
/// hairline_formats::proto::put_uint(&mut out, 8, 150);
/// assert_eq!(out, [0x40, 0x96, 0x01]);
/// ```
#[inline]
pub fn put_uint(out: &mut impl PutBytes, field: u32, value: u64) {
    let tag = tag(field, WireType::Varint);
    if tag < 0x80 && value < 0x80 {
        return out.bytes(&[tag as u8, value as u8]);
    }
    out.varint(u64::from(tag));
    out.varint(value);
}

/// Writes a field of type `uint32`, `uint64`, `bool` or an enum, unless the value is the default, 0.
#[inline]
pub(crate) fn put_nonzero(out: &mut impl PutBytes, field: u32, value: u64) {
    if value != 0 {
        put_uint(out, field, value);
    }
}

/// Writes a field of type `uint32`, `uint64`, `bool` or an enum if there is a value.
#[inline]
pub(crate) fn put_some(out: &mut impl PutBytes, field: u32, value: Option<u64>) {
    if let Some(value) = value {
        put_uint(out, field, value);
    }
}

/// Writes a field of type `int32` or `int64`, in two's complement. (Traces do not use protobuf's zigzag
/// `sint64`.)
///
/// ```
/// let mut out = Vec::new();
/// hairline_formats::proto::put_sint64(&mut out, 8, -1);
/// assert_eq!(out, [0x40, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
/// ```
#[inline]
pub fn put_sint64(out: &mut impl PutBytes, field: u32, value: i64) {
    put_uint(out, field, value.cast_unsigned());
}

/// Writes a field of type `bytes`, or a message that is already encoded.
///
/// ```
/// let mut out = Vec::new();
/// hairline_formats::proto::put_bytes(&mut out, 11, &[0x48, 0x02]);
/// assert_eq!(out, [0x5a, 2, 0x48, 0x02]);
/// ```
#[inline]
pub fn put_bytes(out: &mut impl PutBytes, field: u32, value: &[u8]) {
    put_tag(out, field, WireType::Bytes);
    out.varint(value.len() as u64);
    out.bytes(value);
}

/// Writes a field of type `string`.
///
/// ```
/// let mut out = Vec::new();
/// hairline_formats::proto::put_str(&mut out, 2, "net");
/// assert_eq!(out, b"\x12\x03net");
/// ```
#[inline]
pub fn put_str(out: &mut impl PutBytes, field: u32, value: &str) {
    put_bytes(out, field, value.as_bytes());
}

/// Writes a field of type `string`, unless the value is the default, "".
#[inline]
pub(crate) fn put_nonempty(out: &mut impl PutBytes, field: u32, value: &str) {
    if !value.is_empty() {
        put_str(out, field, value);
    }
}

/// Writes a field of type `fixed64`.
///
/// ```
/// let mut out = Vec::new();
/// hairline_formats::proto::put_fixed64(&mut out, 4, 7);
/// assert_eq!(out, [0x21, 7, 0, 0, 0, 0, 0, 0, 0]);
/// ```
#[inline]
pub fn put_fixed64(out: &mut impl PutBytes, field: u32, value: u64) {
    put_tag(out, field, WireType::Fixed64);
    out.fixed64(value);
}

/// Writes a field of type `double`.
///
/// ```
/// let mut out = Vec::new();
/// hairline_formats::proto::put_double(&mut out, 4, 1.0);
/// assert_eq!(out, [0x21, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
/// ```
#[inline]
pub fn put_double(out: &mut impl PutBytes, field: u32, value: f64) {
    put_fixed64(out, field, value.to_bits());
}

/// Writes a field that was read.
pub fn put_field(out: &mut impl PutBytes, field: &Field<'_>) {
    match field.value {
        FieldValue::Varint(value) => put_uint(out, field.number, value),
        FieldValue::Fixed64(value) => put_fixed64(out, field.number, value),
        FieldValue::Fixed32(value) => {
            put_tag(out, field.number, WireType::Fixed32);
            out.bytes(&value.to_le_bytes());
        }
        FieldValue::Bytes { bytes, .. } => put_bytes(out, field.number, bytes),
    }
}

/// Writes a nested message. `write` appends its fields.
///
/// ```
/// use hairline_formats::proto::{put_message, put_uint};
///
/// let mut out = Vec::new();
/// put_message(&mut out, 11, |nested| put_uint(nested, 9, 2));
/// assert_eq!(out, [0x5a, 2, 0x48, 2]); // tag, length, and the nested message
/// ```
#[inline]
pub fn put_message<O: Growing>(out: &mut O, field: u32, write: impl FnOnce(&mut O)) {
    put_tag(out, field, WireType::Bytes);
    // The length is known only afterwards. One byte is reserved for it, which is nearly always enough.
    let at = out.len();
    out.bytes(&[0]);
    write(out);
    let len = out.len() - at - 1;
    if len < 0x80 {
        out[at] = len as u8;
    } else {
        put_long_length(out, at, len);
    }
}

/// Replaces the one byte at `at` with a length of several bytes.
#[cold]
fn put_long_length(out: &mut impl Growing, at: usize, len: usize) {
    let more = varint_len(len as u64) - 1;
    let end = out.len();
    out.varint(len as u64); // encoded at the end, then moved
    let length: [u8; MAX_VARINT] = {
        let mut bytes = [0; MAX_VARINT];
        bytes[..=more].copy_from_slice(&out[end..]);
        bytes
    };
    out.cut(end + more);
    out.copy_within(at + 1..end, at + 1 + more);
    out[at..=at + more].copy_from_slice(&length[..=more]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{Varint, varint};

    /// The least and greatest value of every length.
    fn edges() -> impl Iterator<Item = (usize, u64)> {
        (1..=10).flat_map(|len: usize| {
            let low = if len == 1 { 0 } else { 1 << (7 * (len - 1)) };
            let high = if len == 10 { u64::MAX } else { (1 << (7 * len)) - 1 };
            [(len, low), (len, high)]
        })
    }

    #[test]
    fn a_varint_of_every_length_has_that_length() {
        for (len, value) in edges() {
            let (mut out, mut plain) = (Vec::new(), Vec::new());
            put_varint(&mut out, value);
            put_long_varint(&mut plain, value);
            assert_eq!(out, plain, "same as the loop");
            assert_eq!((out.len(), varint_len(value)), (len, len), "{value:#x}");
            for more in 0..9 {
                let followed = [&out[..], &vec![0xff; more]].concat();
                assert!(matches!(varint(&followed), Varint::Complete(v, l) if (v, l) == (value, len)));
            }
            let carry_on: Vec<bool> = out.iter().map(|b| b & 0x80 != 0).collect();
            assert_eq!(carry_on.iter().filter(|c| **c).count(), len - 1);
            assert!(!carry_on[len - 1]);
        }
    }

    #[test]
    fn a_varint_of_8_bytes_is_the_word_that_holds_them() {
        for value in [1 << 49, (1 << 49) + 1, 0x80_1234_5678_9abc, (1 << 56) - 1] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(out, varint_of_8(value).to_le_bytes(), "{value:#x}");
        }
    }

    #[test]
    fn fields_have_the_bytes_of_the_format() {
        let mut out = Vec::new();
        put_uint(&mut out, 8, 150);
        put_sint64(&mut out, 1, -1);
        put_str(&mut out, 2, "hi");
        put_fixed64(&mut out, 47, 1);
        put_double(&mut out, 5, 1.0);
        assert_eq!(out[..3], [0x40, 0x96, 0x01]);
        assert_eq!(out[3..14], [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]);
        assert_eq!(out[14..18], [0x12, 2, b'h', b'i']);
        assert_eq!(out[18..28], [0xf9, 0x02, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(out[28..], [0x29, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }

    #[test]
    fn a_nested_message_begins_with_its_length_of_any_size() {
        for len in [0, 1, 125, 127, 128, 16_383, 16_384] {
            let (mut nested, mut plain) = (vec![7], vec![7]);
            let content: Vec<u8> = (0..len).map(|i| i as u8).collect();
            put_message(&mut nested, 11, |m| m.extend_from_slice(&content));
            put_bytes(&mut plain, 11, &content);
            assert_eq!(nested, plain, "{len}");
        }
    }
}
