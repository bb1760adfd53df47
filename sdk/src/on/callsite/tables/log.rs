//! The callsites of messages of the `log` crate.

use std::time::Instant;

use crate::on::base::lock::{Fixed, Map, RwLock, WriteGuard};
use crate::on::callsite::Callsite;

/// By target, file and line, the file by its address.
pub(crate) type Sites = Map<(&'static str, usize, u32), &'static Callsite>;

pub(crate) static SITES: RwLock<Sites> = RwLock::new(Map::with_hasher(Fixed::new()));

/// The callsites, held for a fork.
pub(crate) type Held = WriteGuard<'static, Sites>;

pub(crate) fn hold(until: Instant) -> Option<Held> {
    SITES.try_write_until(until)
}
