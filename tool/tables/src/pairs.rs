//! Collects what the builder of slices completes, until there are enough of them to become rows.

use hairline_convert::TrackId;
use hairline_convert::slices::{Defect, Frame, Key, Point, Slice, SliceSink};

/// A complete slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoneSlice {
    pub(crate) slice: Slice,
    pub(crate) depth: u32,
    /// The number of the slice around it, or 0.
    pub(crate) parent: u32,
    pub(crate) is_open: bool,
}

/// An instant or a step of a flow, with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DonePoint {
    pub(crate) point: Point,
    pub(crate) depth: u32,
    /// The slice around it: its number, or 0, and its categories.
    pub(crate) parent: u32,
    pub(crate) parent_category: Key,
}

/// An end whose begin is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoneEnd {
    pub(crate) slice: u32,
    pub(crate) start: i64,
    pub(crate) category: Key,
    pub(crate) end: u32,
}

/// What waits to become rows.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) slices: Vec<DoneSlice>,
    pub(crate) points: Vec<DonePoint>,
    pub(crate) ends: Vec<DoneEnd>,
    /// The number of defects by kind.
    pub(crate) defects: [u64; DEFECTS.len()],
}

/// Defects that change what tables show, with their words in reports.
pub(crate) const DEFECTS: [(Defect, &str); 7] = [
    (Defect::EndWithoutBegin, "ends without a begin, without effect"),
    (Defect::EndsBeforeBegin, "slices that end before their begin, with duration 0"),
    (Defect::Overlaps, "slices that overlap others of their track, which have no parent"),
    (Defect::Late, "events that come too late to be put in order, so that slices around them may be untrue"),
    (
        Defect::AfterInner,
        "complete slices that came after more slices inside them than are kept: these have no parent",
    ),
    (Defect::TooDeep, "slices with more than 512 levels around or inside them, without these"),
    (Defect::TooManyOpen, "slices that begin while 524,288 are open, left out"),
];

/// So many rows are made at once: the tables of an event are not all in the processor's nearest cache.
const ENOUGH: usize = 256;

impl Pairs {
    /// Whether it is time to make rows.
    #[inline]
    pub(crate) fn is_enough(&self) -> bool {
        self.slices.len() >= ENOUGH || self.points.len() >= ENOUGH || self.ends.len() >= ENOUGH
    }

    fn done(slice: &Slice, above: &[Frame], is_open: bool) -> DoneSlice {
        let parent = above.last().map_or(0, |frame| frame.tag);
        DoneSlice { slice: *slice, depth: above.len() as u32, parent, is_open }
    }
}

impl SliceSink for Pairs {
    #[inline]
    fn slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        self.slices.push(Self::done(slice, above, false));
    }

    fn open_slice(&mut self, slice: &Slice, above: &mut [Frame]) {
        self.slices.push(Self::done(slice, above, true));
    }

    fn point(&mut self, point: &Point, above: &mut [Frame]) {
        let around = above.last();
        let (parent, parent_category) = around.map_or((0, Key::NONE), |frame| (frame.tag, frame.category));
        self.points.push(DonePoint { point: *point, depth: above.len() as u32, parent, parent_category });
    }

    #[inline]
    fn ends(&mut self, slice: &Frame, tag: u32) {
        self.ends.push(DoneEnd { slice: slice.tag, start: slice.start, category: slice.category, end: tag });
    }

    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        if let Some(index) = DEFECTS.iter().position(|(defect, _)| *defect == what) {
            self.defects[index] += 1;
        }
    }
}
