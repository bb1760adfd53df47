//! The report to stderr of a session that the environment started.

use std::fmt;

use hairline_shm::{LOSS_REASONS, LossReason};

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
    /// `HAIRLINE_LOG=info`. Losses, and remarks on what had no effect, on scopes that ended out of order and on
    /// stacks that lack callers, are written unless it sets `HAIRLINE_LOG=off`.
    pub(crate) fn report(&self, summary: &Summary) {
        if !self.settings.requester.reads_stderr() {
            return;
        }
        let path = summary.path.as_deref().unwrap_or("to the tracing service".as_ref()).display();
        let Summary { records, bytes, lost, .. } = summary;
        stderr::write(
            Level::Info,
            format_args!(
                "{path}: {} records, {} bytes{}",
                Thousands(*records),
                Thousands(*bytes),
                if lost.total() == 0 { ", 0 events lost" } else { "" },
            ),
        );
        if let Some(losses) = self.losses(summary) {
            stderr::write(Level::Error, format_args!("{path}: {losses}"));
        }
        let (of_filter, of_order) = (self.filter_notes(), self.order_note());
        for note in &summary.notes {
            let others = [of_order.as_ref(), self.stacks_note.get()];
            let is_remark = of_filter.contains(note) || others.contains(&Some(note));
            let level = if is_remark { Level::Error } else { Level::Info };
            stderr::write(level, format_args!("{note}"));
        }
    }
}

impl Shared {
    /// Returns how many events were lost, why, and what helps, and how many records of other kinds; `None` if
    /// none was.
    fn losses(&self, summary: &Summary) -> Option<String> {
        let Summary { records, lost, .. } = summary;
        let no_events = [LossReason::Argument, LossReason::KernelRing];
        let reasons = LOSS_REASONS.into_iter().filter(|reason| !no_events.contains(reason));
        let reasons = reasons.map(|reason| (reason, self.lost_for(reason))).filter(|(_, count)| *count > 0);
        let reasons: Vec<String> =
            reasons.map(|(reason, count)| format!("{} {}", reason.as_str(), Thousands(count))).collect();
        let help = match lost.buffer_full {
            0 => "",
            _ if self.settings.patience.is_zero() => {
                "; a larger HAIRLINE_BUFFER, fewer HAIRLINE_CATEGORIES or HAIRLINE_OVERFLOW=block helps"
            }
            _ => "; a larger HAIRLINE_BUFFER or fewer HAIRLINE_CATEGORIES helps",
        };
        let events = lost.total().saturating_sub(lost.kernel_ring);
        let of_events = (events > 0).then(|| {
            format!(
                "{} events lost (a scope counts once), beside {} records: {}{help}",
                Thousands(events),
                Thousands(*records),
                reasons.join(", ")
            )
        });
        let of_rings = (lost.kernel_ring > 0).then(|| {
            format!(
                "{} samples, stacks of events or thread states lost, which came faster than they were read",
                Thousands(lost.kernel_ring)
            )
        });
        let both: Vec<String> = of_events.into_iter().chain(of_rings).collect();
        (!both.is_empty()).then(|| both.join("; "))
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
