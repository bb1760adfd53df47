//! The tape of a region, from outside.

use std::fs::File;
use std::io;

use crate::platform;
use crate::recover::header::{Facts, tape_begin};

/// Copies the entries that the tape has, and that nobody has overwritten meanwhile.
///
/// ```text
///  1  `facts`: begin and end, not of one moment
///  2  copy of the bytes between, or of as many as the tape has
///  3  begin: the writer has raised it before it overwrote an entry, so what is above is as it was written
/// ```
pub(super) fn read(file: &File, facts: &Facts, number: usize) -> io::Result<Vec<u8>> {
    let Some(tape) = facts.tapes[number].filter(|tape| tape.begin < tape.end) else { return Ok(Vec::new()) };
    let begin = tape.begin.max(tape.end.saturating_sub(tape.len));
    let mut bytes = vec![0; usize::try_from(tape.end - begin).map_err(io::Error::other)?];
    let place = begin.checked_rem(tape.len).unwrap_or(0);
    let first = usize::try_from(tape.len - place).unwrap_or(usize::MAX).min(bytes.len());
    let (until_end, from_start) = bytes.split_at_mut(first);
    platform::read_exact_at(file, until_end, tape.offset + place)?;
    platform::read_exact_at(file, from_start, tape.offset)?;
    let now = tape_begin(file, number)?;
    if now < begin {
        return Ok(Vec::new()); // no tape has so many entries
    }
    bytes.drain(..usize::try_from(now - begin).unwrap_or(usize::MAX).min(bytes.len()));
    Ok(bytes)
}
