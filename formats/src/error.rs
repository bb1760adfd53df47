//! What may be wrong with bytes that claim to be a trace.

use std::io;

/// Why bytes could not be decoded, and where.
#[derive(Debug, thiserror::Error)]
#[error("byte {offset}: {kind}")]
pub struct DecodeError {
    /// Where the offending record, field or value begins, in bytes from the start of the input.
    pub offset: u64,
    /// What is wrong there.
    pub kind: DecodeErrorKind,
}

/// What is wrong with the bytes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The input ends in the middle of something: a file that is still being written, or whose writer died.
    #[error("the input ends inside {what}")]
    Truncated {
        /// What was cut.
        what: &'static str,
    },
    /// Something says that it has no size, though its own header is part of it.
    #[error("{what} of size 0")]
    ZeroSize {
        /// What says so.
        what: &'static str,
    },
    /// Something claims to be longer than what it is part of.
    #[error("{what} reaches past the end of what holds it")]
    PastEnd {
        /// What claims too much.
        what: &'static str,
    },
    /// A varint does not end within the ten bytes that 64 bits can need.
    #[error("a varint of more than 10 bytes")]
    LongVarint,
    /// A protobuf field of a wire type that does not exist, or is a group.
    #[error("wire type {0}")]
    WireType(u8),
    /// A protobuf field numbered 0, or beyond 2^29 - 1.
    #[error("field number {0}")]
    FieldNumber(u64),
    /// Something else should stand here.
    #[error("{0} expected")]
    Unexpected(&'static str),
    /// Text that should be JSON is not.
    #[error("not JSON: {0}")]
    Json(String),
    /// A time that is no number of microseconds, or one beyond 64 bits of nanoseconds.
    #[error("{field} is no number of microseconds in the range of 64 bits of nanoseconds")]
    Time {
        /// The field's name.
        field: &'static str,
    },
    /// Something is larger than the reader was told to hand out.
    #[error("{what} of more than {limit} bytes")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The reader could not be read from.
    #[error("reading failed: {0}")]
    Io(io::Error),
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

    /// Whether the input merely ends early: all before [`offset`](Self::offset) is good.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        matches!(self.kind, DecodeErrorKind::Truncated { .. })
    }
}
