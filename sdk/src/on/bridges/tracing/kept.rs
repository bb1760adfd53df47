//! The values of a span's fields, in few bytes: a program may have a million spans at once.
//!
//! Each value is the index of its key (2 bytes), its type (1 byte) and its bytes: 8 of a number or a bool. A
//! text or a blob is its length (4 bytes) and its content.

#![allow(unsafe_code)] // texts that come back as they were

use std::error::Error;
use std::fmt;
use std::fmt::Write;

use hairline_formats::Value;
use tracing_core::field::{Field, Visit};

/// Values by the indices of their keys, in the order in which they were added.
#[derive(Debug)]
pub(crate) struct Kept(Bytes);

#[derive(Debug)]
enum Bytes {
    Short { len: u8, bytes: [u8; SHORT] },
    Long(Vec<u8>),
}

/// Number of bytes without an allocation: two numbers.
const SHORT: usize = 30;

/// The bytes of a key and a type, and of a length.
const HEAD: usize = 3;
const LENGTH: usize = 4;
/// The most bytes of a text or a blob.
const LONGEST: usize = u32::MAX as usize;

const BOOL: u8 = 0;
const I64: u8 = 1;
const U64: u8 = 2;
const F64: u8 = 3;
const STR: u8 = 4;
const BLOB: u8 = 5;

#[inline]
fn head(key: usize, kind: u8) -> [u8; HEAD] {
    let [low, high, ..] = key.to_le_bytes();
    [low, high, kind]
}

impl Default for Kept {
    fn default() -> Self {
        Self(Bytes::Short { len: 0, bytes: [0; SHORT] })
    }
}

impl Kept {
    /// Removes all values and keeps the memory.
    pub(crate) fn clear(&mut self) {
        match &mut self.0 {
            Bytes::Short { len, .. } => *len = 0,
            Bytes::Long(bytes) => bytes.clear(),
        }
    }

    fn bytes(&self) -> &[u8] {
        match &self.0 {
            Bytes::Short { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Bytes::Long(bytes) => bytes,
        }
    }

    #[inline]
    fn push(&mut self, more: &[u8]) {
        match &mut self.0 {
            Bytes::Short { len, bytes } => {
                let at = usize::from(*len);
                match bytes.get_mut(at..at + more.len()) {
                    Some(place) => {
                        place.copy_from_slice(more);
                        *len += more.len() as u8; // at most SHORT
                    }
                    None => self.0 = Bytes::Long([&bytes[..at], more].concat()),
                }
            }
            Bytes::Long(bytes) => bytes.extend_from_slice(more),
        }
    }

    #[inline]
    fn push_number(&mut self, key: usize, kind: u8, bits: u64) {
        let mut value = [0; HEAD + 8];
        value[..HEAD].copy_from_slice(&head(key, kind));
        value[HEAD..].copy_from_slice(&bits.to_le_bytes());
        self.push(&value);
    }

    fn push_bytes(&mut self, key: usize, kind: u8, bytes: &[u8]) {
        let mut start = [0; HEAD + LENGTH];
        start[..HEAD].copy_from_slice(&head(key, kind));
        start[HEAD..].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.push(&start);
        self.push(bytes);
    }

    /// Adds a text. One of 4 GiB, which no record has room for, is empty.
    pub(crate) fn add_text(&mut self, key: usize, text: &str) {
        self.push_bytes(key, STR, if text.len() <= LONGEST { text.as_bytes() } else { &[] });
    }

    /// Adds what a `Debug` or `Display` writes.
    fn add_written(&mut self, key: usize, written: fmt::Arguments<'_>) {
        self.push_bytes(key, STR, &[]);
        let begin = self.bytes().len();
        let text = Text { kept: self, begin };
        let _ = text.kept.write_fmt(written); // if it fails, the text that it wrote stays
    }

    fn truncate(&mut self, len: usize) {
        match &mut self.0 {
            Bytes::Short { len: own, .. } => *own = len as u8, // shorter than before
            Bytes::Long(bytes) => bytes.truncate(len),
        }
    }

    /// Iterates over the values, with the indices of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, Value<'_>)> {
        let mut rest = self.bytes();
        std::iter::from_fn(move || {
            let (&[low, high, kind], after) = rest.split_first_chunk()?;
            let (value, after) = Self::value(kind, after)?;
            rest = after;
            Some((usize::from(u16::from_le_bytes([low, high])), value))
        })
    }

    #[inline]
    fn value(kind: u8, bytes: &[u8]) -> Option<(Value<'_>, &[u8])> {
        if kind >= STR {
            let (len, after) = bytes.split_first_chunk()?;
            let (bytes, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
            let value = match kind {
                // SAFETY: the bytes of a `str`, or of several ones one after the other: `add_text` and
                // `write_str` alone add bytes of this kind, whole ones, and their number is as it was.
                STR => Value::Str(unsafe { str::from_utf8_unchecked(bytes) }),
                _ => Value::Blob(bytes),
            };
            return Some((value, after));
        }
        let (bits, after) = bytes.split_first_chunk()?;
        let bits = u64::from_le_bytes(*bits);
        let value = match kind {
            BOOL => Value::Bool(bits != 0),
            I64 => Value::I64(bits.cast_signed()),
            F64 => Value::F64(f64::from_bits(bits)),
            _ => Value::U64(bits),
        };
        Some((value, after))
    }
}

/// A text that is being written. Its length is set when that is over, also by a panic of the program's code.
struct Text<'k> {
    kept: &'k mut Kept,
    begin: usize,
}

impl Drop for Text<'_> {
    fn drop(&mut self) {
        let len = self.kept.bytes().len() - self.begin;
        if len > LONGEST {
            return self.kept.truncate(self.begin);
        }
        let all = match &mut self.kept.0 {
            Bytes::Short { bytes, .. } => bytes.as_mut_slice(),
            Bytes::Long(bytes) => bytes.as_mut_slice(),
        };
        if let Some(place) = all.get_mut(self.begin - LENGTH..self.begin) {
            place.copy_from_slice(&(len as u32).to_le_bytes());
        }
    }
}

impl Write for Kept {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

impl Visit for Kept {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.push_number(field.index(), F64, value.to_bits());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.push_number(field.index(), I64, value.cast_unsigned());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.push_number(field.index(), U64, value);
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        match i64::try_from(value) {
            Ok(value) => self.record_i64(field, value),
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        match u64::try_from(value) {
            Ok(value) => self.record_u64(field, value),
            Err(_) => self.record_debug(field, &value),
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.push_number(field.index(), BOOL, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_text(field.index(), value);
    }

    fn record_bytes(&mut self, field: &Field, value: &[u8]) {
        self.push_bytes(field.index(), BLOB, if value.len() <= LONGEST { value } else { &[] });
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.add_written(field.index(), format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add_written(field.index(), format_args!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_whose_debug_panics_has_what_was_written() {
        struct Panics;
        impl fmt::Debug for Panics {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\u{4}\u{0}\u{4} before")?;
                panic!("in the middle");
            }
        }
        let mut kept = Kept::default();
        let panics = std::panic::AssertUnwindSafe(|| kept.add_written(7, format_args!("{Panics:?}")));
        std::panic::catch_unwind(panics).unwrap_err();
        kept.push_number(8, I64, 1);
        let expected = [(7, Value::Str("\u{4}\u{0}\u{4} before")), (8, Value::I64(1))];
        assert_eq!(format!("{:?}", kept.iter().collect::<Vec<_>>()), format!("{expected:?}"));
    }

    #[test]
    fn values_come_back_in_their_order_however_many_they_are() {
        for count in 0..20 {
            let mut kept = Kept::default();
            let text = "x".repeat(count);
            for key in 0..count {
                kept.push_number(10 * key, I64, key as u64);
                kept.push_number(10 * key + 1, BOOL, 1);
                kept.add_text(10 * key + 2, &text);
                kept.add_written(10 * key + 3, format_args!("{text:?}"));
                kept.push_bytes(10 * key + 4, BLOB, text.as_bytes());
                kept.push_number(10 * key + 5, F64, 0.5f64.to_bits());
            }
            let quoted = format!("{text:?}");
            let expected = (0..count).flat_map(|key| {
                let values = [
                    Value::I64(key as i64),
                    Value::Bool(true),
                    Value::Str(&text),
                    Value::Str(&quoted),
                    Value::Blob(text.as_bytes()),
                    Value::F64(0.5),
                ];
                values.into_iter().enumerate().map(move |(n, value)| (10 * key + n, value))
            });
            assert_eq!(
                format!("{:?}", kept.iter().collect::<Vec<_>>()),
                format!("{:?}", expected.collect::<Vec<_>>())
            );
            kept.clear();
            assert_eq!(kept.iter().count(), 0);
        }
    }
}
