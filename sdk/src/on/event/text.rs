//! The text of `%value` and `?value`, formatted before the chunk writer is busy. Short text stays on the
//! stack.

use std::fmt;
use std::fmt::Write;

use hairline_formats::Value;

use crate::on::base::buffer::SpillingText;

/// Bytes of a text on the stack; longer text moves to the heap.
const INLINE: usize = 120;

/// A formatted argument.
#[derive(Debug)]
pub struct Text(SpillingText<INLINE>);

impl Text {
    /// Formats with `Display`.
    pub fn display(value: &(impl fmt::Display + ?Sized)) -> Self {
        Self::format(format_args!("{value}"))
    }

    /// Formats with `Debug`.
    pub fn debug(value: &(impl fmt::Debug + ?Sized)) -> Self {
        Self::format(format_args!("{value:?}"))
    }

    fn format(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self(SpillingText::new());
        let _ = text.write_fmt(arguments); // a Display that fails leaves the text that it wrote
        text
    }

    #[inline(always)]
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    #[inline(always)]
    pub(crate) fn value(&self) -> Value<'_> {
        Value::Str(self.as_str())
    }
}

impl Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0.push(s);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_below_at_and_above_the_inline_size_is_complete() {
        for len in [0, 1, INLINE - 1, INLINE, INLINE + 1, 4 * INLINE] {
            let whole = "x".repeat(len);
            assert_eq!(Text::display(&whole).as_str(), whole);
            assert_eq!(Text::debug(&whole).as_str(), format!("{whole:?}"));
        }
    }
}
