//! How full something is that tasks wait for: the counter `depth: NAME` of a channel.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::on::bridges::locks::awaited::Awaited;
use crate::on::callsite::{Callsite, registry};
use crate::on::event::argument::number;
use crate::on::event::text::Text;
use crate::on::event::track::Track;
use crate::on::lifecycle::entry;
use crate::on::thread::events;
use crate::vocabulary::Unit;

/// The counters that may be at a time: a program may have a channel for each of its connections.
const MOST: usize = 1000;
static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// A counter in the category `lock`, on a track of its own: another one with the same name is not mixed with
/// it. Of more than 1,000 at a time, the later ones record nothing.
#[derive(Debug)]
pub struct DepthCounter {
    /// All that have the same name have the same callsite.
    of: OnceLock<(&'static Callsite, Track)>,
}

impl DepthCounter {
    /// Creates it, without a name.
    #[must_use]
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Self { of: OnceLock::new() }
    }

    /// Records the number of messages in a channel, always the same one. Returns whether it is recorded.
    pub fn record(&self, of: &Awaited, messages: usize) -> bool {
        if registry::active_epoch().is_none() {
            return false;
        }
        let known = self.of.get();
        let callsite = known.map_or_else(
            || {
                let name = Text::display(&format_args!("depth: {}", of.name()));
                registry::counter_of("lock", name.as_str(), Unit::Named("messages"), entry::first_hit)
            },
            |(callsite, _)| *callsite,
        );
        let Some(epoch) = callsite.registered_epoch() else { return false };
        if known.is_none() {
            if NUMBER.fetch_add(1, Ordering::Relaxed) >= MOST {
                NUMBER.fetch_sub(1, Ordering::Relaxed);
                return false;
            }
            // Not `get_or_init`: a child that is forked meanwhile would wait for ever.
            if self.of.set((callsite, Track::new(callsite.name()))).is_err() {
                NUMBER.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let Some((_, track)) = self.of.get() else { return false };
        events::counter_on(callsite, epoch, &number(messages), events::counter_track(track));
        true
    }
}

impl Drop for DepthCounter {
    fn drop(&mut self) {
        if self.of.get().is_some() {
            NUMBER.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
