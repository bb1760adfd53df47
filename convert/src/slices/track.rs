//! What is open on one track.

use crate::slices::entry::{Change, Entry};
use crate::slices::intervals::{Intervals, Misplaced};
use crate::slices::keys::Key;
use crate::slices::slice::{Frame, Sink, Slice, Tell, Wrong};

/// Slices that are open at the same time, on all tracks together: a begin is two bytes of the input, and its place here is many.
const MOST_OPEN: usize = 1 << 19;

/// How many open slices an end may end together with its own. Without a limit, ends that have no begin look at all that is open, each of
/// them.
const FARTHEST: usize = 1 << 14;

#[derive(Debug, Default)]
pub(super) struct OneTrack {
    /// Its events wait for others that may be earlier.
    pub(super) is_windowed: bool,
    /// Of a begin or an end.
    pub(super) last: Option<i64>,
    stack: Vec<Frame>,
    /// Begins that found no room, and whose ends are still to come.
    without_room: u64,
    /// From where to where slices were told that have begins and ends, and their time.
    before: Option<(i64, i64, i64)>,
    /// Slices that came with begin and duration.
    intervals: Option<Box<Intervals>>,
}

impl OneTrack {
    /// How many intervals wait to be told.
    pub(super) fn held(&self) -> usize {
        self.intervals.as_ref().map_or(0, |intervals| intervals.held())
    }

    #[inline]
    pub(super) fn take(&mut self, entry: &Entry, open: &mut usize, tell: &mut Tell<'_, impl Sink>) {
        let Entry { time, change, name, category, .. } = *entry;
        match change {
            Change::Begin if *open < MOST_OPEN => {
                *open += 1;
                self.stack.push(Frame::new(name, category, time));
            }
            Change::Begin => {
                self.without_room += 1;
                tell.wrong(Wrong::TooManyOpen, time, name);
            }
            Change::End => self.end(time, name, open, tell),
            Change::Complete { duration } => self.complete(entry, duration, tell),
        }
    }

    #[inline]
    fn end(&mut self, time: i64, name: Key, open: &mut usize, tell: &mut Tell<'_, impl Sink>) {
        if self.without_room > 0 {
            self.without_room -= 1;
            return;
        }
        let is_of = |frame: &Frame| name == Key::NONE || frame.name == name || frame.name == Key::NONE;
        let from = self.stack.len().saturating_sub(FARTHEST);
        let ends = match self.stack.last() {
            Some(top) if is_of(top) => Some(self.stack.len() - 1),
            _ => self.stack[from..].iter().rposition(is_of).map(|place| from + place),
        };
        let Some(ends) = ends else { return tell.wrong(Wrong::EndWithoutBegin, time, name) };
        while self.stack.len() > ends + 1 {
            let inner = self.stack[self.stack.len() - 1];
            tell.wrong(Wrong::EndsWithAnother, inner.start, inner.name);
            *open -= 1;
            self.close(time, tell);
        }
        *open -= 1;
        self.close(time, tell);
    }

    /// Ends the innermost one.
    #[inline]
    fn close(&mut self, time: i64, tell: &mut Tell<'_, impl Sink>) {
        let Some(slice) = self.pop(time, tell) else { return };
        let Slice { start, duration, .. } = slice;
        if time < start {
            tell.wrong(Wrong::EndsBeforeBegin, start, slice.name);
        }
        tell.sink.slice(&slice, &self.stack);
        if let Some(intervals) = &mut self.intervals {
            intervals.add_told(start, start + duration, slice.busy);
        } else if let Some(outer) = self.stack.last_mut() {
            outer.inner = outer.inner.saturating_add(duration);
        } else {
            let (first, _, told) = self.before.unwrap_or((start, time, 0));
            self.before = Some((first, start + duration, told.saturating_add(duration)));
        }
    }

    /// Takes the innermost one off as a slice up to this time, when all that lies in it was told.
    #[inline]
    fn pop(&mut self, time: i64, tell: &mut Tell<'_, impl Sink>) -> Option<Slice> {
        let &Frame { name, category, start, mut inner } = self.stack.last()?;
        if let Some(intervals) = &mut self.intervals {
            inner = inner.saturating_add(intervals.tell_from(start, &mut self.stack, tell));
        }
        self.stack.pop();
        let duration = time.saturating_sub(start).max(0);
        let self_time = duration.saturating_sub(inner).max(0);
        let busy = if self.stack.is_empty() { duration } else { 0 };
        Some(Slice { track: tell.track, name, category, start, duration, self_time, busy })
    }

    #[inline(never)]
    fn complete(&mut self, entry: &Entry, duration: i64, tell: &mut Tell<'_, impl Sink>) {
        let Entry { time, name, category, .. } = *entry;
        let intervals = self.intervals.get_or_insert_with(|| {
            let mut intervals = Box::new(Intervals::default());
            if let Some((start, end, told)) = self.before {
                intervals.add_told(start, end, told);
            }
            intervals
        });
        if duration < 0 {
            tell.wrong(Wrong::EndsBeforeBegin, time, name);
        }
        let duration = duration.max(0);
        match intervals.add(time, time.saturating_add(duration), name, category) {
            Ok(()) => {}
            Err(Misplaced::Overlaps) => tell.wrong(Wrong::Overlaps, time, name),
            Err(Misplaced::TooDeep) => {
                tell.wrong(Wrong::TooDeep, time, name);
                let (track, start) = (tell.track, time);
                let slice = Slice { track, name, category, start, duration, self_time: duration, busy: 0 };
                tell.sink.slice(&slice, &self.stack);
            }
        }
    }

    /// Tells the older half of the intervals, or all.
    pub(super) fn shrink(&mut self, all: bool, tell: &mut Tell<'_, impl Sink>) {
        let Some(intervals) = &mut self.intervals else { return };
        if all {
            let time = intervals.tell_from(i64::MIN, &mut self.stack, tell);
            if let Some(outer) = self.stack.last_mut() {
                outer.inner = outer.inner.saturating_add(time);
            }
        } else {
            intervals.shrink(&mut self.stack, tell);
        }
    }

    /// Nothing more comes.
    pub(super) fn finish(&mut self, last: i64, tell: &mut Tell<'_, impl Sink>) {
        while let Some(slice) = self.pop(last, tell) {
            tell.wrong(Wrong::NoEnd, slice.start, slice.name);
            tell.sink.open_slice(&slice, &self.stack);
            if let Some(outer) = self.stack.last_mut() {
                outer.inner = outer.inner.saturating_add(slice.duration);
            }
        }
        self.shrink(true, tell);
    }
}
