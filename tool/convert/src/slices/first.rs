//! The first slice of a track. A trace may have millions of tracks with one slice each, so that slice is
//! stored in the table of tracks, and all else of a track only once it has another event.

use crate::TrackId;
use crate::slices::entry::{Change, Entry};
use crate::slices::keys::Key;
use crate::slices::nodes::Nodes;
use crate::slices::slice::{Frame, Slice, SliceSink, TrackSink};
use crate::slices::track::{MOST_OPEN, TrackSlices};

/// The slices of a track.
#[derive(Debug)]
pub(super) enum Slot {
    First(First),
    All(Box<TrackSlices>),
}

/// The slices of a track that has had at most one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct First {
    start: i64,
    end: i64,
    name: Key,
    category: Key,
    tag: u32,
    state: State,
    /// As [`TrackSlices::is_windowed`].
    is_windowed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    None,
    Open,
    /// It had a begin and an end, and is emitted.
    Ended,
    /// It is complete, and another one may still come around it.
    Complete,
}

impl Default for Slot {
    fn default() -> Self {
        Self::First(First::default())
    }
}

impl Slot {
    /// Whether events wait in the window for earlier ones.
    #[inline]
    pub(super) fn is_windowed(&self) -> bool {
        match self {
            Self::All(track) => track.is_windowed,
            Self::First(first) => first.is_windowed,
        }
    }

    pub(super) fn set_windowed(&mut self) {
        match self {
            Self::All(track) => track.is_windowed = true,
            Self::First(first) => first.is_windowed = true,
        }
    }

    /// The time of the latest begin or end.
    #[inline]
    pub(super) fn last(&self) -> Option<i64> {
        match self {
            Self::All(track) => track.last,
            Self::First(first) => first.last(),
        }
    }

    /// Whether there were complete slices.
    pub(super) fn has_intervals(&self) -> bool {
        match self {
            Self::All(track) => track.has_intervals(),
            Self::First(first) => first.state == State::Complete,
        }
    }

    /// The slices, if they have a place of their own.
    #[inline]
    pub(super) fn all(&mut self) -> Option<&mut TrackSlices> {
        match self {
            Self::All(track) => Some(track),
            Self::First(_) => None,
        }
    }

    /// As `all`. Gives the slices a place of their own.
    #[cold]
    pub(super) fn make_all(&mut self, nodes: &mut Nodes) -> Option<&mut TrackSlices> {
        if let Self::First(first) = self {
            *self = Self::All(first.all(nodes));
        }
        self.all()
    }

    /// Ends the trace.
    pub(super) fn finish(&mut self, last: i64, sink: &mut TrackSink<'_, impl SliceSink>) {
        match self {
            Self::All(track) => track.finish(last, sink),
            Self::First(First { state: State::None | State::Ended, .. }) => {}
            Self::First(first) => first.all(sink.nodes).finish(last, sink),
        }
    }
}

impl First {
    fn last(&self) -> Option<i64> {
        match self.state {
            State::None | State::Complete => None,
            State::Open => Some(self.start),
            State::Ended => Some(self.end),
        }
    }

    /// Takes an event of the first slice. Returns whether it is one, as a tracer writes it.
    pub(super) fn take(
        &mut self,
        entry: &Entry,
        open: &mut usize,
        sink: &mut TrackSink<'_, impl SliceSink>,
    ) -> bool {
        let Entry { time, name, category, tag, .. } = *entry;
        let first = Self { start: time, end: time, name, category, tag, ..*self };
        match (self.state, entry.change) {
            (State::None, Change::Begin) if *open < MOST_OPEN => {
                *open += 1;
                *self = Self { state: State::Open, ..first };
                if self.is_windowed {
                    sink.sink.begins(&self.frame(), sink.track, 0);
                }
            }
            (State::None, Change::Complete { duration: duration @ 0.. }) => {
                *self = Self { state: State::Complete, end: time.saturating_add(duration), ..first };
            }
            (State::Open, Change::End) if time >= self.start && self.frame().is_ended_by(name) => {
                *open -= 1;
                if tag != 0 {
                    sink.sink.ends(&self.frame(), tag);
                }
                (self.state, self.end) = (State::Ended, time);
                sink.sink.slice(&self.slice(sink.track), &mut []);
            }
            _ => return false,
        }
        true
    }

    fn frame(&self) -> Frame {
        Frame::new(self.name, self.category, self.start, self.tag)
    }

    fn duration(&self) -> i64 {
        self.end.saturating_sub(self.start)
    }

    fn slice(&self, track: TrackId) -> Slice {
        let (Self { start, name, category, tag, .. }, duration) = (*self, self.duration());
        Slice { track, name, category, start, duration, self_time: duration, busy: duration, tag }
    }

    fn all(&self, nodes: &mut Nodes) -> Box<TrackSlices> {
        let mut all = Box::new(TrackSlices::new(self.is_windowed, self.last()));
        match self.state {
            State::None => {}
            State::Open => all.open(self.frame()),
            State::Ended => all.add_closed(self.start, self.duration()),
            State::Complete => {
                // It is the first, so it has its regular place.
                let _ = all.intervals(nodes).add(&self.frame(), self.end, false, nodes);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slice_of_a_track_takes_little_memory() {
        assert!(size_of::<Slot>() <= 32, "there may be millions of tracks");
    }
}
