//! The part of an event that does not borrow from its record.

use std::io::Read;

use crate::fxt::read::current::{Current, StringForm};
use crate::{Arguments, Categories, Detailed, Event, EventKind, NoArguments, TrackId};

/// An event without its texts and arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepared {
    pub(super) time: i64,
    pub(super) track: TrackId,
    pub(super) kind: EventKind,
    pub(super) name: StringForm,
    pub(super) category: StringForm,
    /// Whether a log message belongs to it.
    pub(super) is_log: bool,
}

impl Default for Prepared {
    fn default() -> Self {
        let (name, category) = (StringForm::Empty, StringForm::Empty);
        Self { time: 0, track: TrackId(0), kind: EventKind::Instant, name, category, is_log: false }
    }
}

impl Prepared {
    /// The event. `details` are those of an instant with a log message.
    #[inline]
    pub(super) fn event<'a, R: Read>(&self, current: &'a Current<R>, details: &'a dyn Detailed) -> Event<'a> {
        // The argument of a counter is its value.
        let has_args = !matches!(self.kind, EventKind::Counter(_)) && !Arguments::is_empty(current);
        Event {
            name: current.text(self.name, |event| event.name),
            categories: match self.category {
                StringForm::Empty => Categories::None,
                form => Categories::One(current.text(form, |event| event.category)),
            },
            args: if has_args { current } else { &NoArguments },
            details: self.is_log.then_some(details),
            ..Event::new(self.time, self.track, self.kind)
        }
    }
}
