//! Joins traces of one format byte by byte, without the model, so nothing is lost.
//!
//! ```text
//! part of process 1   [head][records of its threads][tail]   sequences 1 2 3   tracks a b
//! part of process 2   [head][records of its threads][tail]   sequences 1 2     tracks a c   (forked)
//!
//! the whole           [part 1 ....................][part 2 ....................][losses of all parts]
//!                      sequences 1 2 3, tracks a b   sequences 4 5, tracks a' c'
//! ```
//!
//! The parts must come from one run of a program and its children, recorded by the SDK with one clock. Ids
//! that each part assigns itself are changed: sequences, tracks, FXT's providers and async intervals. Flow
//! ids stay, because they connect processes. For other traces use [`TraceReader`](crate::TraceReader) and
//! [`TraceWriter`](crate::TraceWriter).

mod fxt;
mod packets;
mod renumber;
mod salt;
mod totals;

pub use totals::Totals;

use std::io::{self, Read, Write};

use crate::{Error, TraceFormat};

/// Joins parts to one trace. Stores one record, the numbers of sequences, threads and providers, and some
/// bytes for each part.
///
/// ```
/// use hairline_convert::TraceFormat;
/// use hairline_convert::splice::Splice;
/// use hairline_formats::track_event::{Event, EventType, SequenceId, event};
///
/// let mut part = Vec::new();
/// event(&mut part, &Event::new(SequenceId(1), EventType::Instant, 1_000));
/// let mut splice = Splice::new(TraceFormat::TrackEvent, Vec::new()).unwrap();
/// splice.add(&part[..])?;
/// splice.add(&part[..])?; // the same sequence number: it becomes another one
/// let (trace, totals) = splice.finish()?;
/// assert_eq!((totals.events, totals.bytes), (2, trace.len() as u64));
/// assert!(Splice::new(TraceFormat::Json, Vec::new()).is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Splice<W> {
    out: CountingWriter<W>,
    parts: Parts,
    totals: Totals,
}

/// The state that is kept from part to part.
#[derive(Debug)]
enum Parts {
    Packets(packets::Parts),
    Fxt(fxt::Parts),
}

impl<W: Write> Splice<W> {
    /// Creates a splice of parts in one format. Returns `None` for JSON, which cannot be spliced.
    pub fn new(format: TraceFormat, out: W) -> Option<Self> {
        let parts = match format {
            TraceFormat::TrackEvent => Parts::Packets(packets::Parts::default()),
            TraceFormat::Fxt => Parts::Fxt(fxt::Parts::default()),
            TraceFormat::Json => return None,
        };
        Some(Self { out: CountingWriter { out, bytes: 0 }, parts, totals: Totals::default() })
    }

    /// Adds a part. An empty part adds nothing.
    ///
    /// # Errors
    /// [`Error::Decode`] if the part cannot be read to its end; other parts can still be added.
    /// [`Error::Output`] if the output cannot be written.
    pub fn add(&mut self, part: impl Read) -> Result<(), Error> {
        let Self { out, parts, totals } = self;
        match parts {
            Parts::Packets(parts) => parts.add(part, out, totals),
            Parts::Fxt(parts) => parts.add(part, out, totals),
        }
    }

    /// Writes the end of the trace, and returns the output.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
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

/// An output that counts its bytes.
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
