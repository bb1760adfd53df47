//! How a record names a string or a thread: by an index it was given before, or in full.

use super::layout::{MAX_STRING, string_ref, words};
use crate::truncate_utf8;

/// "String references": 16 bits in a header, and for an inline string a stream after it.
///
/// ```text
///  15  14                0
/// +---+-------------------+
/// | 0 | 0                 |  the empty string
/// | 0 | index             |  of a String record before
/// | 1 | length in bytes   |  the string follows
/// +---+-------------------+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringRef<'a> {
    /// The empty string.
    Empty,
    /// A string by the index of its String record: 1 to [`MAX_STRING_INDEX`](super::MAX_STRING_INDEX); 0 is the empty string.
    Index(u16),
    /// The string itself. Written: at most [`MAX_STRING`] bytes of it, cut between two characters.
    Inline(&'a str),
}

impl<'a> StringRef<'a> {
    /// The 16 bits of the reference.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Index(index) => string_ref::INDEX.set(u64::from(index)),
            Self::Inline(_) => match self.text().len() as u64 {
                0 => 0,
                length => string_ref::INLINE.set(1) | string_ref::LENGTH.set(length),
            },
        }
    }

    /// Words of the stream that follows.
    #[inline]
    #[must_use]
    pub fn words(self) -> usize {
        words(self.text().len())
    }

    /// What follows inline, as it is written.
    #[inline]
    pub(super) fn text(self) -> &'a str {
        match self {
            Self::Inline(text) => truncate_utf8(text, MAX_STRING),
            Self::Empty | Self::Index(_) => "",
        }
    }

    /// The same, with at most `words` words following.
    pub(super) fn within(self, words: usize) -> Self {
        match self {
            Self::Inline(text) => Self::Inline(truncate_utf8(text, words * 8)),
            other => other,
        }
    }
}

/// "Thread references": 8 bits in a header, and for an inline thread two words after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRef {
    /// A thread by the index of its Thread record, 1 to 255. Index 0 does not exist; it is written as an inline
    /// thread 0 of process 0.
    Index(u8),
    /// The thread itself.
    Inline {
        /// The process's koid: its pid.
        process: u64,
        /// The thread's koid: its tid.
        thread: u64,
    },
}

impl ThreadRef {
    /// The 8 bits of the reference.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u64 {
        match self {
            Self::Index(index) => u64::from(index),
            Self::Inline { .. } => 0,
        }
    }

    /// Words that follow.
    #[inline]
    #[must_use]
    pub fn words(self) -> usize {
        if self.bits() == 0 { 2 } else { 0 }
    }

    /// Process and thread, if they follow.
    #[inline]
    pub(super) fn inline(self) -> Option<[u64; 2]> {
        match self {
            Self::Inline { process, thread } => Some([process, thread]),
            Self::Index(0) => Some([0, 0]),
            Self::Index(_) => None,
        }
    }
}

/// The thread reference of "Userspace object record", which means a process only: an inline one is a single word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessRef {
    /// The process of a thread by the index of its Thread record, 1 to 255. Index 0 does not exist; it is written
    /// as an inline process 0.
    Index(u8),
    /// The process's koid: its pid.
    Inline(u64),
}

impl ProcessRef {
    /// The 8 bits of the reference.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u64 {
        match self {
            Self::Index(index) => u64::from(index),
            Self::Inline(_) => 0,
        }
    }

    /// The process, if it follows.
    #[inline]
    pub(super) fn inline(self) -> Option<u64> {
        match self {
            Self::Inline(process) => Some(process),
            Self::Index(0) => Some(0),
            Self::Index(_) => None,
        }
    }
}
