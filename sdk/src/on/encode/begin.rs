//! The begins of open slices, and how they are repeated at the start of a chunk.
//!
//! A chunk of a region that overwrites can be read without the chunk before it. So the begins of all slices
//! that are still open are repeated at its start: at their own time, and with all strings that they refer to.

use crate::on::base::memory::Bytes;

/// The begin of an open slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    /// The offset of its record in the chunk's payload. `None`: the record is in no chunk that is left.
    pub(crate) at: Option<u32>,
    pub(crate) note: Note,
}

/// The facts that the chunk keeps for each open slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note {
    /// The low half of the begin's time, by which the slice's end finds whether it is in order.
    pub(crate) id: u32,
    /// Each format has a type of its own for this: `fxt::repeat::EndStrings` and
    /// `track_event::repeat::BeginTime`.
    pub(crate) more: u64,
}

impl Note {
    /// The length in a chunk.
    pub(crate) const LEN: usize = 4 + 8;

    pub(crate) fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let [a, b, c, d, more @ ..] = bytes;
        Self { id: u32::from_le_bytes([a, b, c, d]), more: u64::from_le_bytes(more) }
    }

    pub(crate) fn bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..4].copy_from_slice(&self.id.to_le_bytes());
        bytes[4..].copy_from_slice(&self.more.to_le_bytes());
        bytes
    }
}

/// The beginning of a chunk: repeated begins, and the records that must precede them.
#[derive(Debug, Default)]
pub(crate) struct Repeated {
    pub(crate) preceding: Bytes,
    pub(crate) begins: Bytes,
}

impl Repeated {
    pub(crate) fn clear(&mut self) {
        self.preceding.clear();
        self.begins.clear();
    }

    /// Drops the outermost begins if all of them, with the records before them, exceed `room`. An end closes
    /// the slice begun last, so the innermost begins are kept. `put_strings` writes the strings of one begin.
    ///
    /// The offsets of `begins` count from the first preceding record afterwards.
    pub(crate) fn keep_innermost(
        &mut self,
        begins: &mut [Begin],
        room: usize,
        mut put_strings: impl FnMut(&mut Bytes, &[u8]),
    ) {
        let mut from = self.begins.len();
        for at in begins.iter().rev().map_while(|begin| begin.at) {
            let before = self.preceding.len();
            let kept = &self.begins[at as usize..];
            put_strings(&mut self.preceding, kept);
            if self.preceding.len() + kept.len() > room {
                self.preceding.truncate(before);
                break;
            }
            from = at as usize;
        }
        self.begins.remove_first(from);
        let (from, before) = (from as u32, self.preceding.len() as u32);
        for begin in begins {
            begin.at = begin.at.and_then(|at| at.checked_sub(from)).map(|at| at + before);
        }
    }

    /// Copies the beginning of the chunk to `out`.
    pub(crate) fn copy_to(&self, out: &mut Bytes) {
        out.clear();
        out.extend_from_slice(&self.preceding);
        out.extend_from_slice(&self.begins);
    }
}
