//! A slice that is over, and the parts of a trace that do not fit together.

use crate::model::TrackId;
use crate::slices::keys::Key;

/// A slice that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where.
    pub track: TrackId,
    /// Its name.
    pub name: Key,
    /// Its categories.
    pub category: Key,
    /// When it began, in nanoseconds.
    pub start: i64,
    /// How long it took.
    pub duration: i64,
    /// What of that no slice inside took.
    pub self_time: i64,
    /// What the track's busy time is more for it: nothing, if another is around it.
    pub busy: i64,
}

/// A slice around others.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its name.
    pub name: Key,
    /// Its categories.
    pub category: Key,
    /// When it began.
    pub start: i64,
    /// Time of the slices in it, as far as they are known.
    pub(super) inner: i64,
}

impl Frame {
    pub(super) fn new(name: Key, category: Key, start: i64) -> Self {
        Self { name, category, start, inner: 0 }
    }
}

/// What does not go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Defect {
    /// No slice of its name is open on its track.
    EndWithoutBegin,
    /// It is open when the trace ends.
    NoEnd,
    /// It is open when a slice around it ends.
    EndsWithAnother,
    /// It ends before it begins.
    EndsBeforeBegin,
    /// It lies partly in another one.
    Overlaps,
    /// It came so late that others of its track were told already.
    Late,
    /// A thread's begin or end is earlier than the one before it.
    OutOfOrder,
    /// More than 512 slices lie around it or in it, one in the other: it is counted by itself.
    TooDeep,
    /// More than 524,288 are open: it is left out.
    TooManyOpen,
}

/// Who wants to know.
pub trait SliceSink {
    /// A slice is over. `above`: those around it, the outermost first. What lies inside of it was told before.
    fn slice(&mut self, slice: &Slice, above: &[Frame]);

    /// A slice is open at the end of the trace; its duration is up to there.
    fn open_slice(&mut self, slice: &Slice, above: &[Frame]) {
        let _ = (slice, above);
    }

    /// Something does not go together: where, when, and what it is called.
    fn defect(&mut self, what: Defect, track: TrackId, time: i64, name: Key) {
        let _ = (what, track, time, name);
    }
}

/// A sink, for one track.
pub(super) struct TrackSink<'s, S> {
    pub(super) track: TrackId,
    pub(super) sink: &'s mut S,
}

impl<S: SliceSink> TrackSink<'_, S> {
    #[cold]
    pub(super) fn defect(&mut self, what: Defect, time: i64, name: Key) {
        self.sink.defect(what, self.track, time, name);
    }
}
