//! The numbers of the service's writers.

use std::collections::VecDeque;

/// The most writers: the service's limit in its versions before 2026. Each is a thread of an instance.
const MOST_WRITERS: u16 = 1023;

/// The numbers of writers.
#[derive(Debug, Default)]
pub(crate) struct WriterNumbers {
    last: u16,
    /// Those that are free again, the longest first.
    free: VecDeque<FreeNumber>,
}

/// The number of a writer that has ended.
#[derive(Debug)]
pub(super) struct FreeNumber {
    pub(super) id: u16,
    /// The number of the next chunk.
    pub(super) next: u32,
    /// The buffers that have had its chunks, the last one at the end.
    pub(super) buffers: Vec<u16>,
}

impl WriterNumbers {
    /// Returns a number that is free for this buffer. The service reads the chunks of a writer in the order of
    /// their numbers, up to one that the buffer does not have: so a number that went to other buffers does not
    /// come back.
    pub(super) fn next(&mut self, buffer: u16) -> Option<FreeNumber> {
        if self.last < MOST_WRITERS {
            self.last += 1;
            return Some(FreeNumber { id: self.last, next: 0, buffers: Vec::new() });
        }
        let serves = |of: &FreeNumber| of.buffers.last() == Some(&buffer) || !of.buffers.contains(&buffer);
        let place = self.free.iter().position(serves)?;
        self.free.remove(place)
    }

    /// Gives a number back, whose last chunks went to `buffer`.
    pub(super) fn give_back(&mut self, mut number: FreeNumber, buffer: u16) {
        if number.buffers.last() != Some(&buffer) {
            number.buffers.push(buffer);
        }
        self.free.push_back(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_does_not_come_back_to_a_buffer_after_another_one() {
        let mut numbers = WriterNumbers { last: MOST_WRITERS, free: VecDeque::new() };
        let free = |id, buffers: &[u16]| FreeNumber { id, next: 9, buffers: buffers.to_vec() };
        assert!(numbers.next(1).is_none());
        numbers.free.extend([free(5, &[1, 2]), free(6, &[2]), free(7, &[1])]);
        let mut next = |buffer| numbers.next(buffer).map(|of| (of.id, of.next));
        assert_eq!(next(1), Some((6, 9)), "never had by this buffer");
        assert_eq!(next(1), Some((7, 9)), "had by this buffer last");
        assert_eq!(next(1), None, "there would be a hole");
        assert_eq!(next(2), Some((5, 9)));
    }
}
