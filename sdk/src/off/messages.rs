//! Messages of the `log` crate, which are not recorded.

use log::{LevelFilter, Metadata, Record};

pub(crate) fn would_record(_: &Metadata<'_>) -> bool {
    false
}

pub(crate) fn record(_: &Record<'_>) {}

/// Does nothing: no message would be recorded anyway.
pub(crate) fn report_other_logger() {}

/// Sets the maximum level to that of the other logger.
pub(crate) fn keep_max_level(other: LevelFilter) {
    log::set_max_level(other);
}
