//! What is said of a session that the environment asked for.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::on::base::stderr::{self, Level};
use crate::summary::Summary;

/// Set when the running session came from the environment.
static IS_ENVIRONMENTS: AtomicBool = AtomicBool::new(false);

/// Tells how the session ended, if `HAIRLINE_LOG=info` asks for it.
pub(crate) fn report(summary: &Summary) {
    if IS_ENVIRONMENTS.load(Ordering::Relaxed) {
        let path = summary.path.as_deref().unwrap_or("".as_ref()).display();
        let Summary { records, bytes, lost, .. } = summary;
        stderr::write(
            Level::Info,
            format_args!("{path}: {records} records, {bytes} bytes, {} events lost", lost.total()),
        );
        summary.notes.iter().for_each(|note| stderr::write(Level::Info, format_args!("{note}")));
    }
}

/// The running session came from the environment.
pub(crate) fn set_environments() {
    IS_ENVIRONMENTS.store(true, Ordering::Relaxed);
    stderr::write(Level::Info, format_args!("tracing"));
}
