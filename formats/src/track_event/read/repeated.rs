//! Iterators over repeated fields, which read the message in place.

use crate::proto::{FieldValue, Fields, Varint, varint};
use crate::track_event::ids::TrackUuid;
use crate::{DecodeError, DecodeErrorKind};

const PACKED: &str = "a packed number";

/// Iterates over a repeated field of numbers, packed or not.
#[derive(Clone, Debug)]
pub struct Numbers<'a> {
    message: Fields<'a>,
    field: u32,
    /// Whether packed numbers have 8 bytes each; otherwise they are varints.
    fixed: bool,
    packed: &'a [u8],
    packed_offset: u64,
}

impl<'a> Numbers<'a> {
    pub(super) fn varints(message: Fields<'a>, field: u32) -> Self {
        Self { message, field, fixed: false, packed: &[], packed_offset: 0 }
    }

    pub(super) fn fixed64(message: Fields<'a>, field: u32) -> Self {
        Self { fixed: true, ..Self::varints(message, field) }
    }

    fn next_packed(&mut self) -> Result<u64, DecodeError> {
        let (value, len) = if self.fixed {
            match self.packed.first_chunk() {
                Some(bytes) => (u64::from_le_bytes(*bytes), 8),
                None => return Err(self.fail(DecodeErrorKind::PastEnd { what: PACKED })),
            }
        } else {
            match varint(self.packed) {
                Varint::Complete(value, len) => (value, len),
                Varint::Cut => return Err(self.fail(DecodeErrorKind::PastEnd { what: PACKED })),
                Varint::TooLong => return Err(self.fail(DecodeErrorKind::LongVarint)),
            }
        };
        self.packed = &self.packed[len..];
        self.packed_offset += len as u64;
        Ok(value)
    }

    fn fail(&mut self, kind: DecodeErrorKind) -> DecodeError {
        self.packed = &[];
        DecodeError::new(self.packed_offset, kind)
    }
}

impl Iterator for Numbers<'_> {
    type Item = Result<u64, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if !self.packed.is_empty() {
                return Some(self.next_packed());
            }
            let field = match self.message.next()? {
                Ok(field) if field.number == self.field => field,
                Ok(_) => continue,
                Err(e) => return Some(Err(e)),
            };
            match field.value {
                FieldValue::Varint(value) | FieldValue::Fixed64(value) => return Some(Ok(value)),
                FieldValue::Bytes { bytes, offset } => (self.packed, self.packed_offset) = (bytes, offset),
                FieldValue::Fixed32(_) => {}
            }
        }
    }
}

/// Iterates over a repeated field of signed numbers, packed or not.
#[derive(Clone, Debug)]
pub struct Integers<'a>(Numbers<'a>);

impl<'a> Integers<'a> {
    pub(super) fn new(message: Fields<'a>, field: u32) -> Self {
        Self(Numbers::varints(message, field))
    }
}

impl Iterator for Integers<'_> {
    type Item = Result<i64, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map(u64::cast_signed))
    }
}

/// Iterates over the uuids of tracks in a repeated field, packed or not.
#[derive(Clone, Debug)]
pub struct TrackUuids<'a>(Numbers<'a>);

impl<'a> TrackUuids<'a> {
    pub(super) fn new(message: Fields<'a>, field: u32) -> Self {
        Self(Numbers::varints(message, field))
    }
}

impl Iterator for TrackUuids<'_> {
    type Item = Result<TrackUuid, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map(TrackUuid))
    }
}

/// Iterates over a repeated string field. Each string ends at its first byte that is not UTF-8.
#[derive(Clone, Debug)]
pub struct Texts<'a> {
    message: Fields<'a>,
    field: u32,
}

impl<'a> Texts<'a> {
    pub(super) fn new(message: Fields<'a>, field: u32) -> Self {
        Self { message, field }
    }
}

impl<'a> Iterator for Texts<'a> {
    type Item = Result<&'a str, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.message.next()? {
                Ok(field) if field.number == self.field => match field.value.text() {
                    Some(text) => return Some(Ok(text)),
                    None => continue,
                },
                Ok(_) => {}
                Err(e) => return Some(Err(e)),
            }
        }
    }
}
