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
            let next = rest.iter().position(|byte| !is_space(*byte));
            let found = next.map(|space| (at + space, rest[space]));
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
        let (mut scan, mut seen) = (Scan::default(), from);
        loop {
            let available = self.available();
            let end = scan.feed(available.get(seen..).unwrap_or_default()).map(|end| seen + end);
            match end {
                // A bracket or quote right after a word does not end it.
                Some(end) if matches!(available.get(end), Some(b'"' | b'{' | b'[')) && scan.in_word() => {
                    let at = self.offset() + end as u64;
                    return Err(DecodeError::new(at, DecodeErrorKind::Unexpected("a comma")));
                }
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
fn wanted(seen: usize) -> u64 {
    let more = if seen < 64 * 1024 { 1 } else { seen };
    (seen as u64).saturating_add(more as u64)
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}
