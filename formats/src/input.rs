//! A buffered input that makes the bytes of a record available in one piece.
//!
//! ```text
//! buffer   [ passed | available ......... | free ]
//!                   ^start = `offset`     ^end
//! ```
//!
//! The buffer grows only when it is full of bytes that were read. A length in the input alone never causes an
//! allocation.

use std::io::{ErrorKind, Read};

use crate::{DecodeError, DecodeErrorKind};

/// The initial size of the buffer, in bytes.
const INITIAL: usize = 64 * 1024;

#[derive(Debug)]
pub(crate) struct Input<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    offset: u64,
}

impl<R: Read> Input<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; INITIAL], start: 0, end: 0, offset: 0 }
    }

    /// The offset of the first available byte in the stream.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    #[inline]
    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Makes `wanted` bytes available, or all that the stream still has. Returns all available bytes.
    #[inline]
    pub(crate) fn fill(&mut self, wanted: u64) -> Result<&[u8], DecodeError> {
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        if self.end - self.start < wanted {
            self.read_more(wanted)?;
        }
        Ok(self.available())
    }

    #[cold] // once for each full buffer
    fn read_more(&mut self, wanted: usize) -> Result<(), DecodeError> {
        while self.end - self.start < wanted {
            self.make_room(wanted);
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                // A faulty reader can return more than the size of its buffer.
                Ok(read) => self.end += read.min(self.buffer.len() - self.end),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    let at = self.offset + (self.end - self.start) as u64;
                    return Err(DecodeError::new(at, DecodeErrorKind::Io(e)));
                }
            }
        }
        Ok(())
    }

    fn make_room(&mut self, wanted: usize) {
        // Bytes at the front are not moved: for a large record, that would happen at each read.
        let fits = self.start == 0 || self.start.saturating_add(wanted) <= self.buffer.len();
        if self.end < self.buffer.len() && fits {
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end == self.buffer.len() {
            // By a part of its size, however little is wanted each time.
            let len = self.buffer.len();
            self.buffer.resize(wanted.min(len * 2).max(len + len / 4), 0);
        }
    }

    /// Passes over `len` available bytes.
    #[inline]
    pub(crate) fn consume(&mut self, len: usize) {
        debug_assert!(len <= self.end - self.start);
        self.start += len;
        self.offset += len as u64;
    }

    /// Passes over `len` bytes, available or not. Returns false if the stream has fewer.
    pub(crate) fn skip(&mut self, mut len: u64) -> Result<bool, DecodeError> {
        while len > 0 {
            let available = self.fill(1)?.len();
            if available == 0 {
                return Ok(false);
            }
            let step = usize::try_from(len).map_or(available, |len| len.min(available));
            self.consume(step);
            len -= step as u64;
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_beyond_the_input_is_not_allocated() {
        let mut input = Input::new(&[7_u8; 100][..]);
        assert_eq!(input.fill(u64::MAX).unwrap(), [7; 100]);
        assert_eq!(input.buffer.len(), INITIAL);
    }

    #[test]
    fn the_buffer_grows_with_the_input_and_moves_on() {
        let bytes: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
        let mut input = Input::new(&bytes[..]);
        assert_eq!(input.fill(200_000).unwrap()[..200_000], bytes[..200_000]);
        input.consume(199_999);
        assert_eq!(input.fill(10).unwrap()[..10], bytes[199_999..200_009]);
        assert!(input.skip(50_001).unwrap());
        assert_eq!((input.offset(), input.fill(60_000).unwrap()), (250_000, &bytes[250_000..]));
        assert!(!input.skip(50_001).unwrap());
        assert_eq!(input.offset(), 300_000);
    }
}
