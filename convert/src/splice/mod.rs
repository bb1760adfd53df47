//! Traces of one format that belong together become one, byte by byte: no model, nothing that could be lost on the way.
//!
//! ```text
//! part of process 1   [head][records of its threads][tail]   sequences 1 2 3   tracks a b
//! part of process 2   [head][records of its threads][tail]   sequences 1 2     tracks a c    (forked: some numbers are its parent's)
//!
//! the whole           [part 1 ....................][part 2 ....................][what was lost, of all]
//!                      sequences 1 2 3, tracks a b   sequences 4 5, tracks a' c'
//! ```
//!
//! For parts that one run of a program and its children left: their clock is the same, and their numbers are the SDK's. What
//! parts number each for itself is numbered anew here: sequences, tracks, FXT's providers and async intervals. Flows keep their
//! numbers, by which they go from process to process. Foreign traces go through [`TraceReader`](crate::TraceReader) and
//! [`TraceWriter`](crate::TraceWriter), which know what the numbers mean.

mod fxt;
mod packets;
mod renumber;
mod salt;
mod totals;

pub use totals::Totals;

use std::io::{self, Read, Write};

use crate::error::Error;
use crate::format::TraceFormat;

/// Writes parts one after the other as one trace. Needs memory for a record, the numbers of sequences, threads and providers, and
/// some bytes a part.
#[derive(Debug)]
pub struct Splice<W> {
    out: CountingWriter<W>,
    parts: Parts,
    totals: Totals,
}

/// What is kept from part to part.
#[derive(Debug)]
enum Parts {
    Packets(packets::Parts),
    Fxt(fxt::Parts),
}

impl<W: Write> Splice<W> {
    /// Parts of this format. None: there is no splicing of such.
    pub fn new(format: TraceFormat, out: W) -> Option<Self> {
        let parts = match format {
            TraceFormat::TrackEvent => Parts::Packets(packets::Parts::default()),
            TraceFormat::Fxt => Parts::Fxt(fxt::Parts::default()),
            TraceFormat::Json => return None,
        };
        Some(Self { out: CountingWriter { out, bytes: 0 }, parts, totals: Totals::default() })
    }

    /// Adds a part. An empty one adds nothing.
    ///
    /// # Errors
    /// When it cannot be read to its end, or the output cannot be written. After the first of these other parts can be added.
    pub fn add(&mut self, part: impl Read) -> Result<(), Error> {
        let Self { out, parts, totals } = self;
        match parts {
            Parts::Packets(parts) => parts.add(part, out, totals),
            Parts::Fxt(parts) => parts.add(part, out, totals),
        }
    }

    /// Writes what stands at the end of all, and gives the output back.
    ///
    /// # Errors
    /// Those of the output.
    pub fn finish(self) -> io::Result<(W, Totals)> {
        let Self { mut out, parts, totals } = self;
        match parts {
            Parts::Packets(parts) => parts.finish(&mut out)?,
            Parts::Fxt(_) => {}
        }
        out.flush()?;
        Ok((out.out, Totals { bytes: out.bytes, ..totals }))
    }
}

/// An output that knows how much it took.
#[derive(Debug)]
struct CountingWriter<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.bytes += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
