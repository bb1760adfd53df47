//! The output of the FXT writers: words and padded streams.

/// An output of FXT records. The format calls its units "atoms": words, and streams of bytes.
///
/// `Vec<u8>` implements it. A caller with memory of its own can store the words in place.
pub trait PutWords {
    /// Appends a word, little-endian.
    fn word(&mut self, w: u64);

    /// Appends the bytes, then zeros up to a multiple of 8.
    fn stream(&mut self, bytes: &[u8]);
}

impl PutWords for Vec<u8> {
    #[inline]
    fn word(&mut self, w: u64) {
        self.extend_from_slice(&w.to_le_bytes());
    }

    #[inline]
    fn stream(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
        self.extend_from_slice(&[0; 8][..bytes.len().next_multiple_of(8) - bytes.len()]);
    }
}
