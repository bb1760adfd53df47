//! The report to stderr of a session that the environment started.

use std::fmt;

use crate::on::base::stderr::{self, Level};
use crate::on::session::shared::Shared;
use crate::summary::Summary;

/// A number with a comma before each group of three digits.
struct Thousands(u64);

impl fmt::Display for Thousands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 1000 {
            return write!(f, "{}", self.0);
        }
        write!(f, "{},{:03}", Self(self.0 / 1000), self.0 % 1000)
    }
}

impl Shared {
    /// Writes the session's summary to stderr, if the environment started the session and sets
    /// `HAIRLINE_LOG=info`. Remarks on the filter, and on scopes that
    /// ended out of order, are written unless it sets `HAIRLINE_LOG=off`.
    pub(crate) fn report(&self, summary: &Summary) {
        if !self.settings.requester.reads_stderr() {
            return;
        }
        let path = summary.path.as_deref().unwrap_or("to the tracing service".as_ref()).display();
        let Summary { records, bytes, lost, .. } = summary;
        stderr::write(
            Level::Info,
            format_args!(
                "{path}: {} records, {} bytes, {} events lost{}",
                Thousands(*records),
                Thousands(*bytes),
                Thousands(lost.total()),
                if lost.total() > 0 { " (a scope counts once)" } else { "" },
            ),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_have_commas() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (15_063_372, "15,063,372"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(Thousands(number).to_string(), text);
        }
    }
}
