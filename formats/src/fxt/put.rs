//! The output of the FXT writers: words and padded streams.

/// An output of FXT records. The format calls its units "atoms": words, and streams of bytes.
///
/// `Vec<u8>` implements it. A caller with memory of its own can store the words in place.
///
/// ```
/// use hairline_formats::fxt::{self, PutWords};
///
/// /// Counts the words of records without storing them.
/// struct Count(usize);
/// impl PutWords for Count {
///     fn word(&mut self, _: u64) {
///         self.0 += 1;
///     }
///     fn stream(&mut self, bytes: &[u8]) {
///         self.0 += bytes.len().div_ceil(8);
///     }
/// }
///
/// let mut count = Count(0);
/// fxt::string_record(&mut count, 1, "a long name");
/// assert_eq!(count.0, 3); // the header, and eleven bytes
/// ```
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
