//! Finds the end of a value without parsing it.
//!
//! It counts brackets of both kinds outside of strings. So a malformed event ends at its bracket, and the
//! event after it can be read.

/// The state of a scan through one value.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scan {
    depth: u64,
    in_string: bool,
    /// The next byte is part of an escape.
    escaped: bool,
    /// A number or a word has begun.
    in_word: bool,
    /// A word ends before white space, a comma or a closing bracket only, and not before a quote.
    has_long_words: bool,
}

impl Scan {
    pub(super) fn with_long_words() -> Self {
        Self { has_long_words: true, ..Self::default() }
    }

    /// Scans the next bytes. Returns the end of the value if it is among them. If no value can begin, it ends
    /// at once.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(byte) = bytes.get(at) {
            if self.in_string {
                at = self.string(bytes, at);
                if !self.in_string && self.depth == 0 {
                    return Some(at);
                }
                continue;
            }
            match byte {
                b'"' | b'{' | b'[' if self.in_word => {
                    if !self.has_long_words {
                        return Some(at);
                    }
                }
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' if self.depth > 1 => self.depth -= 1,
                b'}' | b']' if self.depth == 1 => return Some(at + 1),
                b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' if self.depth == 0 => {
                    return Some(at);
                }
                _ => self.in_word = self.depth == 0,
            }
            at += 1;
        }
        None
    }

    /// Scans a string to its end, or to the end of the bytes.
    fn string(&mut self, bytes: &[u8], mut at: usize) -> usize {
        while let Some(byte) = bytes.get(at) {
            at += 1;
            if self.escaped {
                self.escaped = false;
            } else if *byte == b'\\' {
                self.escaped = true;
            } else if *byte == b'"' {
                self.in_string = false;
                break;
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_value_does_not_depend_on_the_pieces() {
        for (text, end) in [
            (r#"{"a":[1,{"]":"}\"}"}]} ,"#, 22),
            (r#""a\\" "#, 5),
            ("[[]]]", 4),
            ("12,", 2),
            ("true]", 4),
            ("nul\"", 3),
            ("[{]}x", 4),
            (",", 0),
            ("}", 0),
        ] {
            assert_eq!(Scan::default().feed(text.as_bytes()), Some(end), "{text}");
            let mut scan = Scan::default();
            let ends = text.bytes().enumerate().find_map(|(at, byte)| Some(at + scan.feed(&[byte])?));
            assert_eq!(ends, Some(end), "{text}");
        }
    }

    #[test]
    fn a_value_that_is_cut_off_has_no_end() {
        for text in ["", "{", "[1", "\"a", "\"a\\", "12", "{\"a\":\"}\""] {
            assert_eq!(Scan::default().feed(text.as_bytes()), None, "{text}");
        }
    }
}
