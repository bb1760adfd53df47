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

#[cfg(test)]
mod tests {
    use hairline_formats::fxt;
    use hairline_formats::track_event::{self as te, SequenceId, fields::clock};

    use super::*;
    use crate::{Context, Item, open};

    const SEQUENCE: SequenceId = SequenceId(1);

    /// A part with an event, and with the facts that the whole trace has once: a UUID, and readings of clocks.
    fn part(format: TraceFormat, uuid: Option<u128>, readings: &[[(u32, u64); 2]]) -> Vec<u8> {
        let mut packets = Vec::new();
        uuid.iter().for_each(|uuid| te::trace_uuid(&mut packets, SEQUENCE, *uuid));
        readings.iter().for_each(|clocks| te::clock_snapshot(&mut packets, SEQUENCE, clocks));
        let mut part = Vec::new();
        if format == TraceFormat::Fxt {
            fxt::magic(&mut part);
            fxt::initialization(&mut part, 1_000_000_000);
            fxt::blob(&mut part, fxt::StringRef::Empty, fxt::BLOB_PERFETTO, &packets);
        } else {
            part = packets;
            te::event(&mut part, &te::Event::new(SEQUENCE, te::EventType::Instant, 1_000));
        }
        part
    }

    fn readings(realtime: u64) -> [(u32, u64); 2] {
        [(clock::BOOTTIME, 1_000), (clock::REALTIME, realtime)]
    }

    /// The UUID of a trace, and the readings of the clock of the day.
    fn facts(trace: &[u8]) -> (Vec<u128>, Vec<u64>) {
        let mut reader = open(std::io::Cursor::new(trace.to_vec()), None).expect("a trace");
        let mut context = Context::new();
        let (mut uuids, mut times) = (Vec::new(), Vec::new());
        while let Some(item) = reader.next(&mut context).expect("items") {
            if let Item::Trace(about) = item {
                uuids.extend(about.uuid);
                let of_day = about.clocks.iter().filter(|reading| reading.id == clock::REALTIME);
                times.extend(of_day.map(|reading| reading.time));
            }
        }
        (uuids, times)
    }

    #[test]
    fn the_uuid_and_the_clocks_are_those_of_the_first_part_that_has_some() {
        for format in [TraceFormat::TrackEvent, TraceFormat::Fxt] {
            let parts = [
                part(format, None, &[]),
                part(format, Some(7), &[]),
                part(format, None, &[readings(50), readings(60)]),
                part(format, Some(8), &[readings(70)]),
            ];
            let mut splice = Splice::new(format, Vec::new()).expect("a format");
            parts.iter().for_each(|part| splice.add(&part[..]).expect("added"));
            let (whole, totals) = splice.finish().expect("written");
            assert_eq!(totals.damaged, 0);
            assert_eq!(facts(&whole), (vec![7], vec![50, 60]), "{format:?}");
        }
    }
}
