//! The report to stderr of a session that the environment started.

use crate::on::base::stderr::{self, Level};
use crate::on::session::shared::Shared;
use crate::summary::Summary;

impl Shared {
    /// Writes the session's summary to stderr, if the environment started the session and sets
    /// `HAIRLINE_LOG=info`. Remarks on the filter, and on scopes that
    /// ended out of order, are written unless it sets `HAIRLINE_LOG=off`.
    pub(crate) fn report(&self, summary: &Summary) {
        if !self.settings.is_from_environment {
            return;
        }
        let path = summary.path.as_deref().unwrap_or("".as_ref()).display();
        let Summary { records, bytes, lost, .. } = summary;
        stderr::write(
            Level::Info,
            format_args!("{path}: {records} records, {bytes} bytes, {} events lost", lost.total()),
        );
        let (of_filter, of_order) = (self.filter_notes(), self.order_note());
        for note in &summary.notes {
            let level = if of_filter.contains(note) || of_order.as_ref() == Some(note) {
                Level::Error
            } else {
                Level::Info
            };
            stderr::write(level, format_args!("{note}"));
        }
    }
}
