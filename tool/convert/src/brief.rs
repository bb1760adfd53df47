//! Events in brief. A reader decodes many at once, without their texts, and a command that pairs, counts or
//! writes them takes many at once.

use crate::{Categories, Event, EventKind, StringId, Strings, TrackId};

/// An event in brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BriefEvent {
    /// The time, in nanoseconds.
    pub time: i64,
    /// The track.
    pub track: TrackId,
    /// The kind.
    pub kind: BriefKind,
    /// The name: 0 for none, otherwise the number of the string plus 1. A counter value has none: its bits
    /// are here and in `category`, see [`value`](Self::value).
    pub name: u32,
    /// The only category, as `name`.
    pub category: u32,
}

/// The kind of a [`BriefEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BriefKind {
    /// The begin of a slice.
    Begin,
    /// The end of a slice.
    End,
    /// An instant.
    Instant,
    /// A value of a counter.
    Counter,
}

/// Which events a reader gives in brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BriefUse {
    /// All whose slices and times are said: for who pairs and counts events. Their arguments are left out.
    Counting,
    /// Only those of which a [`BriefEvent`] says everything.
    Writing,
}

/// The limit for the events that a reader gives at once. They stay in the processor's nearest cache.
pub const MOST_BRIEF: usize = 256;

impl BriefEvent {
    /// Creates the value of a counter. Its bits take the place of the texts, so that no event is larger.
    pub(crate) fn counter(time: i64, track: TrackId, value: f64) -> Self {
        let bits = value.to_bits();
        Self { time, track, kind: BriefKind::Counter, name: bits as u32, category: (bits >> 32) as u32 }
    }

    /// The value of a counter, without its multiplier. `None` for other events.
    #[inline]
    #[must_use]
    pub fn value(&self) -> Option<f64> {
        let bits = u64::from(self.category) << 32 | u64::from(self.name);
        (self.kind == BriefKind::Counter).then(|| f64::from_bits(bits))
    }

    /// The number of a text, if it has one.
    #[inline(always)] // for every event
    pub(crate) fn number(id: Option<StringId>) -> Option<u32> {
        id?.0.checked_add(1)
    }

    /// The whole event, if the reader was asked for those to [write](BriefUse::Writing). `None` for a counter
    /// value.
    #[inline(always)] // as `number`
    #[must_use]
    pub fn event<'a>(&self, strings: &'a Strings) -> Option<Event<'a>> {
        let kind = match self.kind {
            BriefKind::Begin => EventKind::Begin,
            BriefKind::End => EventKind::End,
            BriefKind::Instant => EventKind::Instant,
            BriefKind::Counter => return None,
        };
        let text = |number: u32| number.checked_sub(1).map(|id| strings.text(StringId(id)));
        Some(Event {
            name: text(self.name).unwrap_or_default(),
            categories: text(self.category).map_or(Categories::None, Categories::One),
            ..Event::new(self.time, self.track, kind)
        })
    }
}
