//! The output buffer. It holds back the latest records, because a later record may change them.

use std::io::{self, Write};

/// The number of bytes written at once.
const GATHERED: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Output<W> {
    inner: W,
    /// The bytes that are not written yet. New records are appended here.
    pub(super) bytes: Vec<u8>,
    /// The number of bytes written.
    given: u64,
    /// The number of bytes to hold back.
    kept: usize,
}

impl<W: Write> Output<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, bytes: Vec::with_capacity(2 * GATHERED), given: 0, kept: 0 }
    }

    /// Holds back the latest `bytes` bytes from now on.
    pub(super) fn keep(&mut self, bytes: usize) {
        self.kept = bytes;
    }

    /// The position of the next record.
    pub(super) fn position(&self) -> u64 {
        self.given + self.bytes.len() as u64
    }

    /// The 8 bytes at a position; `None` if they are written already.
    pub(super) fn word(&mut self, position: u64) -> Option<&mut [u8; 8]> {
        let at = usize::try_from(position.checked_sub(self.given)?).ok()?;
        self.bytes.get_mut(at..)?.first_chunk_mut()
    }

    /// The size of a full buffer.
    #[inline]
    pub(super) fn full(&self) -> usize {
        // Moving the kept bytes costs as much as writing others, so it happens once in that many bytes.
        self.kept + self.kept.max(GATHERED)
    }

    /// Writes the buffer if it is full.
    #[inline]
    pub(super) fn settle(&mut self) -> io::Result<()> {
        if self.bytes.len() < self.full() { Ok(()) } else { self.give(self.kept) }
    }

    fn give(&mut self, kept: usize) -> io::Result<()> {
        let given = self.bytes.len() - kept;
        self.inner.write_all(&self.bytes[..given])?;
        self.given += given as u64;
        self.bytes.drain(..given);
        Ok(())
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.give(0)?;
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_back_may_be_changed() {
        let mut output = Output::new(Vec::new());
        output.keep(GATHERED);
        for n in 0..(GATHERED as u64) {
            output.bytes.extend_from_slice(&n.to_le_bytes());
            output.settle().unwrap();
        }
        assert_eq!(output.position(), 8 * GATHERED as u64);
        let (early, late) = (0, output.position() - 8);
        assert!(output.word(early).is_none() && output.word(late + 8).is_none());
        *output.word(late).unwrap() = [7; 8];
        output.finish().unwrap();
        assert_eq!(output.inner.len() as u64, output.position());
        assert!(output.inner.ends_with(&[7; 8]) && output.word(late).is_none());
    }
}
