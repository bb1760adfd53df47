//! A text that grows, in memory from the kernel.

#![allow(unsafe_code)] // text as bytes

use std::fmt;

use hairline_formats::Path;

use crate::on::base::memory::list::Bytes;

/// A text, like the standard library's `String`.
#[derive(Debug, Default)]
pub(crate) struct Text(Bytes);

impl Text {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn as_str(&self) -> &str {
        // SAFETY: only whole `str`s are appended, and `truncate` cuts between them.
        unsafe { std::str::from_utf8_unchecked(&self.0) }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Removes all text, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

impl Path for Text {
    fn text(&self) -> &str {
        self.as_str()
    }

    fn push(&mut self, part: &str) {
        Self::push(self, part);
    }

    fn truncate(&mut self, len: usize) {
        assert!(self.as_str().is_char_boundary(len));
        self.0.truncate(len);
    }
}
