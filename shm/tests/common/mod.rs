//! What the tests of the ring share: an output that remembers, and may fail.

use std::io::{self, IoSlice};

use hairline_shm::Output;

/// Keeps every byte; refuses the writes that it is told to refuse.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    /// What was written.
    pub(crate) bytes: Vec<u8>,
    /// Calls that were made, refused ones included.
    pub(crate) calls: usize,
    /// The next so many calls succeed, the one after them fails. None: no call fails.
    pub(crate) fails_after: Option<usize>,
}

impl Output for Sink {
    fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.calls += 1;
        match self.fails_after {
            Some(0) => {
                self.fails_after = None;
                return Err(io::ErrorKind::StorageFull.into());
            }
            Some(n) => self.fails_after = Some(n - 1),
            None => {}
        }
        parts.iter().for_each(|part| self.bytes.extend_from_slice(part));
        Ok(())
    }
}
