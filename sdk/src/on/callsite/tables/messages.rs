//! The table of callsites for messages of the `log` crate.

use std::time::Instant;

use crate::on::base::lock::{Fixed, Map, RwLock, WriteGuard};
use crate::on::callsite::Callsite;

/// Callsites by category, file and line.
pub(crate) type Sites = Map<(&'static str, &'static str, u32), &'static Callsite>;

pub(crate) static SITES: RwLock<Sites> = RwLock::new(Map::with_hasher(Fixed::new()));

/// The table, locked for a fork.
pub(crate) type Held = WriteGuard<'static, Sites>;

/// Locks the table for a fork; `None` if that is not possible until `until`.
pub(crate) fn hold(until: Instant) -> Option<Held> {
    SITES.try_write_until(until)
}
