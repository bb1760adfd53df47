//! Writes plain events: nearly all events have a name, at most one category, and arguments only.

use std::cmp::Reverse;
use std::io::{self, Write};

use hairline_formats::trace_event_json::{Args, PlainEvent, PlainPhase};

use crate::json::write::arguments::EventArguments;
use crate::json::write::state::{JsonWriter, finished};
use crate::json::write::tracks::OutputTrack;
use crate::report::TOO_DEEP;
use crate::ties::{Rank, TIES};
use crate::{Categories, Event, EventKind, Text};

impl<W: Write> JsonWriter<W> {
    /// Writes an event of a thread from cached pieces of text. Returns `None` and writes nothing if the event
    /// is not plain.
    #[inline]
    pub(super) fn plain(&mut self, event: &Event<'_>, ts: i64) -> Option<io::Result<()>> {
        let kind = kind(event.kind)?;
        let category = only_category(event)?;
        if !event.extra_counters.is_empty() || event.details().has_any() {
            return None;
        }
        let Some(OutputTrack::Thread { place, flows, ties, .. }) = self.tracks.get_mut(event.track) else {
            return None;
        };
        if !flows.is_empty() {
            return None;
        }
        let label = self.labels.get(event.name, category)?;
        if ties.add(ts, rank(kind)) {
            self.report.add(TIES);
        }
        let shown = EventArguments::new(event);
        let args = if event.args.is_empty() { Args::None } else { Args::Shown(&shown) };
        let written = match &mut self.output {
            Some(output) => output.plain(&PlainEvent { label, phase: kind, ts, ids: place, args }),
            None => finished(),
        };
        self.report.add_many(TOO_DEEP, shown.cut());
        Some(written)
    }
}

/// The kind of a thread's event. Returns `None` for flows and counters.
#[inline]
pub(super) fn kind(kind: EventKind) -> Option<PlainPhase> {
    Some(match kind {
        EventKind::Begin => PlainPhase::Begin,
        EventKind::End => PlainPhase::End,
        EventKind::Complete { duration } => PlainPhase::Complete { dur: duration },
        EventKind::Instant => PlainPhase::Instant,
        EventKind::Flow { .. } | EventKind::Counter(_) => return None,
    })
}

/// The place of an event among those of its thread and time.
#[inline]
pub(super) fn rank(kind: PlainPhase) -> Rank {
    match kind {
        PlainPhase::End => Rank::End,
        PlainPhase::Complete { dur } => Rank::Complete(Reverse(dur)),
        _ => Rank::Other,
    }
}

/// The category of an event, or the empty text. Returns `None` for several categories.
#[inline]
pub(super) fn only_category<'a>(event: &Event<'a>) -> Option<Text<'a>> {
    match event.categories {
        Categories::None => Some(Text::default()),
        Categories::One(category) => Some(category),
        Categories::Many(_) => None,
    }
}
