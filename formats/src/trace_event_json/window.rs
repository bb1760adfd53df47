//! Reads a value into memory in one piece, up to a limit. Larger values are passed over.

use std::io::Read;

use crate::input::Input;
use crate::trace_event_json::scan::Scan;
use crate::{DecodeError, DecodeErrorKind};

/// The end of a value.
pub(super) enum End {
    /// The value ends this many bytes ahead.
    At(usize),
    /// The value exceeded the limit and was passed over.
    TooLarge,
    /// The input ends inside the value.
    Cut,
}

impl<R: Read> Input<R> {
    /// Finds the next byte that is no white space, from `start` bytes ahead and within `limit`. Returns its
    /// position and value, or `None` at the end of the input.
    pub(super) fn beyond_space(
        &mut self,
        start: usize,
        limit: usize,
    ) -> Result<Option<(usize, u8)>, DecodeError> {
        self.beyond(start, limit, is_space)
    }

    /// As [`beyond_space`](Self::beyond_space), for other bytes that are passed over.
    pub(super) fn beyond(
        &mut self,
        start: usize,
        limit: usize,
        is_passed: impl Fn(u8) -> bool,
    ) -> Result<Option<(usize, u8)>, DecodeError> {
        let mut at = start;
        loop {
            let wanted = wanted(at);
            let rest = match self.available().get(at..) {
                None | Some([]) => self.fill(wanted)?.get(at..).unwrap_or_default(),
                Some(rest) => rest,
            };
            if rest.is_empty() {
                return Ok(None);
            }
            let next = rest.iter().position(|byte| !is_passed(*byte));
            let found = next.map(|place| (at + place, rest[place]));
            at += next.unwrap_or(rest.len());
            if at > limit {
                let at = self.offset() + start as u64;
                return Err(DecodeError::new(at, DecodeErrorKind::Unexpected("less white space")));
            }
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Finds the end of the value that begins `from` bytes ahead, and reads the value into memory.
    pub(super) fn value_end(&mut self, from: usize, limit: usize) -> Result<End, DecodeError> {
        self.end_of(Scan::default(), from, limit)
    }

    /// As [`value_end`](Self::value_end), for the value of a member: where the input ends right after a word,
    /// nobody can tell whether that was all of it. So a word that a quote follows is no word either.
    pub(super) fn member_end(&mut self, from: usize, limit: usize) -> Result<End, DecodeError> {
        self.end_of(Scan::with_long_words(), from, limit)
    }

    fn end_of(&mut self, mut scan: Scan, from: usize, limit: usize) -> Result<End, DecodeError> {
        let mut seen = from;
        loop {
            let available = self.available();
            let end = scan.feed(available.get(seen..).unwrap_or_default()).map(|end| seen + end);
            match end {
                Some(end) if end <= limit => return Ok(End::At(end)),
                Some(end) => {
                    self.consume(end);
                    return Ok(End::TooLarge);
                }
                None => seen = available.len(),
            }
            if seen > limit {
                self.consume(seen);
                return self.pass_rest(scan);
            }
            if self.fill(wanted(seen))?.len() == seen {
                return Ok(End::Cut);
            }
        }
    }

    /// Passes over the rest of a value that exceeds the limit.
    fn pass_rest(&mut self, mut scan: Scan) -> Result<End, DecodeError> {
        loop {
            let available = self.fill(1)?;
            if available.is_empty() {
                return Ok(End::Cut);
            }
            let end = scan.feed(available);
            let passed = end.unwrap_or(available.len());
            self.consume(passed);
            if end.is_some() {
                return Ok(End::TooLarge);
            }
        }
    }
}

/// Returns the number of bytes to read for a value of more than `seen` bytes: above the first buffer, twice
/// as many.
pub(super) fn wanted(seen: usize) -> u64 {
    let more = if seen < 64 * 1024 { 1 } else { seen };
    (seen as u64).saturating_add(more as u64)
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Whether bytes begin no string, array or object, and no number or other word of JSON.
pub(super) fn is_no_word(bytes: &[u8]) -> bool {
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let is_begun = |word: &&str| word.as_bytes().starts_with(bytes);
    !matches!(bytes.first(), None | Some(b'"' | b'[' | b'{'))
        && !bytes.iter().all(is_of_number)
        && !["true", "false", "null"].iter().any(is_begun)
}
