//! The slices that are open on tracks in a flight recorder.
//!
//! Their begins are in no chunk. The end of a slice may come on another thread, long after a chunk with the
//! begin would have been overwritten. So the thread that ends the slice writes begin and end together, and a
//! snapshot writes the begins of the slices that are open. A snapshot finds each slice either here or in the
//! ring, never in both: the thread that ends the slice holds the lock while it removes the begin from here
//! and writes both to the ring.
//!
//! Nothing is allocated or freed under the lock, and no code of the program runs under it.

use hairline_formats::track_event::TrackUuid;

use crate::on::base::lock::{Mutex, MutexGuard};
use crate::on::base::memory::{Bytes, Own, Table};

/// The slices that are open on tracks.
#[derive(Debug, Default)]
pub(crate) struct OpenSlices(Mutex<Open>);

/// The content of [`OpenSlices`].
#[derive(Debug, Default)]
pub(crate) struct Open {
    /// The innermost open slice of each track, by the track's UUID.
    innermost: Table<Own<OpenSlice>>,
    /// Number of open slices, and the bytes of their begins.
    count: u64,
    bytes: usize,
    /// The serial number of the next slice.
    next_serial: u64,
}

/// An open slice.
#[derive(Debug)]
struct OpenSlice {
    track: TrackUuid,
    serial: u64,
    /// The record of its begin, which needs no context.
    begin: Bytes,
    /// The slice around it on the same track.
    outer: Option<Own<OpenSlice>>,
}

impl OpenSlice {
    /// Returns this slice and the slices around it, from the innermost.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |slice| slice.outer.as_deref())
    }
}

impl Drop for OpenSlice {
    /// Drops the slices around this one in a loop. A recursion of the same depth could overflow the stack.
    fn drop(&mut self) {
        let mut next = self.outer.take();
        while let Some(mut slice) = next {
            next = slice.outer.take();
        }
    }
}

impl OpenSlices {
    /// Adds a slice that begins on a track.
    pub(crate) fn begin(&self, track: TrackUuid, begin: &[u8]) {
        let mut own_begin = Bytes::new();
        own_begin.extend_from_slice(begin);
        let mut slice = Own::new(OpenSlice { track, serial: 0, begin: own_begin, outer: None });
        let Some(mut open) = self.0.lock_unless_lost_with_room(|open| (&mut open.innermost, 1)) else {
            return;
        };
        open.count += 1;
        open.bytes += begin.len();
        slice.serial = open.next_serial;
        open.next_serial += 1;
        match open.innermost_on(track) {
            Some(innermost) => {
                let outer = std::mem::replace(innermost, slice);
                innermost.outer = Some(outer);
            }
            None => open.innermost.insert(track.0, slice),
        }
    }

    /// Copies the begin of the innermost slice on the track to `begin`. Returns the slice's serial number,
    /// for [`end`](Self::end).
    pub(crate) fn last(&self, track: TrackUuid, begin: &mut Bytes) -> Option<u64> {
        begin.clear();
        loop {
            let mut open = self.0.lock_unless_lost()?;
            let slice = open.innermost_on(track)?;
            let len = slice.begin.len();
            if len <= begin.capacity() {
                begin.extend_from_slice(&slice.begin);
                return Some(slice.serial);
            }
            drop(open);
            begin.reserve(len);
        }
    }

    /// Ends the slice with this serial number, if it is still the innermost on its track. Calls `write` under
    /// the lock; `write` writes begin and end to the ring and does nothing else. Returns `None` without a
    /// call of `write` if another thread has ended the slice meanwhile, or has begun a slice in it.
    pub(crate) fn end<R>(&self, track: TrackUuid, serial: u64, write: impl FnOnce() -> R) -> Option<R> {
        let mut open = self.0.lock_unless_lost()?;
        let innermost = open.innermost_on(track).filter(|slice| slice.serial == serial)?;
        let ended = match innermost.outer.take() {
            Some(outer) => std::mem::replace(innermost, outer),
            None => open.innermost.remove(track.0, |slice| slice.track == track)?,
        };
        open.count -= 1;
        open.bytes -= ended.begin.len();
        let written = write();
        drop(open);
        drop(ended);
        Some(written)
    }

    /// Removes the innermost slice on the track, because its end cannot be written. Returns whether a slice
    /// was open.
    pub(crate) fn forget_last(&self, track: TrackUuid) -> bool {
        let mut begin = Bytes::new();
        std::iter::from_fn(|| self.last(track, &mut begin))
            .any(|serial| self.end(track, serial, || ()).is_some())
    }

    /// Takes the lock, with room in `copy` for all begins. Slices neither begin nor end until the guard is
    /// dropped.
    pub(crate) fn hold(&self, copy: &mut CopiedBegins) -> MutexGuard<'_, Open> {
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
    fn innermost_on(&mut self, track: TrackUuid) -> Option<&mut Own<OpenSlice>> {
        self.innermost.get_mut(track.0, |slice| slice.track == track)
    }

    /// Copies all begins to `copy`, on each track from the outermost.
    pub(crate) fn copy_to(&self, copy: &mut CopiedBegins) {
        copy.bytes.clear();
        for innermost in self.innermost.iter() {
            let from = copy.bytes.len();
            let len: usize = innermost.chain().map(|slice| slice.begin.len()).sum();
            copy.bytes.resize(from + len, 0);
            let mut to = copy.bytes.len();
            for slice in innermost.chain() {
                to -= slice.begin.len();
                copy.bytes[to..to + slice.begin.len()].copy_from_slice(&slice.begin);
            }
        }
        copy.count = self.count;
    }
}

/// The begins of open slices, and their number.
#[derive(Debug, Default)]
pub(crate) struct CopiedBegins {
    pub(crate) bytes: Bytes,
    pub(crate) count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACK: TrackUuid = TrackUuid(7);

    fn all(open: &OpenSlices) -> (Vec<u8>, u64) {
        let mut copy = CopiedBegins::default();
        open.hold(&mut copy).copy_to(&mut copy);
        (copy.bytes.to_vec(), copy.count)
    }

    #[test]
    fn slices_end_from_the_innermost_and_are_copied_from_the_outermost() {
        let open = OpenSlices::default();
        for begin in [b"a", b"b", b"c"] {
            open.begin(TRACK, begin);
        }
        assert_eq!(all(&open), (b"abc".to_vec(), 3));
        let mut begin = Bytes::new();
        for expected in [b"c", b"b", b"a"] {
            let serial = open.last(TRACK, &mut begin).expect("one is open");
            assert_eq!(&begin[..], expected);
            assert_eq!(open.end(TRACK, serial, || 1), Some(1));
        }
        assert_eq!((open.last(TRACK, &mut begin), all(&open)), (None, (Vec::new(), 0)));
    }

    #[test]
    fn a_slice_ends_once_and_only_while_it_is_the_innermost() {
        let open = OpenSlices::default();
        open.begin(TRACK, b"a");
        let mut begin = Bytes::new();
        let serial = open.last(TRACK, &mut begin).expect("one is open");
        open.begin(TRACK, b"b");
        assert_eq!(open.end(TRACK, serial, || ()), None, "a slice has begun in it");
        assert!(open.forget_last(TRACK));
        assert_eq!(open.end(TRACK, serial, || ()), Some(()));
        assert_eq!(open.end(TRACK, serial, || ()), None);
        assert!(!open.forget_last(TRACK));
    }

    #[test]
    fn a_million_nested_slices_are_dropped_on_a_small_stack() {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let dropped = small.spawn(|| {
            let open = OpenSlices::default();
            (0..1_000_000).for_each(|_| open.begin(TRACK, b"a"));
        });
        dropped.expect("a thread").join().expect("no overflow");
    }
}
