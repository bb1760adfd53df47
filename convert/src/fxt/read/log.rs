//! Log records. Importers pass over them, so writers put an instant of the same moment after one, which says the same in its arguments:
//! the two are one event.

use hairline_formats::Value;
use hairline_formats::track_event::Priority;

use crate::fxt::levels::LEVELS;
use crate::model::{Arguments, Event, EventKind, Log, NoArguments, TrackId};

/// The message of a log record, until it is known whether its instant follows.
#[derive(Debug, Default)]
pub(super) struct Pending {
    message: String,
    at: Option<(i64, TrackId)>,
    told: bool,
}

impl Pending {
    pub(super) fn set(&mut self, time: i64, track: TrackId, message: &[u8]) {
        self.message.clear();
        self.message.push_str(&String::from_utf8_lossy(message));
        (self.at, self.told) = (Some((time, track)), false);
    }

    #[inline]
    pub(super) fn forget_told(&mut self) {
        if self.told {
            (self.at, self.told) = (None, false);
        }
    }

    /// Its moment and its thread, once.
    #[inline]
    pub(super) fn tell(&mut self) -> Option<(i64, TrackId)> {
        let at = self.at.filter(|_| !self.told)?;
        self.told = true;
        Some(at)
    }

    /// The same, unless its instant may be the record at hand.
    #[inline]
    pub(super) fn tell_unless(&mut self, may_be_met: bool) -> Option<(i64, TrackId)> {
        if may_be_met { None } else { self.tell() }
    }

    /// Whether an instant of that moment is its: then it is told with that.
    #[inline]
    pub(super) fn is_met_by(&mut self, time: i64, track: TrackId) -> bool {
        let is_met = self.at == Some((time, track)) && !self.told;
        self.told |= is_met;
        is_met
    }

    /// The message; `args` are those of its instant, and may say how much it matters.
    pub(super) fn log(&self, args: &dyn Arguments) -> Log<'_> {
        let mut priority = Priority::Unspecified;
        args.each(&mut |name, value| {
            if let ("level", Value::Str(level) | Value::Interned { text: level, .. }) = (name.text, value)
                && let Some((known, _)) = LEVELS.iter().find(|(_, name)| *name == level)
            {
                priority = *known;
            }
        });
        Log { body: &self.message, priority }
    }

    pub(super) fn event(&self, time: i64, track: TrackId) -> Event<'_> {
        Event { log: Some(self.log(&NoArguments)), ..Event::new(time, track, EventKind::Instant) }
    }
}
