//! A counter whose name is made at run time.

use std::fmt::Display;
use std::sync::OnceLock;

use crate::on::callsite::{Callsite, registry};
use crate::on::event::argument::number;
use crate::on::event::text::Text;
use crate::on::event::track::Track;
use crate::on::lifecycle::entry;
use crate::on::thread::events;
use crate::vocabulary::Unit;

/// A counter in the category `lock`, on a track of its own: another one with the same name is not mixed with
/// it.
#[derive(Debug)]
pub struct OwnCounter {
    /// All that have the same name have the same callsite.
    of: OnceLock<(&'static Callsite, Track)>,
}

impl OwnCounter {
    /// Creates it, without a name.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { of: OnceLock::new() }
    }

    /// Records its value, a number of `unit`. The name is always the same.
    pub fn record(&self, name: impl Display, unit: &'static str, value: usize) {
        let (callsite, track) = self.of.get_or_init(|| {
            let name = Text::display(&format_args!("{name}"));
            let unit = Unit::Named(unit);
            (
                registry::counter_of("lock", name.as_str(), unit, entry::first_hit),
                Track::new(name.as_str().to_owned()),
            )
        });
        if let Some(epoch) = callsite.registered_epoch() {
            events::counter_on(callsite, epoch, &number(value), events::counter_track(track));
        }
    }
}
