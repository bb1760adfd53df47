//! Messages, and texts from traces that are shown on a terminal.

use std::fmt::Display;
use std::io::{self, Write};

/// Prints a line on stderr.
pub(crate) fn complain(what: impl Display) {
    let _ = writeln!(io::stderr(), "hairline query: {}", harmless(&what.to_string()));
}

/// Replaces what a terminal would obey: names of files and texts from traces are in all messages.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

/// Passes text to a terminal without what it would obey. Text may come in any pieces.
pub(crate) struct Harmless<W> {
    inner: W,
    /// The last byte, if it may be the first one of a control character.
    pending: Option<u8>,
}

impl<W: Write> Harmless<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, pending: None }
    }
}

impl<W: Write> Write for Harmless<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = Vec::with_capacity(bytes.len() + 1);
        for byte in bytes.iter().copied() {
            // The control characters U+0080 to U+009F are 0xc2 and a byte.
            if let Some(first) = self.pending.take() {
                if (0x80..=0x9f).contains(&byte) {
                    out.extend_from_slice("\u{fffd}".as_bytes());
                    continue;
                }
                out.push(first);
            }
            match byte {
                0xc2 => self.pending = Some(byte),
                b'\n' | b'\t' | b'\r' => out.push(byte),
                0..=0x1f | 0x7f => out.extend_from_slice("\u{fffd}".as_bytes()),
                byte => out.push(byte),
            }
        }
        self.inner.write_all(&out)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_control_character_however_text_is_cut() {
        let text = "a\u{1b}[31m\u{9b}b\u{a0}ä\u{7f}\n";
        for cut in 0..=text.len() {
            let mut out = Harmless::new(Vec::new());
            out.write_all(&text.as_bytes()[..cut]).unwrap();
            out.write_all(&text.as_bytes()[cut..]).unwrap();
            let found = String::from_utf8(out.inner).unwrap();
            assert_eq!(found, "a\u{fffd}[31m\u{fffd}b\u{a0}ä\u{fffd}\n", "cut at {cut}");
        }
    }
}
