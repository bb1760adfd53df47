//! The report to stderr of a session that the environment started.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::on::base::stderr::{self, Level};
use crate::summary::Summary;

/// Whether the environment started the running session.
static IS_FROM_ENVIRONMENT: AtomicBool = AtomicBool::new(false);

/// Writes the session's summary to stderr, if the environment started the session and sets
/// `HAIRLINE_LOG=info`.
pub(crate) fn report(summary: &Summary) {
    if IS_FROM_ENVIRONMENT.load(Ordering::Relaxed) {
        let path = summary.path.as_deref().unwrap_or("".as_ref()).display();
        let Summary { records, bytes, lost, .. } = summary;
        stderr::write(
            Level::Info,
            format_args!("{path}: {records} records, {bytes} bytes, {} events lost", lost.total()),
        );
        summary.notes.iter().for_each(|note| stderr::write(Level::Info, format_args!("{note}")));
    }
}

/// Marks the running session as started by the environment.
pub(crate) fn set_from_environment() {
    IS_FROM_ENVIRONMENT.store(true, Ordering::Relaxed);
    stderr::write(Level::Info, format_args!("tracing"));
}
