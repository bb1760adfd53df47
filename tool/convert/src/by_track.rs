//! A table with a value for each track.

use std::iter::zip;

use crate::TrackId;

/// A value for each track, by the track's number. A trace may have millions of tracks with one event each, so
/// a value holds little, and puts the rest into a box once a track needs it.
///
/// ```
/// use hairline_convert::{ByTrack, TrackId};
///
/// let mut events = ByTrack::<u32>::default();
/// *events.at(TrackId(2)) += 1;
/// let of = |track| events.get(TrackId(track)).copied();
/// assert_eq!((of(2), of(0), of(9)), (Some(1), Some(0), None));
/// ```
#[derive(Clone, Debug)]
pub struct ByTrack<T>(Vec<T>);

impl<T> Default for ByTrack<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> ByTrack<T> {
    /// The value of a track. Returns `None` for a track beyond the last one that [`at`](Self::at) has returned.
    #[inline]
    #[must_use]
    pub fn get(&self, track: TrackId) -> Option<&T> {
        self.0.get(track.0 as usize)
    }

    /// As [`get`](Self::get), to change the value.
    #[inline]
    pub fn get_mut(&mut self, track: TrackId) -> Option<&mut T> {
        self.0.get_mut(track.0 as usize)
    }

    /// The value of a track. Tracks up to this one that have none get a default value.
    #[inline]
    pub fn at(&mut self, track: TrackId) -> &mut T
    where
        T: Default,
    {
        let index = track.0 as usize;
        if index >= self.0.len() {
            self.make_room(index);
        }
        &mut self.0[index]
    }

    /// Grows by a quarter. A table twice as large as the tracks need would be the largest part of the memory.
    #[cold]
    fn make_room(&mut self, index: usize)
    where
        T: Default,
    {
        let more = index + 1 - self.0.len();
        if index >= self.0.capacity() {
            self.0.reserve_exact(more.max(self.0.len() / 4));
        }
        self.0.resize_with(index + 1, T::default);
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The values with their tracks, in order.
    pub fn iter(&self) -> impl Iterator<Item = (TrackId, &T)> {
        zip((0..).map(TrackId), &self.0)
    }

    /// As [`iter`](Self::iter), to change the values.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (TrackId, &mut T)> {
        zip((0..).map(TrackId), &mut self.0)
    }
}
