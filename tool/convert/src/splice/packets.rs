//! Splices TrackEvent packets.

use std::collections::HashMap;
use std::io::{Read, Write};

use flate2::write::ZlibEncoder;
use hairline_formats::DecodeError;
use hairline_formats::track_event::fields::clock;
use hairline_formats::track_event::{
    self as te, Compression, MAX_COMPRESSED, Packet, PacketData, PacketReader, SequenceId, Thread, TraceStats,
};

use crate::Error;
use crate::splice::renumber::Renumber;
use crate::splice::salt::Salt;
use crate::splice::totals::Totals;
use crate::track_event::Inflated;

/// The state that is kept from part to part.
#[derive(Debug, Default)]
pub(super) struct Parts {
    count: u64,
    sequences: Sequences,
    renumber: Renumber,
    /// The parts whose UUID and whose readings of builtin clocks the whole trace has: the first ones that
    /// have any. A part that another program adds at the front, such as the names of threads, has none.
    uuid_of: Option<u64>,
    clocks_of: Option<u64>,
    /// The last statistics of each part.
    stats: Vec<TraceStats>,
    out: Vec<u8>,
    block: Vec<u8>,
}

/// The new ids of a part's sequences.
#[derive(Debug, Default)]
struct Sequences {
    /// The number of sequences in all parts.
    count: u32,
    of_part: HashMap<SequenceId, SequenceId>,
    /// The old and the new id of the latest sequence.
    last: (SequenceId, SequenceId),
}

impl Sequences {
    fn next_part(&mut self) {
        self.of_part.clear();
        self.last = (SequenceId(0), SequenceId(0));
    }

    fn of(&mut self, old: SequenceId) -> SequenceId {
        if self.last.0 != old {
            let count = &mut self.count;
            let new = *self.of_part.entry(old).or_insert_with(|| {
                // Beyond 2^32 - 1 sequences, all further ones share an id.
                *count = count.saturating_add(1);
                SequenceId(*count)
            });
            self.last = (old, new);
        }
        self.last.1
    }
}

/// The part that is being added.
#[derive(Debug)]
struct Part {
    number: u64,
    salt: Salt,
    stats: Option<TraceStats>,
}

impl Parts {
    pub(super) fn add(
        &mut self,
        part: impl Read,
        out: &mut impl Write,
        totals: &mut Totals,
    ) -> Result<(), Error> {
        self.sequences.next_part();
        let mut part_state = Part { number: self.count, salt: Salt::of(self.count), stats: None };
        let mut reader = PacketReader::new(part);
        let mut error: Option<DecodeError> = None;
        let mut is_empty = true;
        let end = loop {
            match reader.next() {
                Ok(Some((_, packet))) => {
                    is_empty = false;
                    totals.damaged += u64::from(error.take().is_some());
                    self.out.clear();
                    match self.put(&packet, &mut part_state, totals) {
                        Ok(()) => {}
                        Err(_) => totals.damaged += 1,
                    }
                    if let Err(e) = out.write_all(&self.out) {
                        break Err(Error::Output(e));
                    }
                }
                // An error at the end of the input is an error of the part. An error with packets after it is
                // an error of one packet.
                Ok(None) => break error.map_or(Ok(()), |e| Err(e.into())),
                Err(e) if e.is_truncated() => break Err(e.into()),
                Err(e) => totals.damaged += u64::from(error.replace(e).is_some()),
            }
        };
        self.count += u64::from(!is_empty);
        self.stats.extend(part_state.stats);
        end
    }

    /// Writes the spliced packet to `self.out`.
    fn put(&mut self, packet: &Packet<'_>, part: &mut Part, totals: &mut Totals) -> Result<(), DecodeError> {
        let Some(PacketData::Compressed { by, bytes, .. }) = packet.data else {
            return self.put_plain(packet, part, totals);
        };
        let whole = std::mem::take(&mut self.out);
        let inflated = Inflated::new(by, bytes);
        totals.damaged += u64::from(!inflated.is_read());
        let mut reader = PacketReader::new(inflated);
        let mut end = Ok(());
        loop {
            match reader.next() {
                // No writer compresses packets twice.
                Ok(Some((_, inner))) if !matches!(inner.data, Some(PacketData::Compressed { .. })) => {
                    end = end.and(self.put_plain(&inner, part, totals));
                }
                Ok(Some(_)) => totals.damaged += 1,
                Ok(None) => break,
                Err(e) => {
                    end = Err(e);
                    break;
                }
            }
        }
        self.block.clear();
        std::mem::swap(&mut self.block, &mut self.out);
        self.out = whole;
        match by {
            Compression::None => te::hidden_packets(&mut self.out, &self.block),
            Compression::Zlib | Compression::Zstd => put_compressed(&mut self.out, &self.block),
        }
        end
    }

    fn put_plain(
        &mut self,
        packet: &Packet<'_>,
        part: &mut Part,
        totals: &mut Totals,
    ) -> Result<(), DecodeError> {
        match &packet.data {
            Some(PacketData::Event(_)) => totals.events += 1,
            // The whole trace has one UUID.
            Some(PacketData::TraceUuid(_)) if is_of_other(&mut self.uuid_of, part) => return Ok(()),
            // All parts have the same clocks, and importers want their readings in order of time. Readings of
            // a sequence's own clock are kept.
            Some(PacketData::Clocks(readings))
                if all_builtin(readings.clone()) && is_of_other(&mut self.clocks_of, part) =>
            {
                return Ok(());
            }
            Some(PacketData::Stats(stats)) => {
                let before = part.stats.replace(*stats).map_or(0, |before| before.events_lost);
                totals.lost = totals.lost.saturating_sub(before).saturating_add(stats.events_lost);
                return Ok(()); // importers read the last statistics only
            }
            Some(PacketData::SessionEnd) => return Ok(()), // more follows, of the other parts
            Some(PacketData::Track(track)) => {
                let pid = |pid: Option<i32>| pid.map(|pid| u64::from(pid.cast_unsigned()));
                totals.pids.extend(track.process.as_ref().and_then(|process| pid(process.pid)));
                let thread = track.thread.as_ref();
                let thread = thread.and_then(|t| Some((pid(t.pid)?, t.tid?.cast_unsigned())));
                totals.threads.extend(thread);
            }
            Some(PacketData::Processes(tree)) => {
                let pids = tree.clone().filter_map(Result::ok).filter_map(|process| process.pid);
                totals.pids.extend(pids.map(|pid| u64::from(pid.cast_unsigned())));
                let ids =
                    |of: Thread<'_>| (u64::from(of.pid.cast_unsigned()), u64::from(of.tid.cast_unsigned()));
                totals.threads.extend(tree.threads().filter_map(Result::ok).map(ids));
            }
            _ => {}
        }
        let sequences = &mut self.sequences;
        self.renumber.put(&mut self.out, packet.bytes(), part.salt, |old| sequences.of(old))
    }

    /// Splices packets of the part `number` that are embedded in another format. Bytes that are no packets
    /// are copied.
    pub(super) fn put_embedded(
        &mut self,
        out: &mut Vec<u8>,
        bytes: &[u8],
        number: u64,
        salt: Salt,
        totals: &mut Totals,
    ) {
        let mut part = Part { number, salt, stats: None };
        let mut reader = PacketReader::new(bytes);
        self.out.clear();
        loop {
            match reader.next() {
                Ok(Some((_, packet))) if self.put(&packet, &mut part, totals).is_ok() => {}
                Ok(None) => return out.extend_from_slice(&self.out),
                Ok(Some(_)) | Err(_) => return out.extend_from_slice(bytes),
            }
        }
    }

    /// Starts the sequences of another part.
    pub(super) fn next_part(&mut self) {
        self.sequences.next_part();
    }

    /// Writes the statistics of all parts.
    pub(super) fn finish(mut self, out: &mut impl Write) -> std::io::Result<()> {
        if self.stats.is_empty() {
            return Ok(());
        }
        self.sequences.next_part();
        self.out.clear();
        te::trace_stats_of_all(&mut self.out, self.sequences.of(SequenceId(1)), &self.stats);
        out.write_all(&self.out)
    }
}

/// Whether the whole trace has a fact of another part. It has that of the first part that asks.
fn is_of_other(owner: &mut Option<u64>, part: &Part) -> bool {
    *owner.get_or_insert(part.number) != part.number
}

fn all_builtin(mut readings: te::ClockReadings<'_>) -> bool {
    readings.all(|reading| reading.is_ok_and(|reading| reading.clock_id <= clock::BUILTIN_MAX))
}

/// Compresses packets. Packets that do not get smaller are copied.
fn put_compressed(out: &mut Vec<u8>, block: &[u8]) {
    let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    let deflated = encoder.write_all(block).and_then(|()| encoder.finish());
    match deflated {
        Ok(deflated) if deflated.len() < block.len().min(MAX_COMPRESSED) => {
            te::compressed_packets(out, &deflated);
        }
        _ => out.extend_from_slice(block),
    }
}
