//! What a form makes of a trace.

use std::io::{self, Write};

use hairline_convert::{Report, SampleKind, sampled::Samples};

use crate::folded::without_symbols;
use crate::text::complain;
use crate::trace::ReadSummary;

/// A profile, complete in memory.
pub(super) trait Profile {
    fn write(&self, output: &mut dyn Write) -> io::Result<()>;
}

/// What a form made of a trace.
pub(super) struct Made {
    pub(super) summary: ReadSummary,
    pub(super) profile: Box<dyn Profile>,
    /// What the form cannot express.
    pub(super) report: Report,
}

/// Sorts the samples, and counts what a profile does not have of them.
pub(super) fn settle(samples: &mut Samples, report: &mut Report) {
    samples.finish();
    without_symbols(samples).iter().for_each(complain);
    report.add_many("samples left out, because there are too many", samples.left_out);
    let mut asleep = 0;
    samples.each(SampleKind::OffCpu, &mut |_, _, _| asleep += 1);
    report.add_many("stacks of threads that left their processors left out", asleep);
}
