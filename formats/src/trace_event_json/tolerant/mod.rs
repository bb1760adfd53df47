//! Reads an object that is not quite JSON, and writes what it means as JSON.
//!
//! Tracers that build JSON by hand forget to escape, print what is no number, and are cut off by a crash or
//! by another writer. Neither the event with such a fault may be lost, nor those after it:
//!
//! | fault | result |
//! |---|---|
//! | `NaN`, `-inf`, `0x1f` and other words as a value | a text |
//! | `None`, `undefined`, no value | `null`; `True` and `False` are truth values |
//! | a backslash that begins no escape, a control character in a string | the same character, escaped |
//! | a quote inside a string | the same: a quote ends a string only where the next token says so |
//! | a missing quote; a name without quotes or in `'` | the string ends before the next known member |
//! | commas too many or too few, a bracket of the wrong kind | passed over |
//! | a line that begins an event, where none can begin | the object ends before that line |
//!
//! An event is an object with a member `ph`.

mod guess;
mod words;

use std::ops::Range;

use crate::trace_event_json::ahead::Ahead;
use crate::trace_event_json::window::is_space;
use words::{put_text, put_word};

/// What became of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tolerated {
    /// It ends here.
    End(usize),
    /// Its end is not among the bytes.
    More,
}

/// Where an event ends the object before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fresh {
    /// At the begin of a line, and where no value can be.
    AtLine,
    /// Wherever it begins, and `'` is no quote: for an object that has no end otherwise.
    Anywhere,
}

/// Reads the object that begins at the first of `bytes`, which is `offset` bytes after the begin of the
/// trace, and sets `json` to what it means. With `is_all`, no bytes follow.
pub(super) fn object(
    (bytes, is_all): (&[u8], bool),
    fresh: Fresh,
    json: &mut Vec<u8>,
    (ahead, offset): (&mut Ahead, u64),
) -> Tolerated {
    json.clear();
    json.push(b'{');
    let open = vec![b'{'];
    let mut reader =
        Reader { bytes, is_all, fresh, at: 1, json, open, has_quotes: false, gap: 0..0, ahead, offset };
    match reader.members() {
        Ok(()) => Tolerated::End(reader.at),
        Err(Stop::More) => Tolerated::More,
        Err(Stop::Fresh(at)) => {
            reader.close();
            Tolerated::End(at)
        }
    }
}

/// Why an object is not read further.
enum Stop {
    /// The bytes end inside it.
    More,
    /// An event begins at this place, before the object ends.
    Fresh(usize),
}

struct Reader<'b> {
    bytes: &'b [u8],
    is_all: bool,
    fresh: Fresh,
    at: usize,
    json: &'b mut Vec<u8>,
    /// The brackets that are open.
    open: Vec<u8>,
    /// Whether the string that is read has a quote inside.
    has_quotes: bool,
    /// The bytes before a line's first token that were passed over last. They may begin many lines.
    gap: Range<usize>,
    ahead: &'b mut Ahead,
    /// The offset of the object in the trace.
    offset: u64,
}

impl Reader<'_> {
    /// Reads until all brackets are closed.
    fn members(&mut self) -> Result<(), Stop> {
        while let Some(&bracket) = self.open.last() {
            let is_line = self.pass_between()?;
            let byte = self.byte(self.at)?;
            match (bracket, byte) {
                (_, b'}' | b']') => self.close_one(),
                (b'{', b'{') if self.is_event(self.at)? => return Err(Stop::Fresh(self.at)),
                (b'[', b'{') if (is_line || self.is_anywhere()) && self.is_event(self.at)? => {
                    return Err(Stop::Fresh(self.at));
                }
                (b'{', b'{' | b'[' | b':') => self.at += 1,
                (b'{', _) => self.member()?,
                _ => {
                    self.comma();
                    self.value()?;
                }
            }
        }
        Ok(())
    }

    fn is_anywhere(&self) -> bool {
        self.fresh == Fresh::Anywhere
    }

    fn is_quote(&self, byte: u8) -> bool {
        byte == b'"' || !self.is_anywhere()
    }

    /// Passes over spaces, commas and zeros. Returns whether a line ends among them.
    fn pass_between(&mut self) -> Result<bool, Stop> {
        let mut is_line = false;
        loop {
            match self.byte(self.at)? {
                b'\n' => is_line = true,
                byte if is_space(byte) || matches!(byte, b',' | 0) => {}
                _ => return Ok(is_line),
            }
            self.at += 1;
        }
    }

    fn member(&mut self) -> Result<(), Stop> {
        self.comma();
        match self.byte(self.at)? {
            quote @ (b'"' | b'\'') if self.is_quote(quote) => self.string(quote, true)?,
            _ => self.bare_name()?,
        }
        self.json.push(b':');
        self.pass_space()?;
        match self.byte(self.at)? {
            b':' => self.at += 1,
            // The colon is missing.
            b'"' | b'-' | b'0'..=b'9' | b'{' | b'[' => return self.value(),
            // The value is missing.
            _ => {
                self.json.extend_from_slice(b"null");
                return Ok(());
            }
        }
        self.pass_space()?;
        self.value()
    }

    fn value(&mut self) -> Result<(), Stop> {
        match self.byte(self.at)? {
            quote @ (b'"' | b'\'') if self.is_quote(quote) => self.string(quote, false),
            bracket @ (b'{' | b'[') => {
                self.json.push(bracket);
                self.open.push(bracket);
                self.at += 1;
                Ok(())
            }
            _ => self.word(),
        }
    }

    /// Reads a name without an opening quote, to its colon.
    fn bare_name(&mut self) -> Result<(), Stop> {
        let from = self.at;
        while !matches!(self.byte(self.at)?, b':' | b',' | b'}' | b']' | b'{' | b'\n' | b' ') {
            self.at += 1;
        }
        let name = &self.bytes[from..self.at];
        // A stray byte of another kind must not stop the reader.
        self.at += usize::from(name.is_empty());
        put_text(self.json, name.strip_suffix(b"\"").unwrap_or(name));
        Ok(())
    }

    /// Reads a number, a truth value, or any other word, to the end of the value.
    fn word(&mut self) -> Result<(), Stop> {
        let from = self.at;
        while !matches!(
            self.byte(self.at)?,
            b',' | b'}' | b']' | b'{' | b'[' | b'"' | b' ' | b'\t' | b'\r' | b'\n' | 0
        ) {
            self.at += 1;
        }
        put_word(self.json, &self.bytes[from..self.at]);
        Ok(())
    }

    /// Reads a string to the quote that ends it.
    fn string(&mut self, quote: u8, is_name: bool) -> Result<(), Stop> {
        self.at += 1;
        self.json.push(b'"');
        let begin = self.json.len();
        let mut is_raw = false;
        self.has_quotes = false;
        loop {
            let byte = self.byte(self.at)?;
            match byte {
                _ if byte == quote => {
                    if quote == b'\'' || self.ends_string(self.at + 1, is_name)? {
                        break;
                    }
                    if !is_name && self.follows_missing_quote(begin)? {
                        self.at -= 1;
                        break;
                    }
                    self.has_quotes = true;
                    self.json.extend_from_slice(b"\\\"");
                }
                b'"' => self.json.extend_from_slice(b"\\\""),
                // As in a path, a backslash may stand before the last quote.
                b'\\'
                    if quote == b'\''
                        && self.byte(self.at + 1)? == quote
                        && !self.ends_string(self.at + 2, is_name)? =>
                {
                    self.json.push(quote);
                    self.at += 1;
                }
                b'\\' => {
                    let mut len = self.escape()?;
                    is_raw |= len == 0;
                    // In a path with bare backslashes, one may stand before the last quote.
                    if is_raw && self.byte(self.at + 1)? == b'"' && self.ends_string(self.at + 2, is_name)? {
                        len = 0;
                    }
                    if len == 0 {
                        self.json.extend_from_slice(b"\\\\");
                    } else {
                        self.json.extend_from_slice(&self.bytes[self.at..self.at + len]);
                        self.at += len - 1;
                    }
                }
                b'\n' | b'{' if self.is_fresh(byte)? => {
                    self.json.extend_from_slice(if is_name { b"\":" } else { b"\"" });
                    return Err(Stop::Fresh(self.at));
                }
                0..0x20 => self.json.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
                _ => self.json.push(byte),
            }
            self.at += 1;
        }
        self.at += 1;
        self.json.push(b'"');
        Ok(())
    }

    /// The length of the escape here; 0 if it is none.
    fn escape(&self) -> Result<usize, Stop> {
        Ok(match self.byte(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
            b'u' => {
                let mut digits = 0;
                while digits < 4 && self.byte(self.at + 2 + digits)?.is_ascii_hexdigit() {
                    digits += 1;
                }
                if digits == 4 { 6 } else { 0 }
            }
            _ => 0,
        })
    }

    fn byte(&self, at: usize) -> Result<u8, Stop> {
        self.bytes.get(at).copied().ok_or(Stop::More)
    }

    fn pass_space(&mut self) -> Result<(), Stop> {
        self.at = self.beyond_space(self.at)?.ok_or(Stop::More)?;
        Ok(())
    }

    /// Writes a comma, unless this is the first of its bracket.
    fn comma(&mut self) {
        if !matches!(self.json.last(), Some(b'{' | b'[')) {
            self.json.push(b',');
        }
    }

    /// Closes the innermost bracket, whatever the kind of the one here.
    fn close_one(&mut self) {
        self.at += 1;
        if let Some(bracket) = self.open.pop() {
            self.json.push(if bracket == b'{' { b'}' } else { b']' });
        }
    }

    /// Closes all brackets.
    fn close(&mut self) {
        if matches!(self.json.last(), Some(b':')) {
            self.json.extend_from_slice(b"null");
        }
        while !self.open.is_empty() {
            self.close_one();
        }
    }
}

#[cfg(test)]
mod tests;
