//! Reads the fields of a message in memory.
//!
//! Every length is checked before it is used. A nested message is returned as a slice and not read, so deep
//! nesting costs nothing.

#![cfg_attr(not(feature = "read"), allow(dead_code))] // parts that only the readers of traces use

use crate::proto::wire::{MAX_FIELD, MAX_VARINT, WIRE_TYPE_BITS, WireType, tag};
use crate::text::valid_prefix;
use crate::{DecodeError, DecodeErrorKind};

/// A field of a message that was read.
///
/// ```
/// use hairline_formats::proto::{FieldValue, Fields, put_field, put_str, put_uint};
///
/// let mut message = Vec::new();
/// put_uint(&mut message, 1, 7);
/// put_str(&mut message, 2, "net");
///
/// // Copies the message without its strings.
/// let mut copy = Vec::new();
/// for field in Fields::new(&message, 0) {
///     let field = field?;
///     if !matches!(field.value, FieldValue::Bytes { .. }) {
///         put_field(&mut copy, &field);
///     }
/// }
/// assert_eq!(copy, [0x08, 7]);
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The field's number.
    pub number: u32,
    /// The field's value.
    pub value: FieldValue<'a>,
    /// The offset of the field's tag in the input.
    pub offset: u64,
}

/// A field's value. The schema of the message says what type it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// An integer, boolean or enum.
    Varint(u64),
    /// A `fixed64` or the bits of a `double`.
    Fixed64(u64),
    /// A `fixed32` or the bits of a `float`.
    Fixed32(u32),
    /// A string, bytes, a message, or packed numbers.
    Bytes {
        /// The value.
        bytes: &'a [u8],
        /// The offset of the first byte in the input.
        offset: u64,
    },
}

impl<'a> FieldValue<'a> {
    /// Returns a string's text up to the first byte that is not UTF-8.
    pub(crate) fn text(self) -> Option<&'a str> {
        match self {
            Self::Bytes { bytes, .. } => Some(valid_prefix(bytes)),
            _ => None,
        }
    }

    /// Returns the fields of a nested message.
    pub(crate) fn message(self) -> Option<Fields<'a>> {
        match self {
            Self::Bytes { bytes, offset } => Some(Fields::new(bytes, offset)),
            _ => None,
        }
    }
}

/// Iterates over the fields of a message in their order. Ends after the first error.
///
/// ```
/// use hairline_formats::proto::{FieldValue, Fields, put_str, put_uint};
///
/// let mut message = Vec::new();
/// put_uint(&mut message, 1, 7);
/// put_str(&mut message, 2, "net");
/// let mut fields = Fields::new(&message, 0);
/// assert_eq!(fields.next().unwrap()?.value, FieldValue::Varint(7));
/// assert_eq!(fields.next().unwrap()?.value, FieldValue::Bytes { bytes: b"net", offset: 4 });
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
    offset: u64,
}

impl<'a> Fields<'a> {
    /// Iterates over `message`, which begins at byte `offset` of the input. Errors and fields refer to that
    /// offset.
    #[must_use]
    pub fn new(message: &'a [u8], offset: u64) -> Self {
        Self { rest: message, offset }
    }

    /// The packet at the begin of a part of a trace, if its length takes one byte; with its size.
    #[inline]
    #[must_use]
    pub fn short_packet(trace: &'a [u8]) -> Option<(Self, usize)> {
        const PACKET: u8 = 1 << WIRE_TYPE_BITS | WireType::Bytes as u8;
        match trace {
            [PACKET, len @ 0..0x80, body @ ..] => {
                Some((Self::new(body.get(..usize::from(*len))?, 0), 2 + usize::from(*len)))
            }
            _ => None,
        }
    }

    /// The fields of an empty message.
    pub(crate) fn none() -> Self {
        Self::new(&[], 0)
    }

    /// Returns the next nested message of the field `number`, or the error that ends the fields.
    #[inline]
    pub(crate) fn next_message(&mut self, number: u32) -> Option<Result<Self, DecodeError>> {
        if let [first, len @ 0..0x80, rest @ ..] = self.rest
            && u32::from(*first) == tag(number, WireType::Bytes)
            && let Some((message, rest)) = rest.split_at_checked(usize::from(*len))
        {
            let offset = self.offset + 2;
            (self.rest, self.offset) = (rest, offset + u64::from(*len));
            return Some(Ok(Self::new(message, offset)));
        }
        loop {
            match self.next()? {
                Ok(field) if field.number == number => {
                    if let Some(message) = field.value.message() {
                        return Some(Ok(message));
                    }
                }
                Ok(_) => {}
                Err(e) => return Some(Err(e)),
            }
        }
    }

    /// Returns the bytes that are not read yet.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    #[inline]
    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        self.offset += len as u64;
        taken
    }

    #[inline]
    fn varint(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                (self.rest, self.offset) = (rest, self.offset + 1);
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(what),
        }
    }

    fn long_varint(&mut self, what: &'static str) -> Result<u64, DecodeError> {
        match varint(self.rest) {
            Varint::Complete(value, len) => {
                self.take(len);
                Ok(value)
            }
            Varint::Cut => Err(DecodeError::past_end(self.offset, what)),
            Varint::TooLong => Err(DecodeError::new(self.offset, DecodeErrorKind::LongVarint)),
        }
    }

    #[inline]
    fn bytes(&mut self, len: u64, what: &'static str) -> Result<&'a [u8], DecodeError> {
        match usize::try_from(len) {
            Ok(len) if len <= self.rest.len() => Ok(self.take(len)),
            _ => Err(DecodeError::past_end(self.offset, what)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N as u64, "a fixed-width field")?);
        Ok(array)
    }

    #[inline]
    fn field(&mut self) -> Result<Field<'a>, DecodeError> {
        let offset = self.offset;
        let (number, wire) = split_tag(self.varint("a field's tag")?, offset)?;
        let value = match wire {
            WireType::Varint => FieldValue::Varint(self.varint("a varint")?),
            WireType::Fixed64 => FieldValue::Fixed64(u64::from_le_bytes(self.array()?)),
            WireType::Fixed32 => FieldValue::Fixed32(u32::from_le_bytes(self.array()?)),
            WireType::Bytes => {
                let len = self.varint("a field's length")?;
                let offset = self.offset;
                FieldValue::Bytes { bytes: self.bytes(len, "a field")?, offset }
            }
        };
        Ok(Field { number, value, offset })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// A varint at the beginning of some bytes.
pub(crate) enum Varint {
    /// The value, and the varint's size in bytes.
    Complete(u64, usize),
    /// The bytes end inside the varint.
    Cut,
    /// The varint continues after ten bytes.
    TooLong,
}

/// Reads a varint. Drops bits above the 64th, as protobuf's own readers do.
#[inline]
pub(crate) fn varint(bytes: &[u8]) -> Varint {
    match bytes.first() {
        Some(byte) if *byte < 0x80 => Varint::Complete(u64::from(*byte), 1), // nearly all varints
        _ => long_varint(bytes),
    }
}

/// The payload bits of eight bytes.
const SEVENS: u64 = 0x7f7f_7f7f_7f7f_7f7f;

fn long_varint(bytes: &[u8]) -> Varint {
    let seven = |byte: u8, place: u32| u64::from(byte & 0x7f) << (7 * place);
    match *bytes {
        [a, b @ 0..0x80, ..] => return Varint::Complete(seven(a, 0) | seven(b, 1), 2),
        [a, b, c @ 0..0x80, ..] => return Varint::Complete(seven(a, 0) | seven(b, 1) | seven(c, 2), 3),
        _ => {}
    }
    if let Some(first) = bytes.first_chunk() {
        let word = u64::from_le_bytes(*first);
        let ends = !word & !SEVENS;
        if ends != 0 {
            let bits = ends.trailing_zeros() + 1;
            return Varint::Complete(close_up(word & SEVENS & u64::MAX >> (64 - bits)), bits as usize / 8);
        }
        // The UUIDs of tracks, which are hashes, have nine bytes or ten.
        match bytes[8..] {
            [a @ 0..0x80, ..] => return Varint::Complete(close_up(word & SEVENS) | seven(a, 8), 9),
            [a, b @ 0..0x80, ..] => {
                return Varint::Complete(close_up(word & SEVENS) | seven(a, 8) | seven(b, 9), 10);
            }
            _ => {}
        }
    }
    slow_varint(bytes)
}

/// Closes the gaps between the seven low bits of each byte: first in pairs of bytes, then of pairs, then of
/// halves.
fn close_up(word: u64) -> u64 {
    let word = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = word & 0x0000_3fff_0000_3fff | (word & 0x3fff_0000_3fff_0000) >> 2;
    word & 0x0fff_ffff | (word & 0x0fff_ffff_0000_0000) >> 4
}

fn slow_varint(bytes: &[u8]) -> Varint {
    let mut value = 0;
    for (i, byte) in bytes.iter().take(MAX_VARINT).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Varint::Complete(value, i + 1);
        }
    }
    if bytes.len() < MAX_VARINT { Varint::Cut } else { Varint::TooLong }
}

/// Splits a tag into field number and wire type.
#[inline]
pub(crate) fn split_tag(tag: u64, offset: u64) -> Result<(u32, WireType), DecodeError> {
    let number = match u32::try_from(tag >> WIRE_TYPE_BITS) {
        Ok(number @ 1..=MAX_FIELD) => number,
        _ => return Err(DecodeError::new(offset, DecodeErrorKind::FieldNumber(tag >> WIRE_TYPE_BITS))),
    };
    let wire = match tag as u8 & ((1 << WIRE_TYPE_BITS) - 1) {
        0 => WireType::Varint,
        1 => WireType::Fixed64,
        2 => WireType::Bytes,
        5 => WireType::Fixed32,
        other => return Err(DecodeError::new(offset, DecodeErrorKind::WireType(other))),
    };
    Ok((number, wire))
}
