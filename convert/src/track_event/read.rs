//! Packets to items.

use std::io::Read;

use hairline_formats::{DecodeError, track_event};

use crate::{Context, Item, Report};

/// Reads Perfetto's TracePackets.
#[derive(Debug)]
pub struct Reader<R> {
    packets: track_event::Reader<R>,
    report: Report,
    position: u64,
}

impl<R: Read> Reader<R> {
    /// Reads from `input`, which needs no buffer.
    pub fn new(input: R) -> Self {
        Self { packets: track_event::Reader::new(input), report: Report::default(), position: 0 }
    }
}

impl<R: Read> crate::Reader for Reader<R> {
    fn next<'s>(&'s mut self, _context: &'s mut Context) -> Result<Option<Item<'s>>, DecodeError> {
        while let Some((offset, _)) = self.packets.next()? {
            self.position = offset;
        }
        Ok(None)
    }

    fn report(&self) -> &Report {
        &self.report
    }

    fn position(&self) -> u64 {
        self.position
    }
}
