//! A trace in memory.

#[cfg(feature = "enable")]
use std::io::IoSlice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of one piece of a memory output. Pieces never move, so each byte of a growing trace is copied once.
#[cfg(feature = "enable")]
const PIECE: usize = 4 << 20;

/// A trace in memory. A session writes into it.
///
/// A clone is another handle to the same bytes.
///
/// ```
/// use hairline::{MemoryOutput, Session, trace_instant};
///
/// let memory = MemoryOutput::new();
/// let session = Session::builder().output_memory(&memory).start()?;
/// trace_instant!("app", "ready");
/// let summary = session.stop()?;
/// assert_eq!(summary.bytes, memory.len() as u64);
/// # Ok::<(), hairline::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryOutput(Arc<Mutex<Vec<Vec<u8>>>>);

impl MemoryOutput {
    /// Returns an empty output.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty output that holds `bytes` without another allocation.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![Vec::with_capacity(bytes)])))
    }

    /// Returns a copy of the bytes written so far: the whole trace after [`stop`](crate::Session::stop).
    ///
    /// ```
    /// use hairline::{MemoryOutput, Session, trace_instant};
    ///
    /// let memory = MemoryOutput::new();
    /// let session = Session::builder().output_memory(&memory).start()?;
    /// trace_instant!("app", "ready");
    /// session.stop()?;
    /// let trace = memory.to_vec(); // for a file, or for a test that reads the trace
    /// assert_eq!(trace.len(), memory.len());
    /// # Ok::<(), hairline::Error>(())
    /// ```
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = Vec::new();
        loop {
            // Nothing is allocated under the lock. The drain thread may wait for the lock, and the program's
            // allocator for the drain thread: in an event that finds no room in the ring.
            copy.reserve(self.len());
            let pieces = self.pieces();
            if pieces.iter().map(Vec::len).sum::<usize>() <= copy.capacity() {
                pieces.iter().for_each(|piece| copy.extend_from_slice(piece));
                return copy;
            }
        }
    }

    /// Returns the number of bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces().iter().map(Vec::len).sum()
    }

    /// Whether no byte was written yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn pieces(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(feature = "enable")]
    pub(crate) fn append(&self, parts: &[IoSlice<'_>]) {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let fits = |piece: &Vec<u8>| piece.capacity() - piece.len() >= len;
        if !self.pieces().last().is_some_and(fits) {
            self.add_piece(Vec::with_capacity(PIECE.max(len)));
        }
        if let Some(piece) = self.pieces().last_mut() {
            parts.iter().for_each(|part| piece.extend_from_slice(part));
        }
    }

    /// Adds a piece. Only the session's own thread adds pieces, so none is added between the two locks.
    #[cfg(feature = "enable")]
    fn add_piece(&self, piece: Vec<u8>) {
        let count = self.pieces().len();
        let mut larger = Vec::with_capacity(2 * (count + 1));
        let mut pieces = self.pieces();
        larger.append(&mut pieces);
        larger.push(piece);
        std::mem::swap(&mut *pieces, &mut larger);
        drop(pieces);
        drop(larger);
    }
}

#[cfg(all(test, feature = "enable"))]
mod tests {
    use super::*;

    #[test]
    fn a_part_larger_than_a_piece_is_kept_whole() {
        let memory = MemoryOutput::new();
        let big = vec![7u8; PIECE + 1];
        memory.append(&[IoSlice::new(b"ab"), IoSlice::new(&big), IoSlice::new(b"cd")]);
        assert_eq!(memory.len(), PIECE + 5);
        assert!(memory.to_vec().starts_with(b"ab") && memory.to_vec().ends_with(b"cd"));
    }
}
