//! Records that name their sequence and their number, so that the output can be checked byte by byte.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use hairline_shm::{Region, WriteChunk};

use crate::claim;

/// A chunk writer of framed records. It writes without a pause, and waits while the ring is full.
///
/// ```text
/// context: C sequence:u32          record: R sequence:u32 number:u32 len:u16 bytes
/// ```
pub(crate) struct ChunkWriter {
    region: Arc<Region>,
    sequence: u32,
    index: u32,
    chunk: Option<WriteChunk>,
}

impl ChunkWriter {
    pub(crate) fn new(region: &Arc<Region>) -> Self {
        Self { region: Arc::clone(region), sequence: region.new_sequence(), index: 0, chunk: None }
    }

    pub(crate) fn write(&mut self, number: u32, len: u16) {
        let mut record = vec![b'R'];
        record.extend_from_slice(&self.sequence.to_le_bytes());
        record.extend_from_slice(&number.to_le_bytes());
        record.extend_from_slice(&len.to_le_bytes());
        record.extend((0..len).map(|i| filling(self.sequence, number, i)));
        while !self.chunk.as_mut().is_some_and(|chunk| chunk.append(&record, 1)) {
            self.chunk = None; // gives the full chunk back before it claims another one
            let mut context = vec![b'C'];
            context.extend_from_slice(&self.sequence.to_le_bytes());
            self.chunk = claim(&self.region, self.sequence, self.index, &context);
            match self.chunk {
                Some(_) => self.index += 1,
                None => thread::yield_now(),
            }
        }
    }

    pub(crate) fn finish(self) {
        if let Some(chunk) = self.chunk {
            chunk.finish_sequence();
        }
    }
}

fn filling(sequence: u32, number: u32, i: u16) -> u8 {
    sequence.wrapping_mul(31).wrapping_add(number).wrapping_add(u32::from(i)).to_le_bytes()[0]
}

/// Checks the output of `ChunkWriter`s: each record is whole, after its own context, in order, and there
/// once; a context is only at a change of sequence. Returns the number of records of each sequence.
pub(crate) fn read_back(mut bytes: &[u8]) -> BTreeMap<u32, u32> {
    fn u32_at(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }
    let mut records = BTreeMap::new();
    let mut speaking = None;
    while !bytes.is_empty() {
        let sequence = u32_at(bytes, 1);
        if bytes[0] == b'C' {
            assert_ne!(speaking, Some(sequence), "a context without a change of sequence");
            speaking = Some(sequence);
            bytes = &bytes[5..];
            assert_eq!(bytes[0], b'R', "a context with no record after it");
            continue;
        }
        assert_eq!(bytes[0], b'R');
        assert_eq!(speaking, Some(sequence), "a record under another's context");
        let number = u32_at(bytes, 5);
        let next = records.entry(sequence).or_insert(0);
        assert_eq!(number, *next, "a record out of order in sequence {sequence}");
        *next += 1;
        let len = u16::from_le_bytes([bytes[9], bytes[10]]);
        let filled = bytes[11..11 + usize::from(len)].iter().enumerate();
        for (i, &byte) in filled {
            assert_eq!(
                byte,
                filling(sequence, number, u16::try_from(i).unwrap()),
                "a byte of another record"
            );
        }
        bytes = &bytes[11 + usize::from(len)..];
    }
    records
}
