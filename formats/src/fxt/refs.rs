//! References from a record to a string, a thread or a process: by index, or inline.

use crate::fxt::layout::{MAX_STRING, string_ref, words};
use crate::fxt::put::PutWords;
use crate::truncate_utf8;

/// "String references": 16 bits in a header, and for an inline string a stream after the header.
///
/// ```text
///  15  14                0
/// +---+-------------------+
/// | 0 | 0                 |  the empty string
/// | 0 | index             |  of an earlier String record
/// | 1 | length in bytes   |  the string follows
/// +---+-------------------+
/// ```
///
/// ```
/// use hairline_formats::fxt::StringRef;
///
/// let inline = StringRef::Inline("long name");
/// assert_eq!((StringRef::Index(5).bits(), StringRef::Index(5).words()), (5, 0));
/// assert_eq!((inline.bits(), inline.words()), (0x8009, 2)); // the length; the bytes follow the header
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringRef<'a> {
    /// The empty string.
    Empty,
    /// The index of a String record: 1 to [`MAX_STRING_INDEX`](crate::fxt::MAX_STRING_INDEX). 0 is the empty
    /// string.
    Index(u16),
    /// The string itself. Writers cut it to [`MAX_STRING`] bytes, between two characters.
    Inline(&'a str),
}

impl<'a> StringRef<'a> {
    /// Returns the 16 bits of the reference.
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

    /// Returns the number of words that follow the header: 0 unless the string is inline.
    #[inline]
    #[must_use]
    pub fn words(self) -> usize {
        words(self.text().len())
    }

    /// The inline string as it is written.
    #[inline]
    pub(super) fn text(self) -> &'a str {
        match self {
            Self::Inline(text) => truncate_utf8(text, MAX_STRING),
            Self::Empty | Self::Index(_) => "",
        }
    }

    /// The same reference, with an inline string cut to `words` words.
    pub(super) fn within(self, words: usize) -> Self {
        match self {
            Self::Inline(text) => Self::Inline(truncate_utf8(text, words * 8)),
            other => other,
        }
    }
}

/// "Thread references": 8 bits in a header, and for an inline thread two words after the header.
///
/// ```
/// use hairline_formats::fxt::ThreadRef;
///
/// let inline = ThreadRef::Inline { process: 70, thread: 71 };
/// assert_eq!((ThreadRef::Index(5).bits(), ThreadRef::Index(5).words()), (5, 0));
/// assert_eq!((inline.bits(), inline.words()), (0, 2)); // the two koids follow the header
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadRef {
    /// The index of a Thread record, 1 to 255. Index 0 does not exist; it is written as the inline thread 0
    /// of process 0.
    Index(u8),
    /// The thread itself.
    Inline {
        /// The process's koid, on other systems its pid.
        process: u64,
        /// The thread's koid, on other systems its tid.
        thread: u64,
    },
}

impl ThreadRef {
    /// Returns the 8 bits of the reference.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u64 {
        match self {
            Self::Index(index) => u64::from(index),
            Self::Inline { .. } => 0,
        }
    }

    /// Returns the number of words that follow the header: 2 if the thread is inline, else 0.
    #[inline]
    #[must_use]
    pub fn words(self) -> usize {
        if self.bits() == 0 { 2 } else { 0 }
    }

    /// Writes the words that follow the header.
    #[inline]
    pub(super) fn put(self, out: &mut impl PutWords) {
        let (process, thread) = match self {
            Self::Inline { process, thread } => (process, thread),
            Self::Index(0) => (0, 0),
            Self::Index(_) => return,
        };
        out.word(process);
        out.word(thread);
    }
}

/// The thread reference of a "Userspace object record", of which only the process counts: an inline one is a
/// single word.
///
/// ```
/// use hairline_formats::fxt::ProcessRef;
///
/// assert_eq!(ProcessRef::Index(5).bits(), 5);
/// assert_eq!(ProcessRef::Inline(70).bits(), 0); // the koid follows the header
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessRef {
    /// The process of a thread, by the index of its Thread record, 1 to 255. Index 0 does not exist; it is
    /// written as the inline process 0.
    Index(u8),
    /// The process's koid, on other systems its pid.
    Inline(u64),
}

impl ProcessRef {
    /// Returns the 8 bits of the reference.
    #[inline]
    #[must_use]
    pub fn bits(self) -> u64 {
        match self {
            Self::Index(index) => u64::from(index),
            Self::Inline(_) => 0,
        }
    }

    /// The process's koid, if it is inline.
    #[inline]
    pub(super) fn inline(self) -> Option<u64> {
        match self {
            Self::Inline(process) => Some(process),
            Self::Index(0) => Some(0),
            Self::Index(_) => None,
        }
    }
}
