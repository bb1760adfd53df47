//! From events to slices: what began when, how long it took, what of that was its own.
//!
//! ```text
//! Item ──> [window] ──> stack of a track ──> Slice, with those around it
//!             │               └ intervals: slices that came with begin and duration, in any order
//!             └ only tracks that several threads write to, or whose events were seen to be out of order
//! ```
//!
//! * A thread's events come in order and go straight to its stack: nothing is allocated or searched for one.
//! * Others may come out of order, by as much as a writer gathers of one thread before it goes on to the next. They wait in a window of
//!   65,536 events; one that is later still is counted ([`Defect::Late`]).
//! * What nests how is Perfetto's trace_processor's rule: an end is that of the innermost open slice of its name, and what is open inside
//!   ends with it (16,384 slices at most); an end without a begin is nothing.
//! * Memory is bounded whatever the input: 524,288 slices that are open at a time, 65,536 intervals that wait, 8 MiB of texts.

mod entry;
mod intervals;
mod keys;
mod slice;
#[cfg(test)]
mod tests;
mod track;
mod window;

pub use keys::{Key, Keys};
pub use slice::{Defect, Frame, Slice, SliceSink};

use crate::model::{Event, EventKind, Item, TrackId, TrackKind};
use crate::slices::entry::{Change, Entry};
use crate::slices::slice::TrackSink;
use crate::slices::track::TrackSlices;
use crate::slices::window::Window;

/// Intervals that wait until it is certain what lies in them, on all tracks together.
const MOST_HELD: usize = 1 << 16;

/// Makes slices of events.
#[derive(Debug, Default)]
pub struct Slices {
    keys: Keys,
    tracks: Vec<TrackSlices>,
    window: Window,
    /// Slices that are open.
    open: usize,
    /// Intervals that wait.
    held: usize,
    last: Option<i64>,
}

impl Slices {
    /// Nothing is open.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Names and categories of the slices so far.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The same, when nothing more comes.
    #[must_use]
    pub fn into_keys(self) -> Keys {
        self.keys
    }

    /// The same, to give numbers to more.
    pub fn keys_mut(&mut self) -> &mut Keys {
        &mut self.keys
    }

    /// Takes an item, and tells `sink` of the slices that are over by it.
    #[inline]
    pub fn item(&mut self, item: &Item<'_>, sink: &mut impl SliceSink) {
        match item {
            Item::Event(event) => self.event(event, sink),
            Item::Track(track) => {
                let is_thread = matches!(track.kind, TrackKind::Thread { .. });
                self.track(track.id).is_windowed |= !is_thread;
            }
            _ => {}
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, sink: &mut impl SliceSink) {
        let change = match event.kind {
            EventKind::Begin => Change::Begin,
            EventKind::End => Change::End,
            EventKind::Complete { duration } => Change::Complete { duration },
            _ => return,
        };
        let name = self.keys.key(event.name);
        // An end's categories say nothing.
        let category =
            if change == Change::End { Key::NONE } else { self.keys.categories(&event.categories) };
        let entry = Entry { time: event.time, track: event.track, change, name, category };
        let is_complete = matches!(change, Change::Complete { .. });
        let track = self.track(event.track);
        if !track.is_windowed {
            if is_complete || track.last.is_none_or(|last| last <= entry.time) {
                return self.take(&entry, sink);
            }
            TrackSink { track: entry.track, sink: &mut *sink }.defect(Defect::OutOfOrder, entry.time, name);
            track.is_windowed = true;
        }
        if let Some(earliest) = self.window.push(entry) {
            self.take(&earliest, sink);
        }
    }

    #[inline]
    fn take(&mut self, entry: &Entry, sink: &mut impl SliceSink) {
        let end = match entry.change {
            Change::Complete { duration } => entry.time.saturating_add(duration.max(0)),
            _ => entry.time,
        };
        self.last = self.last.max(Some(end));
        let track = &mut self.tracks[entry.track.0 as usize];
        let mut track_sink = TrackSink { track: entry.track, sink };
        let is_complete = matches!(entry.change, Change::Complete { .. });
        if !is_complete {
            if track.is_windowed && track.last.is_some_and(|last| entry.time < last) {
                track_sink.defect(Defect::Late, entry.time, entry.name);
            }
            track.last = Some(entry.time);
        }
        let before = track.held();
        track.take(entry, &mut self.open, &mut track_sink);
        self.held = self.held + track.held() - before;
        if self.held > MOST_HELD {
            self.shrink(sink);
        }
    }

    fn track(&mut self, id: TrackId) -> &mut TrackSlices {
        let index = id.0 as usize;
        if index >= self.tracks.len() {
            self.tracks.resize_with(index + 1, TrackSlices::default);
        }
        &mut self.tracks[index]
    }

    #[cold]
    fn shrink(&mut self, sink: &mut impl SliceSink) {
        for all in [false, true] {
            for (id, track) in (0..).map(TrackId).zip(&mut self.tracks) {
                track.shrink(all, &mut TrackSink { track: id, sink });
            }
            self.held = self.tracks.iter().map(TrackSlices::held).sum();
            if self.held <= MOST_HELD / 4 * 3 {
                break;
            }
        }
    }

    /// Nothing more comes: tells what is still to be emitted.
    pub fn finish(&mut self, sink: &mut impl SliceSink) {
        while let Some(entry) = self.window.pop() {
            self.take(&entry, sink);
        }
        let last = self.last.unwrap_or_default();
        for (id, track) in (0..).map(TrackId).zip(&mut self.tracks) {
            track.finish(last, &mut TrackSink { track: id, sink });
        }
        (self.open, self.held) = (0, 0);
    }
}
