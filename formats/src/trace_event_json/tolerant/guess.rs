//! What the next tokens say: whether a quote ends its string, and whether an event begins.

use super::{Reader, Stop};
use crate::trace_event_json::ahead::Begins;
use crate::trace_event_json::parse::is_known;
use crate::trace_event_json::window::is_space;

impl Reader<'_> {
    /// Whether the tokens from `at` on can follow a string.
    pub(super) fn ends_string(&mut self, at: usize, is_name: bool) -> Result<bool, Stop> {
        if is_name {
            return Ok(!self.byte(at)?.is_ascii_alphanumeric());
        }
        let Some(at) = self.beyond_space(at)? else { return Ok(true) };
        let byte = self.bytes[at];
        let in_object = self.open.last() == Some(&b'{');
        match byte {
            b',' => {
                // An array without a name in an object is passed over, too.
                let is_passed = |byte| is_space(byte) || byte == b',' || in_object && byte == b'[';
                let Some(next) = self.beyond(at, is_passed)? else {
                    return Ok(true);
                };
                match self.bytes[next] {
                    b'}' => Ok(in_object),
                    b']' => Ok(!in_object),
                    b'{' if in_object => self.is_event(next),
                    _ if in_object => self.begins_member(next),
                    b'"' | b'-' | b'0'..=b'9' | b'{' | b'[' | b't' | b'f' | b'n' | b'N' | b'u' => Ok(true),
                    _ => Ok(false),
                }
            }
            // Without a comma, or cut.
            b'{' => self.is_event(at),
            b'"' if in_object => self.begins_member(at),
            b'}' | b']' => {
                if (byte == b'}') != in_object {
                    return Ok(false);
                }
                let Some(next) = self.beyond_space(at + 1)? else { return Ok(true) };
                let is_line = self.bytes[at..next].contains(&b'\n');
                Ok(is_line || matches!(self.bytes[next], b',' | b'}' | b']' | b'{' | 0))
            }
            0 => Ok(true),
            _ => Ok(false),
        }
    }

    /// Whether a member begins at `at`: a name and a colon. After quotes inside the string only a known name
    /// of an event counts.
    fn begins_member(&mut self, at: usize) -> Result<bool, Stop> {
        let is_quoted = self.bytes[at] == b'"';
        let from = at + usize::from(is_quoted);
        let mut to = from;
        loop {
            match self.bytes.get(to) {
                Some(b'\\') => to += 2,
                Some(b'"' | b'\n' | b':' | b',') => break,
                Some(b'}' | b']' | b'{' | b'[' | b' ') if !is_quoted => break,
                Some(_) => to += 1,
                None if self.is_all => return Ok(false),
                None => return Err(Stop::More),
            }
        }
        if is_quoted && self.bytes.get(to) == Some(&b'\n') {
            return self.is_fresh_line(to); // the name itself is cut
        }
        let name = &self.bytes[from..to];
        let end = to + usize::from(self.bytes.get(to) == Some(&b'"'));
        let Some(colon) = self.beyond_space(end)? else { return Ok(false) };
        let is_plausible =
            (is_quoted || !name.is_empty()) && (!self.has_quotes || self.open.len() > 1 || is_known(name));
        Ok(self.bytes[colon] == b':' && is_plausible)
    }

    /// Whether this quote opens the name of a known member after a comma: then the quote that ends this string
    /// is missing. Removes the comma from the string.
    pub(super) fn follows_missing_quote(&mut self, begin: usize) -> Result<bool, Stop> {
        if self.open.len() > 1 || !self.begins_known(self.at)? {
            return Ok(false);
        }
        let text = self.json[begin..].trim_ascii_end();
        let Some(len) = text.strip_suffix(b",").map(<[u8]>::len) else { return Ok(false) };
        self.json.truncate(begin + len);
        Ok(true)
    }

    fn begins_known(&self, at: usize) -> Result<bool, Stop> {
        let rest = &self.bytes[at + 1..];
        let len = rest.iter().take(16).position(|byte| *byte == b'"');
        match len {
            None if rest.len() < 16 && !self.is_all => Err(Stop::More),
            Some(len) if is_known(&rest[..len]) => {
                Ok(self.beyond_space(at + len + 2)?.is_some_and(|colon| self.bytes[colon] == b':'))
            }
            _ => Ok(false),
        }
    }

    /// Whether an event ends the string that is read, at the line feed or the bracket here.
    pub(super) fn is_fresh(&mut self, byte: u8) -> Result<bool, Stop> {
        match byte {
            b'\n' => self.is_fresh_line(self.at),
            _ => Ok(self.is_anywhere() && self.is_event(self.at)?),
        }
    }

    /// Whether an event begins after the line feed at `at` and perhaps more spaces.
    fn is_fresh_line(&mut self, at: usize) -> Result<bool, Stop> {
        if !self.gap.contains(&at) {
            let next = self.beyond(at, |byte| is_space(byte) || matches!(byte, b',' | b'['))?;
            self.gap = at..next.unwrap_or(self.bytes.len());
        }
        let next = self.gap.end;
        Ok(self.bytes.get(next) == Some(&b'{') && self.is_event(next)?)
    }

    /// Whether an event or a trace begins at `at`.
    pub(super) fn is_event(&mut self, at: usize) -> Result<bool, Stop> {
        let begins = self.ahead.begins(self.bytes, self.is_all, at, self.offset).ok_or(Stop::More)?;
        Ok(begins != Begins::Other)
    }

    pub(super) fn beyond_space(&self, at: usize) -> Result<Option<usize>, Stop> {
        self.beyond(at, is_space)
    }

    /// The next byte that is not passed over. `None` at the end of the input.
    fn beyond(&self, at: usize, is_passed: impl Fn(u8) -> bool) -> Result<Option<usize>, Stop> {
        let rest = self.bytes.get(at..).unwrap_or_default();
        match rest.iter().position(|byte| !is_passed(*byte)) {
            Some(next) => Ok(Some(at + next)),
            None if self.is_all => Ok(None),
            None => Err(Stop::More),
        }
    }
}
