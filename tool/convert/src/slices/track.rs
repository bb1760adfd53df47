//! The open slices of one track.

use crate::slices::entry::{Change, Entry};
use crate::slices::intervals::{Intervals, Misplaced};
use crate::slices::keys::Keys;
use crate::slices::nodes::Nodes;
use crate::slices::slice::{Defect, Frame, Point, Slice, SliceSink, TrackSink};
use crate::{BriefEvent, BriefKind};

/// The limit for open slices on all tracks together. A begin has a few bytes of input, but an open slice
/// needs many times more memory.
pub(super) const MOST_OPEN: usize = 1 << 19;

/// The limit for slices that one end may close. Without it, each end without a begin would search all open
/// slices.
const FARTHEST: usize = 1 << 14;

/// Stands for a time beyond 63 bits of nanoseconds. Out of line, a sum costs an addition and a branch.
#[cold]
fn too_long() -> i64 {
    i64::MAX
}

#[derive(Debug, Default)]
pub(super) struct TrackSlices {
    /// Whether events wait in the window for earlier ones.
    pub(super) is_windowed: bool,
    /// The time of the latest begin or end.
    pub(super) last: Option<i64>,
    stack: Vec<Frame>,
    /// The number of begins beyond the limit whose ends are still to come.
    without_room: u64,
    /// The first begin, the last end and the total time of the emitted top-level slices.
    before: Option<(i64, i64, i64)>,
    /// Complete slices, if there are any.
    intervals: Option<Box<Intervals>>,
    /// Whether slices with a begin and an end are stored too, because a complete slice may come around them.
    is_tree: bool,
}

impl TrackSlices {
    pub(super) fn new(is_windowed: bool, last: Option<i64>) -> Self {
        Self { is_windowed, last, ..Self::default() }
    }

    #[inline]
    pub(super) fn open(&mut self, frame: Frame) {
        if self.stack.capacity() == 0 {
            self.stack.reserve_exact(1); // all that most threads of a trace with a million need
        }
        self.stack.push(frame);
    }

    /// Whether there were complete slices.
    #[inline]
    pub(super) fn has_intervals(&self) -> bool {
        self.intervals.is_some()
    }

    /// Whether intervals are stored.
    pub(super) fn holds(&self) -> bool {
        self.intervals.as_ref().is_some_and(|intervals| !intervals.is_empty())
    }

    /// Whether [`take_plain`](Self::take_plain) may be called.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        !self.is_windowed && self.intervals.is_none() && self.without_room == 0
    }

    /// Takes the first of these events that are of this track and in order, and open or close only the
    /// innermost slice. Returns their number.
    #[inline(always)] // once, in a loop over all events
    pub(super) fn take_plain(
        &mut self,
        briefs: &[BriefEvent],
        keys: &Keys,
        open: &mut usize,
        sink: &mut TrackSink<'_, impl SliceSink>,
    ) -> usize {
        let mut last = self.last.unwrap_or(i64::MIN);
        let mut taken = 0;
        for brief in briefs {
            let &BriefEvent { time, track, kind, name, category } = brief;
            let is_slice = matches!(kind, BriefKind::Begin | BriefKind::End);
            if track != sink.track || is_slice && time < last {
                break;
            }
            if is_slice {
                let Some(name) = keys.known(name) else { break };
                if kind == BriefKind::Begin {
                    let Some(category) = keys.known(category) else { break };
                    if *open >= MOST_OPEN || self.stack.len() == self.stack.capacity() {
                        break; // `take` makes room
                    }
                    *open += 1;
                    self.stack.push(Frame::new(name, category, time, 0));
                } else {
                    if !self.stack.last().is_some_and(|top| top.is_ended_by(name)) {
                        break;
                    }
                    *open -= 1;
                    self.close_plain(time, sink);
                }
                last = time;
            }
            taken += 1;
        }
        if last != i64::MIN {
            self.last = Some(last);
        }
        taken
    }

    /// As `close`, for a track without intervals.
    #[inline(always)] // as `take_plain`
    fn close_plain(&mut self, time: i64, sink: &mut TrackSink<'_, impl SliceSink>) {
        let Some(Frame { name, category, start, tag, inner, .. }) = self.stack.pop() else { return };
        // It does not end before it begins, because the events are in order.
        let duration = time.checked_sub(start).unwrap_or_else(too_long);
        let busy = if self.stack.is_empty() { duration } else { 0 };
        let self_time = duration.wrapping_sub(inner).max(0); // neither is negative
        let track = sink.track;
        let slice = Slice { track, name, category, start, duration, self_time, busy, tag };
        sink.sink.slice(&slice, &mut self.stack);
        self.add_closed(start, duration);
    }

    /// Adds the time of a closed slice to the slice around it.
    #[inline]
    pub(super) fn add_closed(&mut self, start: i64, duration: i64) {
        if let Some(outer) = self.stack.last_mut() {
            outer.inner = outer.inner.checked_add(duration).unwrap_or_else(too_long);
        } else {
            let (first, _, emitted) = self.before.unwrap_or((start, 0, 0));
            let emitted = emitted.checked_add(duration).unwrap_or_else(too_long);
            self.before = Some((first, start + duration, emitted));
        }
    }

    #[inline(always)] // for every event
    pub(super) fn take(&mut self, entry: &Entry, open: &mut usize, sink: &mut TrackSink<'_, impl SliceSink>) {
        let Entry { time, change, name, category, tag, .. } = *entry;
        match change {
            Change::Begin if *open < MOST_OPEN => {
                *open += 1;
                let frame = Frame::new(name, category, time, tag);
                if self.is_windowed {
                    sink.sink.begins(&frame, sink.track, self.stack.len());
                }
                self.open(frame);
            }
            Change::Begin => {
                self.without_room += 1;
                sink.defect(Defect::TooManyOpen, time, name);
            }
            Change::End => self.end(entry, open, sink),
            Change::Complete { duration } => self.complete(entry, duration, false, sink),
            Change::Point => self.point(entry, sink),
        }
    }

    #[inline(always)] // as `take`
    fn end(&mut self, entry: &Entry, open: &mut usize, sink: &mut TrackSink<'_, impl SliceSink>) {
        let Entry { time, name, tag, .. } = *entry;
        if self.without_room > 0 {
            self.without_room -= 1;
            return;
        }
        let is_of = |frame: &Frame| frame.is_ended_by(name);
        let from = self.stack.len().saturating_sub(FARTHEST);
        let ends = match self.stack.last() {
            Some(top) if is_of(top) => Some(self.stack.len() - 1),
            _ => self.stack[from..].iter().rposition(is_of).map(|place| from + place),
        };
        let Some(ends) = ends else { return sink.defect(Defect::EndWithoutBegin, time, name) };
        if self.stack.len() > ends + 1 {
            self.close_inner(time, ends, open, sink);
        }
        *open -= 1;
        if tag != 0 {
            sink.sink.ends(&self.stack[ends], tag);
        }
        self.close(time, sink);
    }

    /// Ends the slices inside the one at a place.
    #[inline(never)]
    fn close_inner(
        &mut self,
        time: i64,
        place: usize,
        open: &mut usize,
        sink: &mut TrackSink<'_, impl SliceSink>,
    ) {
        while self.stack.len() > place + 1 {
            let inner = self.stack[self.stack.len() - 1];
            sink.defect(Defect::EndsWithAnother, inner.start, inner.name);
            *open -= 1;
            self.close(time, sink);
        }
    }

    /// Ends the innermost slice.
    #[inline]
    fn close(&mut self, time: i64, sink: &mut TrackSink<'_, impl SliceSink>) {
        if self.is_tree {
            return self.close_in_tree(time, sink);
        }
        let Some(slice) = self.pop(time, sink) else { return };
        let Slice { start, duration, .. } = slice;
        if time < start {
            sink.defect(Defect::EndsBeforeBegin, start, slice.name);
        }
        sink.sink.slice(&slice, &mut self.stack);
        if let Some(intervals) = &mut self.intervals {
            intervals.add_emitted(start, start + duration, slice.busy, sink.nodes);
        } else {
            self.add_closed(start, duration);
        }
    }

    /// Ends the innermost slice, and stores it as if it were complete.
    #[inline(never)]
    fn close_in_tree(&mut self, time: i64, sink: &mut TrackSink<'_, impl SliceSink>) {
        let Some(Frame { name, category, start, tag, .. }) = self.stack.pop() else { return };
        let (track, duration) = (sink.track, time.saturating_sub(start));
        let change = Change::Complete { duration };
        self.complete(&Entry { time: start, track, change, name, category, tag }, duration, true, sink);
    }

    /// Removes the innermost slice and ends it at `time`. Emits the intervals inside it first.
    #[inline]
    fn pop(&mut self, time: i64, sink: &mut TrackSink<'_, impl SliceSink>) -> Option<Slice> {
        let &Frame { name, category, start, tag, mut inner, .. } = self.stack.last()?;
        let mut overlap = 0;
        if let Some(intervals) = &mut self.intervals {
            let of_intervals;
            (of_intervals, overlap) = intervals.emit_between(start, time, &mut self.stack, sink);
            inner = inner.saturating_add(of_intervals).saturating_add(overlap);
        }
        self.stack.pop();
        if let Some(outer) = self.stack.last_mut() {
            outer.inner = outer.inner.saturating_sub(overlap); // once in this slice, once in the other
        }
        let duration = time.saturating_sub(start).max(0);
        let self_time = duration.saturating_sub(inner).max(0);
        let busy = match &mut self.intervals {
            _ if !self.stack.is_empty() => 0,
            Some(intervals) => intervals.uncovered(start, start.saturating_add(duration), sink.nodes),
            None => duration,
        };
        Some(Slice { track: sink.track, name, category, start, duration, self_time, busy, tag })
    }

    /// Shows a point. With complete slices on the track, those around it may still come.
    #[inline(never)]
    fn point(&mut self, entry: &Entry, sink: &mut TrackSink<'_, impl SliceSink>) {
        let Entry { time, name, category, tag, track, .. } = *entry;
        let is_put = self.intervals.as_mut().is_some_and(|intervals| intervals.add_point(entry, sink.nodes));
        if !is_put {
            sink.sink.point(&Point { track, name, category, time, tag }, &mut self.stack);
        }
    }

    /// Prepares for complete slices.
    pub(super) fn expect_intervals(&mut self) {
        self.intervals.get_or_insert_default();
        self.is_tree = true;
    }

    /// The complete slices. Creates their list if there are none.
    pub(super) fn intervals(&mut self, nodes: &mut Nodes) -> &mut Intervals {
        self.intervals.get_or_insert_with(|| {
            let mut intervals = Box::new(Intervals::default());
            if let Some((start, end, emitted)) = self.before {
                intervals.add_emitted(start, end, emitted, nodes);
            }
            intervals
        })
    }

    #[inline(never)]
    fn complete(
        &mut self,
        entry: &Entry,
        duration: i64,
        ends_now: bool,
        sink: &mut TrackSink<'_, impl SliceSink>,
    ) {
        let Entry { time, name, category, tag, .. } = *entry;
        if duration < 0 {
            sink.defect(Defect::EndsBeforeBegin, time, name);
        }
        let duration = duration.max(0);
        match self.intervals(sink.nodes).add(
            &Frame::new(name, category, time, tag),
            time.saturating_add(duration),
            ends_now,
            sink.nodes,
        ) {
            Ok(()) => {}
            Err(Misplaced::Overlaps) => sink.defect(Defect::Overlaps, time, name),
            Err(Misplaced::AfterInner) => sink.defect(Defect::AfterInner, time, name),
            Err(Misplaced::TooDeep) => {
                sink.defect(Defect::TooDeep, time, name);
                let (track, start) = (sink.track, time);
                let self_time = duration;
                let slice = Slice { track, name, category, start, duration, self_time, busy: 0, tag };
                sink.sink.slice(&slice, &mut self.stack);
            }
        }
    }

    /// Emits the older half of the intervals, or all.
    pub(super) fn shrink(&mut self, all: bool, sink: &mut TrackSink<'_, impl SliceSink>) {
        let Some(intervals) = &mut self.intervals else { return };
        if all {
            // Each below the innermost open slice that began before it.
            let mut later = Vec::new();
            while let Some(from) = self.stack.last().map(|frame| frame.start) {
                let time = intervals.emit_from(from, &mut self.stack, sink);
                if let Some(mut frame) = self.stack.pop() {
                    frame.inner = frame.inner.saturating_add(time);
                    later.push(frame);
                }
            }
            intervals.emit_from(i64::MIN, &mut self.stack, sink);
            self.stack.extend(later.into_iter().rev());
        } else {
            intervals.shrink(&mut self.stack, sink);
        }
    }

    /// Ends the trace.
    pub(super) fn finish(&mut self, last: i64, sink: &mut TrackSink<'_, impl SliceSink>) {
        while let Some(slice) = self.pop(last, sink) {
            sink.defect(Defect::NoEnd, slice.start, slice.name);
            sink.sink.open_slice(&slice, &mut self.stack);
            if let Some(outer) = self.stack.last_mut() {
                outer.inner = outer.inner.saturating_add(slice.duration);
            }
        }
        self.shrink(true, sink);
    }
}
