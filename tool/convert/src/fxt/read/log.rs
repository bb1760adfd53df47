//! Log records. Importers ignore them, so writers add an instant with the same time and with the message as
//! an argument. The two become one event.

use hairline_formats::Value;
use hairline_formats::track_event::Priority;

use crate::fxt::levels::LEVELS;
use crate::{Arguments, Detailed, Event, EventDetails, EventKind, Log, NoArguments, TrackId};

/// A log message that may belong to the next instant.
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

    /// Whether there is no message that an instant may belong to.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.at.is_none()
    }

    #[inline]
    pub(super) fn forget_emitted(&mut self) {
        if self.emitted {
            (self.at, self.emitted) = (None, false);
        }
    }

    /// Returns the time and the track of the message, once.
    #[inline]
    pub(super) fn take(&mut self) -> Option<(i64, TrackId)> {
        let at = self.at.filter(|_| !self.emitted)?;
        self.emitted = true;
        Some(at)
    }

    /// As `take`, unless the current record may be the instant of the message.
    #[inline]
    pub(super) fn take_unless(&mut self, may_be_met: bool) -> Option<(i64, TrackId)> {
        if may_be_met { None } else { self.take() }
    }

    /// Whether an instant belongs to the message. The message is then returned with it.
    #[inline]
    pub(super) fn is_met_by(&mut self, time: i64, track: TrackId) -> bool {
        let is_met = self.at == Some((time, track)) && !self.emitted;
        self.emitted |= is_met;
        is_met
    }

    /// The log message. `args` are the arguments of its instant, which may have the priority.
    pub(super) fn log(&self, args: &dyn Arguments) -> Log<'_> {
        let mut priority = Priority::Unspecified;
        args.each(&mut |name, value| {
            if let ("level", Value::Str(level) | Value::Interned { text: level, .. }) = (name.text, value)
                && let Some((known, _)) = LEVELS.iter().find(|(_, name)| *name == level)
            {
                priority = *known;
            }
        });
        Log { body: &self.message, priority, tag: None }
    }

    pub(super) fn event(&self, time: i64, track: TrackId) -> Event<'_> {
        Event { details: Some(self), ..Event::new(time, track, EventKind::Instant) }
    }
}

/// The details of a message without an instant.
impl Detailed for PendingLog {
    fn details(&self) -> EventDetails<'_> {
        EventDetails { log: Some(self.log(&NoArguments)), ..EventDetails::default() }
    }
}
