//! The floor of text by `Display` and `Debug`: formatting into memory of the stack.

use std::fmt::{self, Write};

/// Text on the stack.
#[derive(Debug)]
pub struct Text {
    bytes: [u8; 64],
    len: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let place = self.bytes.get_mut(self.len..self.len + text.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

/// Formats the arguments. Text that does not fit is cut.
#[must_use]
pub fn text(arguments: fmt::Arguments<'_>) -> Text {
    let mut text = Text { bytes: [0; 64], len: 0 };
    let _ = text.write_fmt(arguments);
    text
}
