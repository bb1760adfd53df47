//! The errors of the readers.

#![cfg_attr(not(feature = "read"), allow(dead_code))] // parts that only the readers of traces use

use std::error::Error;
use std::{fmt, io};

/// An error of a reader, with its position.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::fxt::{self, RecordReader};
///
/// let mut trace = Vec::new();
/// fxt::magic(&mut trace);
/// fxt::string_record(&mut trace, 1, "net");
/// let mut reader = RecordReader::new(&trace[..20]); // ends inside the second record
/// assert!(reader.next().is_ok());
/// let error = reader.next().unwrap_err();
/// assert!(error.is_truncated() && error.offset == 8);
/// assert_eq!(error.to_string(), "byte 8: the input ends inside a record");
/// # }
/// ```
#[derive(Debug)]
pub struct DecodeError {
    /// The offset of the faulty record, field or value, in bytes from the start of the input.
    pub offset: u64,
    /// The kind of error.
    pub kind: DecodeErrorKind,
}

/// The kind of a [`DecodeError`].
#[derive(Debug)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The input ends early: its file is still being written, or its writer has died.
    Truncated {
        /// The part that is cut off.
        what: &'static str,
    },
    /// A size is 0, although it includes its own header.
    ZeroSize {
        /// The part with that size.
        what: &'static str,
    },
    /// A length exceeds the enclosing part.
    PastEnd {
        /// The part with that length.
        what: &'static str,
    },
    /// A varint has more than the ten bytes that 64 bits need.
    LongVarint,
    /// A protobuf field has a wire type that does not exist, or is a group.
    WireType(u8),
    /// A protobuf field has the number 0, or one above 2^29 - 1.
    FieldNumber(u64),
    /// Another part was expected.
    Unexpected(&'static str),
    /// An object is not JSON. The text says why.
    Json(String),
    /// A time is no number of microseconds, or exceeds 64 bits of nanoseconds.
    Time {
        /// The field's name.
        field: &'static str,
    },
    /// A part exceeds the reader's limit.
    TooLarge {
        /// The part that is too large.
        what: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The input cannot be read.
    Io(io::Error),
}

impl fmt::Display for DecodeErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { what } => write!(f, "the input ends inside {what}"),
            Self::ZeroSize { what } => write!(f, "{what} of size 0"),
            Self::PastEnd { what } => write!(f, "{what} reaches past the end of what holds it"),
            Self::LongVarint => f.write_str("a varint of more than 10 bytes"),
            Self::WireType(value) => write!(f, "wire type {value}"),
            Self::FieldNumber(value) => write!(f, "field number {value}"),
            Self::Unexpected(value) => write!(f, "{value} expected"),
            Self::Json(value) => write!(f, "not JSON: {value}"),
            Self::Time { field } => {
                write!(f, "{field} is no number of microseconds in the range of 64 bits of nanoseconds")
            }
            Self::TooLarge { what, limit } => write!(f, "{what} of more than {limit} bytes"),
            Self::Io(e) => write!(f, "reading failed: {e}"),
        }
    }
}

impl Error for DecodeErrorKind {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Io(e) => Some(e),
            _ => None,
        }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}", self.offset, self.kind)
    }
}

impl Error for DecodeError {
    /// The source of the kind, since the message contains the kind itself.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.kind.source()
    }
}

impl DecodeError {
    pub(crate) fn new(offset: u64, kind: DecodeErrorKind) -> Self {
        Self { offset, kind }
    }

    pub(crate) fn past_end(offset: u64, what: &'static str) -> Self {
        Self::new(offset, DecodeErrorKind::PastEnd { what })
    }

    pub(crate) fn truncated(offset: u64, what: &'static str) -> Self {
        Self::new(offset, DecodeErrorKind::Truncated { what })
    }

    pub(crate) fn zero_size(offset: u64, what: &'static str) -> Self {
        Self::new(offset, DecodeErrorKind::ZeroSize { what })
    }

    /// Whether the input just ends early. Everything before [`offset`](Self::offset) is valid.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self.kind, DecodeErrorKind::Truncated { .. })
    }
}
