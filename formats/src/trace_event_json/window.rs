//! Makes a value available in one piece, up to a limit; what is larger is passed over.

use std::io::Read;

use crate::input::Input;
use crate::trace_event_json::scan::Scan;
use crate::{DecodeError, DecodeErrorKind};

/// Where a value ends.
pub(super) enum End {
    At(usize),
    /// It was larger than the limit, and is passed over.
    TooLarge,
    Cut,
}

impl<R: Read> Input<R> {
    /// The next byte that is no white space, from `start` bytes ahead; None if the input ends there. It must be within `limit`.
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

    /// Where the value ends that begins `from` bytes ahead; it is in memory up to there.
    pub(super) fn value_end(&mut self, from: usize, limit: usize) -> Result<End, DecodeError> {
        let (mut scan, mut seen) = (Scan::default(), from);
        loop {
            let available = self.available();
            let end = scan.feed(available.get(seen..).unwrap_or_default()).map(|end| seen + end);
            match end {
                // Cut here, the word could have gone on: only what cannot be part of one may end it.
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

    /// Passes over the rest of a value that is too large.
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

/// What to ask the input for when there is more to a value than `seen` bytes: beyond its first buffer, twice as much.
fn wanted(seen: usize) -> u64 {
    let more = if seen < 64 * 1024 { 1 } else { seen };
    (seen as u64).saturating_add(more as u64)
}

pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}
