//! Items to packets.

use std::io::{self, Write};

use crate::{Item, Report};

/// Writes Perfetto's TracePackets.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
    report: Report,
}

impl<W: Write> Writer<W> {
    /// Writes to `output`, which needs no buffer.
    pub fn new(output: W) -> Self {
        Self { output, report: Report::default() }
    }
}

impl<W: Write> crate::Writer for Writer<W> {
    fn write(&mut self, _item: &Item<'_>) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn report(&self) -> &Report {
        &self.report
    }
}
