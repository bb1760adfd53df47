//! The tables of callsites for those of `tracing`.

use std::time::Instant;

use tracing_core::Metadata;

use crate::on::base::lock::{Fixed, Grow, Map, RwLock, WriteGuard};
use crate::on::base::sets::Spread;
use crate::on::callsite::Callsite;

pub(crate) static SITES: RwLock<Sites> = RwLock::new(Sites {
    by_metadata: Map::with_hasher(Fixed::new()),
    by_callsite: Map::with_hasher(Fixed::new()),
});

pub(crate) struct Sites {
    /// Callsites by the address of their metadata, which is static.
    pub(crate) by_metadata: Map<u64, &'static Callsite, Spread>,
    pub(crate) by_callsite: Map<u64, &'static Metadata<'static>, Spread>,
}

impl Grow for Sites {
    fn with_room(entries: usize) -> Self {
        Self { by_metadata: Grow::with_room(entries), by_callsite: Grow::with_room(entries) }
    }

    fn entries(&self) -> usize {
        self.by_metadata.entries()
    }

    fn has_room(&self, more: usize) -> bool {
        self.by_metadata.has_room(more) && self.by_callsite.has_room(more)
    }

    fn take_over(&mut self, smaller: &mut Self) {
        self.by_metadata.take_over(&mut smaller.by_metadata);
        self.by_callsite.take_over(&mut smaller.by_callsite);
    }
}

/// The tables, locked for a fork.
pub(crate) type Held = WriteGuard<'static, Sites>;

/// Locks the tables for a fork; `None` if that is not possible until `until`.
pub(crate) fn hold(until: Instant) -> Option<Held> {
    SITES.try_write_until(until)
}
