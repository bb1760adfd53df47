//! Log records. Importers pass over them, so writers put an instant of the same moment after one, which says the same in its arguments:
//! the two are one event.

use hairline_formats::Value;
use hairline_formats::track_event::Priority;

use crate::fxt::levels::LEVELS;
use crate::model::{Arguments, Event, EventKind, Log, NoArguments, TrackId};

/// The message of a log record, until it is known whether its instant follows.
#[derive(Debug, Default)]
pub(super) struct PendingLog {
    message: String,
    at: Option<(i64, TrackId)>,
    emitted: bool,
}

impl PendingLog {
    pub(super) fn set(&mut self, time: i64, track: TrackId, message: &[u8]) {
        self.message.clear();
        self.message.push_str(&String::from_utf8_lossy(message));
        (self.at, self.emitted) = (Some((time, track)), false);
    }

    #[inline]
    pub(super) fn forget_emitted(&mut self) {
        if self.emitted {
            (self.at, self.emitted) = (None, false);
        }
    }

    /// Its moment and its thread, once.
    #[inline]
    pub(super) fn take(&mut self) -> Option<(i64, TrackId)> {
        let at = self.at.filter(|_| !self.emitted)?;
        self.emitted = true;
        Some(at)
    }

    /// The same, unless its instant may be the record at hand.
    #[inline]
    pub(super) fn take_unless(&mut self, may_be_met: bool) -> Option<(i64, TrackId)> {
        if may_be_met { None } else { self.take() }
    }

    /// Whether an instant of that moment is its: then it is emitted with that.
    #[inline]
    pub(super) fn is_met_by(&mut self, time: i64, track: TrackId) -> bool {
        let is_met = self.at == Some((time, track)) && !self.emitted;
        self.emitted |= is_met;
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
