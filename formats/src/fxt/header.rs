//! The word that begins every record: type and size.

use crate::fxt::layout::{RecordType, large, record};

/// The header of a record of `words` words, without the fields of its type.
pub(super) const fn header(kind: RecordType, words: usize) -> u64 {
    record::TYPE.set(kind as u64) | record::SIZE.set(words as u64)
}

/// The size of the record with this header, in words. A damaged header can say 0.
#[inline]
pub(super) const fn record_words(header: u64) -> u64 {
    if is_large(header) { large::SIZE.get(header) } else { record::SIZE.get(header) }
}

/// Whether the record's size has 32 bits.
#[inline]
pub(super) const fn is_large(header: u64) -> bool {
    record::TYPE.get(header) == RecordType::Large as u64
}

/// A record among others.
pub(super) struct RecordBytes<'a> {
    /// Where the record begins in the bytes, which hold all records.
    pub(super) at: usize,
    pub(super) header: u64,
    /// The whole record, header included.
    pub(super) bytes: &'a [u8],
}

/// Splits `bytes` into whole records. Ends at the first record that is cut off; a record of size 0 counts as
/// one word.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = RecordBytes<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let header = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
        let len = usize::try_from(record_words(header)).ok()?.max(1).checked_mul(8)?;
        let record = RecordBytes { at, header, bytes: bytes.get(at..at.checked_add(len)?)? };
        at += len;
        Some(record)
    })
}
