//! A trace in memory.

#[cfg(feature = "enable")]
use std::io::IoSlice;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of one piece of a memory output. Pieces are never moved, so a growing trace is copied once.
#[cfg(feature = "enable")]
const PIECE: usize = 4 << 20;

/// A trace in memory, filled by the session it was given to.
///
/// A clone is another handle to the same bytes.
#[derive(Clone, Debug, Default)]
pub struct MemoryOutput(Arc<Mutex<Vec<Vec<u8>>>>);

impl MemoryOutput {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Room for `bytes` without another allocation.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![Vec::with_capacity(bytes)])))
    }

    /// What the session has written so far; all of it after [`stop`](crate::Session::stop).
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut copy = Vec::new();
        loop {
            // Nothing is allocated under the lock, for which the session's thread may wait: the program's allocator may wait for
            // that thread, in an event for which the ring has no room.
            copy.reserve(self.len());
            let pieces = self.pieces();
            if pieces.iter().map(Vec::len).sum::<usize>() <= copy.capacity() {
                pieces.iter().for_each(|piece| copy.extend_from_slice(piece));
                return copy;
            }
        }
    }

    /// Bytes written so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces().iter().map(Vec::len).sum()
    }

    /// Whether nothing was written yet.
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

    /// Only the session's thread adds pieces.
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
    fn memory_holds_parts_larger_than_a_piece() {
        let memory = MemoryOutput::new();
        let big = vec![7u8; PIECE + 1];
        memory.append(&[IoSlice::new(b"ab"), IoSlice::new(&big), IoSlice::new(b"cd")]);
        assert_eq!(memory.len(), PIECE + 5);
        assert!(memory.to_vec().starts_with(b"ab") && memory.to_vec().ends_with(b"cd"));
    }
}
