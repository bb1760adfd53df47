//! Reads a trace whose begins and ends are paired to slices.

use std::io;

use hairline_convert::slices::Slices;

use crate::trace::{ItemVisitor, ReadSummary, TraceArguments, unsorted};

/// A visitor that pairs begins with ends.
pub(crate) trait PairingVisitor: ItemVisitor {
    /// Ends the trace. Returns whether an event came too late to be put in order.
    fn finish(&mut self) -> io::Result<bool>;
}

/// Reads a trace. If an event came too late to be put in order, reads it once more, with sorted events.
/// `make` creates the visitor.
pub(crate) fn show_paired<V: PairingVisitor>(
    trace: &TraceArguments,
    make: impl Fn(Slices) -> V,
) -> Result<(ReadSummary, V), String> {
    let mut visitor = make(Slices::new());
    let summary = trace.show(false, &mut visitor)?;
    if !visitor.finish().map_err(unsorted)? {
        return Ok((summary, visitor));
    }
    let mut visitor = make(Slices::in_order(tempfile::tempfile));
    let summary = trace.show_again(&mut visitor)?;
    visitor.finish().map_err(unsorted)?;
    Ok((summary, visitor))
}
