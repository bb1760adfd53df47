//! An output for the tests of the ring: it keeps the bytes, and can fail.

use std::io::{self, IoSlice};

use hairline_shm::Output;

/// Keeps all bytes, and can fail at a chosen write.
#[derive(Debug, Default)]
pub(crate) struct Sink {
    /// The bytes that were written.
    pub(crate) bytes: Vec<u8>,
    /// The number of calls, with those that failed.
    pub(crate) calls: usize,
    /// The number of calls that succeed before the next one fails. `None`: no call fails.
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
