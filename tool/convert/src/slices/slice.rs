//! Completed slices, and defects of a trace.

use crate::TrackId;
use crate::slices::keys::Key;
use crate::slices::nodes::Nodes;

/// A completed slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its track.
    pub track: TrackId,
    /// Its name.
    pub name: Key,
    /// Its categories.
    pub category: Key,
    /// Its begin, in nanoseconds.
    pub start: i64,
    /// Its duration, in nanoseconds.
    pub duration: i64,
    /// Its duration without the slices inside it.
    pub self_time: i64,
    /// Its share in the track's busy time: 0 if another slice encloses it, otherwise its duration without the
    /// time in which it overlaps the slices before it.
    pub busy: i64,
    /// The number that its event had in [`Slices::tagged`](super::Slices::tagged), otherwise 0.
    pub tag: u32,
}

/// An enclosing slice.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its name.
    pub name: Key,
    /// Its categories.
    pub category: Key,
    /// Its begin, in nanoseconds.
    pub start: i64,
    /// A number for the sink's own use: 0 when the slice begins.
    pub mark: u32,
    /// As [`Slice::tag`].
    pub tag: u32,
    /// The time of the slices inside it, as far as known.
    pub(super) inner: i64,
}

impl Frame {
    #[inline]
    pub(super) fn new(name: Key, category: Key, start: i64, tag: u32) -> Self {
        Self { name, category, start, mark: 0, tag, inner: 0 }
    }

    /// Whether an end with this name is that of this slice, if no slice is open inside it.
    #[inline]
    pub(super) fn is_ended_by(&self, name: Key) -> bool {
        name == self.name || name == Key::NONE || self.name == Key::NONE
    }
}

/// An instant or a step of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its track.
    pub track: TrackId,
    /// Its name.
    pub name: Key,
    /// Its categories.
    pub category: Key,
    /// Its time, in nanoseconds.
    pub time: i64,
    /// As [`Slice::tag`].
    pub tag: u32,
}

/// A defect of a trace.
///
/// ```
/// use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
/// use hairline_convert::{Context, TrackId, open};
///
/// struct Defects(Vec<Defect>);
/// impl SliceSink for Defects {
///     fn slice(&mut self, _: &Slice, _: &mut [Frame]) {}
///     fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
///         self.0.push(what);
///     }
/// }
///
/// let json = br#"[{"name":"read","ph":"E","ts":1,"pid":1,"tid":1}]"#;
/// let (mut reader, mut context) = (open(&json[..], None)?, Context::new());
/// let (mut slices, mut defects) = (Slices::new(), Defects(Vec::new()));
/// while let Some(item) = reader.next(&mut context)? {
///     slices.item(&item, &mut defects);
/// }
/// slices.finish(&mut defects);
/// assert_eq!(defects.0, [Defect::EndWithoutBegin]);
/// # Ok::<(), hairline_convert::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Defect {
    /// An end without an open slice of its name on its track.
    EndWithoutBegin,
    /// A slice that is open at the end of the trace.
    NoEnd,
    /// A slice that is open when an enclosing slice ends.
    EndsWithAnother,
    /// A slice that ends before it begins.
    EndsBeforeBegin,
    /// A slice that overlaps another one.
    Overlaps,
    /// An event that came after later events of its track were emitted.
    Late,
    /// A complete slice that came after more slices inside it than are kept. The older ones were emitted as
    /// if nothing were around them; times are true.
    AfterInner,
    /// A thread's begin or end that is earlier than the one before it.
    OutOfOrder,
    /// A complete slice with more than 512 levels around it, in a trace whose order makes deep places too
    /// slow to find. It is emitted without them.
    TooDeep,
    /// A slice that begins while 524,288 are open. It is omitted.
    TooManyOpen,
}

/// Receives slices and defects.
pub trait SliceSink {
    /// A slice is complete. `above` are the enclosing slices, the outermost first. The slices inside it
    /// precede it. A sink may set the marks of the frames, so that it need not look at all of them each time.
    fn slice(&mut self, slice: &Slice, above: &mut [Frame]);

    /// A slice begins on a track that is no thread's. Complete slices have no begin. `depth` is the number of
    /// slices around it.
    fn begins(&mut self, slice: &Frame, track: TrackId, depth: usize) {
        let _ = (slice, track, depth);
    }

    /// A slice is open at the end of the trace. Its duration is up to there.
    fn open_slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        let _ = (slice, above);
    }

    /// A point, with the slices around it, the outermost first. Only [tagged](super::Slices::tagged) events
    /// have points.
    fn point(&mut self, point: &Point, above: &mut [Frame]) {
        let _ = (point, above);
    }

    /// The end with this tag, which is not 0, ends a slice. [`slice`](Self::slice) follows.
    fn ends(&mut self, slice: &Frame, tag: u32) {
        let _ = (slice, tag);
    }

    /// A defect: where, when, and the name of the slice.
    fn defect(&mut self, what: Defect, track: TrackId, time: i64, name: Key) {
        let _ = (what, track, time, name);
    }
}

/// A sink for the slices of one track.
pub(super) struct TrackSink<'s, S> {
    pub(super) track: TrackId,
    pub(super) sink: &'s mut S,
    /// The intervals of all tracks.
    pub(super) nodes: &'s mut Nodes,
}

impl<S: SliceSink> TrackSink<'_, S> {
    #[cold]
    pub(super) fn defect(&mut self, what: Defect, time: i64, name: Key) {
        self.sink.defect(what, self.track, time, name);
    }
}
