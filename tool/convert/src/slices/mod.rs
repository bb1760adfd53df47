//! Events to slices: begin, duration and own time.
//!
//! ```text
//! Item ──> [window] ──> stack of a track ──> Slice, with the enclosing slices
//!             │               └ intervals: complete slices, in any order
//!             └ only tracks that several threads write to, or whose events were out of order
//! ```
//!
//! * The events of a thread are in order and go straight to its stack, without allocation or search.
//! * The events of other tracks may be out of order by the size of a writer's chunk. They wait in a window of
//!   65,536 events. An event that comes even later is a defect ([`Defect::Late`]).
//! * [`Slices::in_order`] sorts all events first, for traces with such events.
//! * Slices nest as in Perfetto's trace_processor: an end closes the innermost open slice of its name, and
//!   all slices inside it (at most 16,384). An end without a begin has no effect.
//! * Memory is bounded for any input: 524,288 open slices, 262,144 stored intervals, 8 MiB of texts.

mod entry;
mod first;
mod intervals;
mod keys;
mod nodes;
mod order;
mod slice;
#[cfg(test)]
mod tests;
mod track;

pub use keys::{Key, Keys};
pub use slice::{Defect, Frame, Point, Slice, SliceSink};

use std::fs::File;
use std::io;

use crate::slices::entry::{Change, Entry};
use crate::slices::first::Slot;
use crate::slices::nodes::Nodes;
use crate::slices::order::Order;
use crate::slices::slice::TrackSink;
use crate::window::{LONGEST, Window};
use crate::{BriefEvent, BriefKind, ByTrack, Event, EventKind, Item, Strings, TrackId, TrackKind};

/// The limit for stored intervals on all tracks together.
const MOST_HELD: usize = 1 << 18;

/// Builds slices from events.
///
/// ```
/// use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
/// use hairline_convert::{Context, TrackId, open};
///
/// /// Collects the duration and the self time of each slice.
/// #[derive(Default)]
/// struct Times(Vec<(i64, i64)>);
/// impl SliceSink for Times {
///     fn slice(&mut self, slice: &Slice, _above: &mut [Frame]) {
///         self.0.push((slice.duration, slice.self_time));
///     }
///     fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
///         panic!("{what:?}");
///     }
/// }
///
/// let json = br#"[{"name":"outer","ph":"B","ts":0,"pid":1,"tid":1},
///     {"name":"inner","ph":"X","ts":1,"dur":3,"pid":1,"tid":1},
///     {"name":"outer","ph":"E","ts":10,"pid":1,"tid":1}]"#;
/// let (mut reader, mut context) = (open(&json[..], None)?, Context::new());
/// let (mut slices, mut times) = (Slices::new(), Times::default());
/// while let Some(item) = reader.next(&mut context)? {
///     slices.item(&item, &mut times);
/// }
/// slices.finish(&mut times);
/// assert_eq!(times.0, [(3_000, 3_000), (10_000, 7_000)]); // the inner slice first
/// # Ok::<(), hairline_convert::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Slices {
    keys: Keys,
    tracks: ByTrack<Slot>,
    window: Window<Entry>,
    /// The number of open slices.
    open: usize,
    /// The stored intervals.
    nodes: Nodes,
    /// The tracks that store intervals.
    holding: Vec<TrackId>,
    last: Option<i64>,
    /// All events, if they are sorted first.
    order: Option<Box<Order>>,
}

impl Slices {
    /// Creates an empty builder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a builder that sorts all events by time before it builds slices. `create` creates an empty
    /// temporary file, for more than a million events. [`finish`](Self::finish) emits all slices.
    #[must_use]
    pub fn in_order(create: fn() -> io::Result<File>) -> Self {
        Self { order: Some(Box::new(Order::new(create))), ..Self::default() }
    }

    /// The names and categories of the slices so far.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Returns the keys, when no more items follow.
    #[must_use]
    pub fn into_keys(self) -> Keys {
        self.keys
    }

    /// Lets the trace end at `time` at the earliest: slices without an end last that long.
    pub fn lasts_to(&mut self, time: i64) {
        self.last = self.last.max(Some(time));
    }

    /// Prepares for complete slices on a track that has none yet, as an earlier reading has shown. Points and
    /// slices that precede them are then shown with the slices around them.
    pub fn expect_intervals(&mut self, track: TrackId) {
        if let Some(slices) = self.tracks.at(track).make_all(&mut self.nodes) {
            slices.expect_intervals();
        }
    }

    /// Whether there were complete slices on a track.
    #[must_use]
    pub fn has_intervals(&self, track: TrackId) -> bool {
        self.tracks.get(track).is_some_and(Slot::has_intervals)
    }

    /// The keys, to add further texts.
    pub fn keys_mut(&mut self) -> &mut Keys {
        &mut self.keys
    }

    /// Adds an item, and emits the slices that it completes to `sink`.
    #[inline]
    pub fn item(&mut self, item: &Item<'_>, sink: &mut impl SliceSink) {
        match item {
            Item::Event(event) => self.event(event, sink),
            Item::Track(track) => {
                let is_thread = matches!(track.kind, TrackKind::Thread { .. });
                let slot = self.tracks.at(track.id);
                if !is_thread {
                    slot.set_windowed();
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>, sink: &mut impl SliceSink) {
        if matches!(event.kind, EventKind::Begin | EventKind::End | EventKind::Complete { .. }) {
            self.tagged(event, 0, sink);
        } else {
            self.last = self.last.max(Some(event.time)); // open slices last to the end of the trace
        }
    }

    /// Adds an event with a number of its own, which the slice has when it is complete. An instant, a step of
    /// a flow and the value of a counter are shown as [points](SliceSink::point), so that the sink learns
    /// which slices are around them.
    #[inline]
    pub fn tagged(&mut self, event: &Event<'_>, tag: u32, sink: &mut impl SliceSink) {
        let change = match event.kind {
            EventKind::Begin => Change::Begin,
            EventKind::End => Change::End,
            EventKind::Complete { duration } => Change::Complete { duration },
            _ => Change::Point,
        };
        let name = self.keys.key(event.name);
        // The categories of an end have no meaning.
        let category =
            if change == Change::End { Key::NONE } else { self.keys.categories(&event.categories) };
        self.change(Entry { time: event.time, track: event.track, change, name, category, tag }, sink);
    }

    /// Adds events of which a reader says only the [brief](crate::TraceReader::briefs). `strings` are those
    /// of the reader's context.
    #[inline]
    pub fn briefs(&mut self, briefs: &[BriefEvent], strings: &Strings, sink: &mut impl SliceSink) {
        let mut rest = briefs;
        while let [brief, others @ ..] = rest {
            match self.plain(rest, sink) {
                0 => {
                    self.brief(brief, 0, strings, sink);
                    rest = others;
                }
                taken => rest = &rest[taken..],
            }
        }
    }

    /// As [`briefs`](Self::briefs). Instants are shown as [points](SliceSink::point).
    pub fn briefs_and_points(&mut self, briefs: &[BriefEvent], strings: &Strings, sink: &mut impl SliceSink) {
        for part in briefs.split_inclusive(|brief| brief.kind == BriefKind::Instant) {
            match part {
                [slices @ .., point] if point.kind == BriefKind::Instant => {
                    self.briefs(slices, strings, sink);
                    let (name, category) = (
                        self.keys.numbered(point.name, strings),
                        self.keys.numbered(point.category, strings),
                    );
                    let (time, track, change) = (point.time, point.track, Change::Point);
                    self.change(Entry { time, track, change, name, category, tag: 0 }, sink);
                }
                slices => self.briefs(slices, strings, sink),
            }
        }
    }

    /// As [`briefs`](Self::briefs), with numbers as in [`tagged`](Self::tagged): the first event has `first`,
    /// and so on. Instants and counters have numbers too, but are not shown.
    #[inline]
    pub fn tagged_briefs(
        &mut self,
        briefs: &[BriefEvent],
        first: u32,
        strings: &Strings,
        sink: &mut impl SliceSink,
    ) {
        for (brief, tag) in briefs.iter().zip(first..) {
            self.brief(brief, tag, strings, sink);
        }
    }

    /// Adds the first of these events that are of one thread and in order, and change only its innermost
    /// slice. Returns their number.
    #[inline]
    fn plain(&mut self, briefs: &[BriefEvent], sink: &mut impl SliceSink) -> usize {
        let Some(track) = briefs.first().map(|brief| brief.track) else { return 0 };
        let Some(slices) = self.tracks.get_mut(track).and_then(Slot::all) else { return 0 };
        if self.order.is_some() || !slices.is_plain() {
            return 0;
        }
        let taken = slices.take_plain(
            briefs,
            &self.keys,
            &mut self.open,
            &mut TrackSink { track, sink, nodes: &mut self.nodes },
        );
        if taken > 0 {
            self.last = self.last.max(slices.last).max(briefs.get(taken - 1).map(|brief| brief.time));
        }
        taken
    }

    #[inline(never)]
    fn brief(&mut self, brief: &BriefEvent, tag: u32, strings: &Strings, sink: &mut impl SliceSink) {
        let change = match brief.kind {
            BriefKind::Begin => Change::Begin,
            BriefKind::End => Change::End,
            BriefKind::Instant | BriefKind::Counter => {
                self.last = self.last.max(Some(brief.time));
                return;
            }
        };
        let name = self.keys.numbered(brief.name, strings);
        let category = match change {
            Change::End => Key::NONE,
            _ => self.keys.numbered(brief.category, strings),
        };
        let (time, track) = (brief.time, brief.track);
        self.change(Entry { time, track, change, name, category, tag }, sink);
    }

    #[inline(always)] // for every event
    fn change(&mut self, entry: Entry, sink: &mut impl SliceSink) {
        let Entry { change, name, .. } = entry;
        if let Some(order) = &mut self.order {
            return order.push(entry);
        }
        let is_complete = matches!(change, Change::Complete { .. });
        let slot = self.tracks.at(entry.track);
        if !slot.is_windowed() {
            if is_complete || slot.last().is_none_or(|last| last <= entry.time) {
                return self.take(&entry, sink);
            }
            sink.defect(Defect::OutOfOrder, entry.track, entry.time, name);
            self.tracks.at(entry.track).set_windowed();
        }
        self.window.push(entry);
        if self.window.len() > LONGEST
            && let Some(earliest) = self.window.pop()
        {
            self.take(&earliest, sink);
        }
    }

    #[inline(always)] // as `change`
    fn take(&mut self, entry: &Entry, sink: &mut impl SliceSink) {
        let end = match entry.change {
            Change::Complete { duration } => entry.time.saturating_add(duration.max(0)),
            _ => entry.time,
        };
        self.last = self.last.max(Some(end));
        let slot = self.tracks.at(entry.track);
        let mut track_sink = TrackSink { track: entry.track, sink, nodes: &mut self.nodes };
        let held = slot.all().is_some_and(|track| track.holds());
        if let Slot::First(first) = slot {
            if first.take(entry, &mut self.open, &mut track_sink) {
                return;
            }
            slot.make_all(track_sink.nodes);
        }
        let Some(track) = slot.all() else { return };
        let is_complete = matches!(entry.change, Change::Complete { .. });
        if !is_complete {
            if track.is_windowed && track.last.is_some_and(|last| entry.time < last) {
                track_sink.defect(Defect::Late, entry.time, entry.name);
            }
            track.last = Some(entry.time);
        }
        if !is_complete && !track.has_intervals() {
            return track.take(entry, &mut self.open, &mut track_sink);
        }
        track.take(entry, &mut self.open, &mut track_sink);
        if !held && track.holds() {
            self.holding.push(entry.track);
            if self.holding.len() > 2 * self.tracks.len() {
                self.tidy_holding();
            }
        }
        if self.nodes.count() > MOST_HELD {
            self.shrink(sink);
        }
    }

    /// Emits intervals until a quarter of the room is free. Looks only at the tracks that store some.
    #[cold]
    fn shrink(&mut self, sink: &mut impl SliceSink) {
        for all in [false, true] {
            self.tidy_holding();
            for id in &self.holding {
                let Some(track) = self.tracks.at(*id).all() else { continue };
                track.shrink(all, &mut TrackSink { track: *id, sink, nodes: &mut self.nodes });
            }
            if self.nodes.count() <= MOST_HELD / 4 * 3 {
                break;
            }
        }
    }

    /// Keeps each track that stores intervals once.
    #[cold]
    fn tidy_holding(&mut self) {
        self.holding.sort_unstable();
        self.holding.dedup();
        let tracks = &mut self.tracks;
        self.holding.retain(|id| tracks.at(*id).all().is_some_and(|track| track.holds()));
    }

    /// Ends the trace: emits all remaining slices.
    ///
    /// # Errors
    /// Only a builder that sorts can fail: if its temporary file cannot be written or read.
    pub fn finish(&mut self, sink: &mut impl SliceSink) -> io::Result<()> {
        if let Some(order) = self.order.take() {
            let mut sorted = order.sorted()?;
            while let Some(entry) = sorted.pop()? {
                self.take(&entry, sink);
            }
        }
        while let Some(entry) = self.window.pop() {
            self.take(&entry, sink);
        }
        let last = self.last.unwrap_or_default();
        for (id, track) in self.tracks.iter_mut() {
            track.finish(last, &mut TrackSink { track: id, sink, nodes: &mut self.nodes });
        }
        self.open = 0;
        Ok(())
    }
}
