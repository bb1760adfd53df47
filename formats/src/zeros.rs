//! Zeros in the place of records: a file whose room was allocated and not filled, or whose pages were lost
//! when the power failed.

use std::io::Read;

use crate::DecodeError;
use crate::input::Input;

/// Stretches of zeros that a reader has passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Zeros {
    /// Those with records after them. Records were lost: those in their place, and parts of them before and
    /// after.
    pub holes: u64,
    /// Those up to the end of the input.
    pub at_end: u64,
    /// Records of which the rest is such zeros, so that they were left out.
    pub cut: u64,
}

/// Whether bytes begin with a record.
pub(crate) enum Begin {
    Record,
    Other,
    /// So many bytes are needed to tell.
    Needs(usize),
}

impl Zeros {
    /// Passes over zeros, and over what is no record, up to the next record. `begin` says whether bytes begin
    /// with one. What it needs and the input does not have makes them other bytes. Records begin at a
    /// multiple of `step` bytes. The time is linear in the bytes if that of `begin` is bounded.
    ///
    /// # Errors
    /// There are other bytes than zeros, but no whole record.
    #[cold]
    pub(crate) fn pass<R: Read>(
        &mut self,
        input: &mut Input<R>,
        step: usize,
        begin: impl Fn(&[u8], bool) -> Begin,
    ) -> Result<(), DecodeError> {
        let mut other = None;
        loop {
            let offset = input.offset();
            // No more than that: a trace may have a hole after each record.
            let bytes = input.fill(step as u64)?;
            let is_end = bytes.len() < step;
            let nonzero = bytes.iter().position(|byte| *byte != 0);
            other = other.or(nonzero.map(|at| offset + at as u64));
            if !is_end && pass_to_record(input, step, &begin)? {
                self.holes += 1;
                return Ok(());
            }
            if is_end {
                input.consume(input.available().len());
                self.at_end += u64::from(other.is_none());
                let truncated = |at| Err(DecodeError::truncated(at, "a record after zeros"));
                return other.map_or(Ok(()), truncated);
            }
        }
    }
}

/// Passes over the available bytes up to a record, in whole steps. Returns whether there is one.
fn pass_to_record<R: Read>(
    input: &mut Input<R>,
    step: usize,
    begin: &impl Fn(&[u8], bool) -> Begin,
) -> Result<bool, DecodeError> {
    let (mut at, mut is_end) = (0, false);
    while let Some(bytes) = input.available().get(at..).filter(|bytes| bytes.len() >= step) {
        let answer = if bytes[0] == 0 { Begin::Other } else { begin(bytes, is_end) };
        match answer {
            Begin::Record => {
                input.consume(at);
                return Ok(true);
            }
            Begin::Needs(len) if len > bytes.len() && !is_end => {
                // Frees the room of the bytes before it, once they are more than the others, which move.
                if at > bytes.len() {
                    input.consume(std::mem::take(&mut at));
                }
                is_end = input.fill((at + len) as u64)?.len() < at + len;
            }
            _ => (at, is_end) = (at + step, false),
        }
    }
    input.consume(at);
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(record: bool) -> Begin {
        if record { Begin::Record } else { Begin::Other }
    }

    fn is_rec(bytes: &[u8], _: bool) -> Begin {
        if bytes.len() < 3 { Begin::Needs(3) } else { is(bytes.starts_with(b"rec")) }
    }

    #[test]
    fn zeros_are_passed_over_up_to_the_next_record_or_the_end() {
        let mut bytes = vec![0; 300_000];
        bytes[200_000..200_004].copy_from_slice(b"xrec");
        let (mut input, mut zeros) = (Input::new(&bytes[..]), Zeros::default());
        zeros.pass(&mut input, 1, is_rec).unwrap();
        assert_eq!((input.offset(), zeros), (200_001, Zeros { holes: 1, ..Zeros::default() }));
        input.consume(3);
        zeros.pass(&mut input, 1, is_rec).unwrap();
        assert_eq!((input.offset(), zeros), (300_000, Zeros { holes: 1, at_end: 1, cut: 0 }));
    }

    #[test]
    fn records_begin_at_whole_steps() {
        let mut bytes = vec![0; 100_000];
        bytes[70_001] = b'r';
        bytes[70_008] = b'r';
        let (mut input, mut zeros) = (Input::new(&bytes[..]), Zeros::default());
        zeros.pass(&mut input, 8, |rest, _| is(rest[0] == b'r')).unwrap();
        assert_eq!(input.offset(), 70_008);
    }

    #[test]
    fn a_record_that_reaches_beyond_the_window_is_found() {
        let mut bytes = vec![0; 400_000];
        bytes[60_000] = b'r';
        bytes[60_000 + 299_999] = b'd';
        let needs_all = |bytes: &[u8], _: bool| match bytes {
            [b'r', ..] if bytes.len() < 300_000 => Begin::Needs(300_000),
            [b'r', ..] => is(bytes[299_999] == b'd'),
            _ => Begin::Other,
        };
        let (mut input, mut zeros) = (Input::new(&bytes[..]), Zeros::default());
        zeros.pass(&mut input, 1, needs_all).unwrap();
        assert_eq!(input.offset(), 60_000);
        let (mut input, mut zeros) = (Input::new(&bytes[..300_000]), Zeros::default());
        assert_eq!(zeros.pass(&mut input, 1, needs_all).unwrap_err().offset, 60_000);
        assert_eq!(input.offset(), 300_000);
    }
}
