//! The slices on tracks that are open in a flight recorder.
//!
//! Their begins are in no chunk: an end may come on another thread, and long after the chunk of its begin was
//! overwritten. So the begin is written with the end, and by a snapshot before that. A slice that ends is
//! either here or in the ring, never in both, for a snapshot: the lock is held from the moment at which it
//! leaves this list until it is in the ring.
//!
//! Nothing is allocated or freed under the lock, and no code of the program runs there.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::on::base::lock::{Mutex, MutexGuard};

#[derive(Debug, Default)]
pub(crate) struct OpenSlices(Mutex<Open>);

#[derive(Debug, Default)]
pub(crate) struct Open {
    /// The slice that was begun last on each track, by the track's number.
    last: HashMap<u64, Box<Begun>>,
    /// Slices and their bytes, in all.
    count: u64,
    bytes: usize,
    /// Slices that were ever begun.
    begun: u64,
}

/// An open slice.
#[derive(Debug)]
struct Begun {
    serial: u64,
    /// Its begin, which stands for itself.
    begin: Box<[u8]>,
    /// The slice around it on the same track.
    outer: Option<Box<Begun>>,
}

impl Begun {
    /// This slice and those around it.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |slice| slice.outer.as_deref())
    }
}

impl Drop for Begun {
    /// One after the other: more slices may be open on a track than a stack has room for.
    fn drop(&mut self) {
        let mut next = self.outer.take();
        while let Some(mut slice) = next {
            next = slice.outer.take();
        }
    }
}

impl OpenSlices {
    /// A slice begins on a track.
    pub(crate) fn begin(&self, track: u64, begin: &[u8]) {
        let mut slice = Box::new(Begun { serial: 0, begin: begin.into(), outer: None });
        let Some(mut open) = self.0.lock_unless_lost_with_room(|open| (&mut open.last, 1)) else { return };
        open.count += 1;
        open.bytes += begin.len();
        slice.serial = open.begun;
        open.begun += 1;
        match open.last.entry(track) {
            Entry::Vacant(place) => drop(place.insert(slice)),
            Entry::Occupied(mut place) => {
                let outer = std::mem::replace(place.get_mut(), slice);
                place.get_mut().outer = Some(outer);
            }
        }
    }

    /// Copies the begin of the slice that was begun last on the track. Returns its serial number, for
    /// [`end`](Self::end).
    pub(crate) fn last(&self, track: u64, begin: &mut Vec<u8>) -> Option<u64> {
        begin.clear();
        loop {
            let open = self.0.lock_unless_lost()?;
            let slice = open.last.get(&track)?;
            let len = slice.begin.len();
            if len <= begin.capacity() {
                begin.extend_from_slice(&slice.begin);
                return Some(slice.serial);
            }
            drop(open);
            begin.reserve(len);
        }
    }

    /// Ends the slice with this serial number, if it is still the last on its track: calls `write` under the
    /// lock, which puts both ends into the ring and does nothing else. `None`: another thread has ended the
    /// slice meanwhile, or begun another one in it.
    pub(crate) fn end<R>(&self, track: u64, serial: u64, write: impl FnOnce() -> R) -> Option<R> {
        let mut open = self.0.lock_unless_lost()?;
        let Entry::Occupied(mut place) = open.last.entry(track) else { return None };
        if place.get().serial != serial {
            return None;
        }
        let ended = match place.get_mut().outer.take() {
            Some(outer) => std::mem::replace(place.get_mut(), outer),
            None => place.remove(),
        };
        open.count -= 1;
        open.bytes -= ended.begin.len();
        let written = write();
        drop(open);
        drop(ended);
        Some(written)
    }

    /// Forgets the slice that was begun last on the track, whose end cannot be written. Returns whether there
    /// was one.
    pub(crate) fn forget_last(&self, track: u64) -> bool {
        let mut begin = Vec::new();
        std::iter::from_fn(|| self.last(track, &mut begin))
            .any(|serial| self.end(track, serial, || ()).is_some())
    }

    /// Takes the lock, with room in `copy` for all begins: slices neither begin nor end until the guard is
    /// dropped.
    pub(crate) fn hold(&self, copy: &mut Copied) -> MutexGuard<'_, Open> {
        loop {
            let open = self.0.lock();
            if open.bytes <= copy.bytes.capacity() {
                return open;
            }
            let wanted = open.bytes + open.bytes / 4;
            drop(open);
            copy.bytes.reserve(wanted);
        }
    }
}

impl Open {
    /// Copies all begins, of each track the outermost first.
    pub(crate) fn copy_to(&self, copy: &mut Copied) {
        copy.bytes.clear();
        for last in self.last.values() {
            let from = copy.bytes.len();
            let len: usize = last.chain().map(|slice| slice.begin.len()).sum();
            copy.bytes.resize(from + len, 0);
            let mut to = copy.bytes.len();
            for slice in last.chain() {
                to -= slice.begin.len();
                copy.bytes[to..to + slice.begin.len()].copy_from_slice(&slice.begin);
            }
        }
        copy.count = self.count;
    }
}

/// The begins of open slices, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    pub(crate) bytes: Vec<u8>,
    pub(crate) count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(open: &OpenSlices) -> (Vec<u8>, u64) {
        let mut copy = Copied::default();
        open.hold(&mut copy).copy_to(&mut copy);
        (copy.bytes, copy.count)
    }

    #[test]
    fn slices_end_from_the_innermost_and_are_copied_from_the_outermost() {
        let open = OpenSlices::default();
        for begin in [b"a", b"b", b"c"] {
            open.begin(7, begin);
        }
        assert_eq!(all(&open), (b"abc".to_vec(), 3));
        let mut begin = Vec::new();
        for expected in [b"c", b"b", b"a"] {
            let serial = open.last(7, &mut begin).expect("one is open");
            assert_eq!(begin, expected);
            assert_eq!(open.end(7, serial, || 1), Some(1));
        }
        assert_eq!((open.last(7, &mut begin), all(&open)), (None, (Vec::new(), 0)));
    }

    #[test]
    fn a_slice_ends_once_and_not_in_the_place_of_another() {
        let open = OpenSlices::default();
        open.begin(7, b"a");
        let mut begin = Vec::new();
        let serial = open.last(7, &mut begin).expect("one is open");
        open.begin(7, b"b");
        assert_eq!(open.end(7, serial, || ()), None, "another one was begun in it");
        assert!(open.forget_last(7));
        assert_eq!(open.end(7, serial, || ()), Some(()));
        assert_eq!(open.end(7, serial, || ()), None);
        assert!(!open.forget_last(7));
    }

    #[test]
    fn a_million_slices_around_each_other_are_dropped_with_a_small_stack() {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let dropped = small.spawn(|| {
            let open = OpenSlices::default();
            (0..1_000_000).for_each(|_| open.begin(7, b"a"));
        });
        dropped.expect("a thread").join().expect("no overflow");
    }
}
