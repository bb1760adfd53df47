//! Reads messages of the fewest kinds, without the place of a fault.

use crate::proto::{Varint, varint};

/// Reads a varint. Returns its value and the bytes after it, by value so that the caller keeps them in
/// registers.
#[inline(never)]
fn long_varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    match varint(bytes) {
        Varint::Complete(value, len) => Some((value, bytes.get(len..)?)),
        _ => None,
    }
}

/// The bytes of a message that are not read yet. Any fault in them is `None`: the general way, by
/// [`Fields`](crate::proto::Fields), says which one.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    #[inline]
    pub(super) fn varint(&mut self) -> Option<u64> {
        match self.0 {
            [byte @ 0..0x80, rest @ ..] => {
                self.0 = rest;
                Some(u64::from(*byte))
            }
            bytes => {
                let (value, rest) = long_varint(bytes)?;
                self.0 = rest;
                Some(value)
            }
        }
    }

    #[inline]
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = usize::try_from(self.varint()?).ok()?;
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    pub(super) fn fixed64(&mut self) -> Option<u64> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*taken))
    }
}
