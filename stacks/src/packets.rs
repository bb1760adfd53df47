//! Samples as packets.

use std::sync::Arc;

use hairline_formats::track_event::{
    Frame as FramePart, InternedStack, Mapping as MappingPart, PerfSample, SampledBy, SequenceId,
    interned_stacks, perf_sample, start_of_samples,
};

use crate::file::ProgramFile;
use crate::table::Table;

/// The entries of a packet, which has then rarely more than a blob has room for: a stack takes up to 1 KiB.
const ENTRIES_OF_A_PACKET: usize = 24;

/// The packets of a blob, or of a packet with hidden ones: so that each can be read on its own.
const PIECE_BYTES: usize = 24 << 10;

/// The packets of one sequence.
#[derive(Debug)]
pub(crate) struct Packets {
    sequence: SequenceId,
    by: SampledBy,
    interned: Interned,
    has_started: bool,
}

/// What has been written of the tables: the numbers below these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interned {
    pub(crate) files: usize,
    pub(crate) mappings: usize,
    pub(crate) frames: usize,
    pub(crate) stacks: u32,
}

impl Packets {
    pub(crate) fn new(sequence: SequenceId, by: SampledBy) -> Self {
        Self { sequence, by, interned: Interned::default(), has_started: false }
    }

    /// Continues a sequence that has these items of equal tables.
    pub(crate) fn continued(sequence: SequenceId, by: SampledBy, interned: Interned) -> Self {
        Self { interned, has_started: true, ..Self::new(sequence, by) }
    }

    pub(crate) fn interned(&self) -> Interned {
        self.interned
    }

    /// Sets what the samples are taken at, before the first one.
    pub(crate) fn set_by(&mut self, by: SampledBy) {
        self.by = by;
    }

    pub(crate) fn by(&self) -> SampledBy {
        self.by
    }

    pub(crate) fn sequence(&self) -> SequenceId {
        self.sequence
    }

    /// Writes a sample, after what is new in the tables.
    pub(crate) fn sample(
        &mut self,
        out: &mut Vec<u8>,
        files: &[Arc<ProgramFile>],
        table: &Table,
        time: u64,
        sample: &PerfSample,
    ) {
        self.intern(out, files, table);
        perf_sample(out, self.sequence, time, sample);
    }

    /// Writes what is new in the tables.
    pub(crate) fn intern(&mut self, out: &mut Vec<u8>, files: &[Arc<ProgramFile>], table: &Table) {
        if self.interned.stacks == table.stacks.end() && self.has_started {
            return;
        }
        let frames_of = |stack: &[u32]| stack.iter().map(|frame| iid(*frame)).collect();
        let stacks: Vec<(u32, Vec<u64>)> = table
            .stacks
            .since(self.interned.stacks)
            .map(|(number, stack)| (number, frames_of(stack)))
            .collect();
        let paths: Vec<[u64; 1]> =
            table.mappings.values()[self.interned.mappings..].iter().map(|m| [iid(m.file)]).collect();
        let mut entries = Vec::new();
        for (number, file) in (0..).zip(files).skip(self.interned.files) {
            entries.push(InternedStack::Path { iid: iid(number), path: &file.path });
            if !file.build_id.is_empty() {
                entries.push(InternedStack::BuildId { iid: iid(number), bytes: &file.build_id });
            }
        }
        for ((number, of), path) in
            (0..).zip(table.mappings.values()).skip(self.interned.mappings).zip(&paths)
        {
            let has_build_id = files.get(of.file as usize).is_some_and(|file| !file.build_id.is_empty());
            let mapping = MappingPart {
                build_id: if has_build_id { iid(of.file) } else { 0 },
                path: &path[..],
                start: of.start,
                end: of.end,
                offset: of.offset,
                load_bias: of.start.wrapping_sub(of.offset).wrapping_sub(of.bias),
            };
            entries.push(InternedStack::Mapping { iid: iid(number), mapping });
        }
        for (number, of) in (0..).zip(table.frames.values()).skip(self.interned.frames) {
            let frame = FramePart { function: 0, mapping: iid(of.mapping), rel_pc: of.rel_pc };
            entries.push(InternedStack::Frame { iid: iid(number), frame });
        }
        for (number, frames) in &stacks {
            entries.push(InternedStack::Callstack { iid: iid(*number), frames });
        }
        if !self.has_started {
            start_of_samples(out, self.sequence, self.by);
        }
        for entries in entries.chunks(ENTRIES_OF_A_PACKET) {
            interned_stacks(out, self.sequence, false, entries);
        }
        self.has_started = true;
        self.interned = Interned {
            files: files.len(),
            mappings: table.mappings.values().len(),
            frames: table.frames.values().len(),
            stacks: table.stacks.end(),
        };
    }
}

/// The id of the item with this number: ids begin with 1.
pub(crate) fn iid(number: u32) -> u64 {
    u64::from(number) + 1
}

/// Cuts packets into pieces of whole ones.
pub(crate) fn pieces(packets: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = packets;
    std::iter::from_fn(move || {
        let mut end = 0;
        while let Some(size) = packet_size(&rest[end..]) {
            if end > 0 && end + size > PIECE_BYTES {
                break;
            }
            end += size;
        }
        let piece;
        (piece, rest) = rest.split_at(end);
        (!piece.is_empty()).then_some(piece)
    })
}

/// The size of the first packet, with its tag and its length.
fn packet_size(packets: &[u8]) -> Option<usize> {
    let (_, packet) = packets.split_first()?;
    let digits = packet.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let length =
        (0..).zip(&packet[..digits]).fold(0, |sum, (i, byte)| sum | usize::from(byte & 0x7f) << (7 * i));
    Some((1 + digits + length).min(packets.len()))
}

#[cfg(test)]
mod tests {
    use hairline_formats::proto::put_bytes;

    use super::*;

    #[test]
    fn pieces_hold_whole_packets() {
        let mut packets = Vec::new();
        for size in [1, 10, 200, PIECE_BYTES - 100, 300, 3 * PIECE_BYTES, 5] {
            put_bytes(&mut packets, 1, &vec![7; size]);
        }
        let sizes: Vec<usize> = pieces(&packets).map(<[u8]>::len).collect();
        assert_eq!(sizes.iter().sum::<usize>(), packets.len());
        assert_eq!(sizes.len(), 5, "{sizes:?}");
        assert_eq!(pieces(&[]).count(), 0);
    }
}
