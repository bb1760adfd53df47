//! Compresses the packets of a TrackEvent stream.

use std::io;
use std::io::{IoSlice, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use hairline_formats::track_event::{MAX_COMPRESSED, compressed_packets};

/// Bytes of packets that are compressed together. Half of [`MAX_COMPRESSED`], so that even a block that does
/// not shrink stays below that limit.
const BLOCK: usize = MAX_COMPRESSED / 2;

/// Compresses packets in blocks. Each block becomes one packet that needs no other packet to be read.
#[derive(Debug, Default)]
pub(crate) struct Compressor {
    block: Vec<u8>,
    deflated: Vec<u8>,
    out: Vec<u8>,
}

impl Compressor {
    /// Compresses all parts, each of which has whole packets. Returns the compressed packets.
    pub(crate) fn pack(&mut self, parts: &[IoSlice<'_>]) -> io::Result<&[u8]> {
        self.out.clear();
        for part in parts {
            let mut rest: &[u8] = part;
            while !rest.is_empty() {
                let (packet, after) = rest.split_at(packet_len(rest));
                if self.block.len() + packet.len() > BLOCK {
                    self.end_block()?;
                }
                self.block.extend_from_slice(packet);
                rest = after;
            }
        }
        self.end_block()?;
        Ok(&self.out)
    }

    fn end_block(&mut self) -> io::Result<()> {
        self.deflated.clear();
        let mut encoder = ZlibEncoder::new(&mut self.deflated, Compression::fast());
        encoder.write_all(&self.block)?;
        encoder.finish()?;
        // A block that does not shrink stays uncompressed, and so does a packet larger than a block.
        if self.deflated.len() < self.block.len() && self.block.len() <= BLOCK {
            compressed_packets(&mut self.out, &self.deflated);
        } else {
            self.out.extend_from_slice(&self.block);
        }
        self.block.clear();
        Ok(())
    }
}

/// Returns the length of the first packet in `bytes`: `0a LEN ...`. Returns the length of `bytes` if they
/// begin with no packet.
fn packet_len(bytes: &[u8]) -> usize {
    let mut len = 0_usize;
    for (n, byte) in bytes.iter().enumerate().skip(1).take(5) {
        len |= usize::from(byte & 0x7f) << (7 * (n - 1));
        if byte & 0x80 == 0 {
            return (n + 1 + len).min(bytes.len());
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// `count` packets of `len` bytes each.
    fn packets(count: usize, len: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for n in 0..count {
            hairline_formats::proto::put_bytes(&mut out, 1, &vec![n as u8; len]);
        }
        out
    }

    /// Decompresses the stream. Returns its bytes and the size of the largest packet of the compressed
    /// stream.
    fn unpack(mut packed: &[u8]) -> (Vec<u8>, usize) {
        let (mut out, mut largest) = (Vec::new(), 0);
        while !packed.is_empty() {
            let (packet, rest) = packed.split_at(packet_len(packed));
            packed = rest;
            largest = largest.max(packet.len());
            let fields = hairline_formats::proto::Fields::new(packet, 0).next().unwrap().unwrap();
            let hairline_formats::proto::FieldValue::Bytes { bytes, .. } = fields.value else { panic!() };
            let inner = hairline_formats::proto::Fields::new(bytes, 0).next();
            match inner {
                Some(Ok(field)) if field.number == 50 => {
                    let hairline_formats::proto::FieldValue::Bytes { bytes, .. } = field.value else {
                        panic!()
                    };
                    flate2::read::ZlibDecoder::new(bytes).read_to_end(&mut out).unwrap();
                }
                _ => out.extend_from_slice(packet),
            }
        }
        (out, largest)
    }

    #[test]
    fn decompression_returns_the_same_packets_whatever_their_sizes() {
        for (count, len) in
            [(0, 0), (1, 0), (1, 10), (1000, 40), (40, 16_000), (3, BLOCK - 10), (2, 3 * BLOCK)]
        {
            let plain = packets(count, len);
            // In two parts, with the cut between two packets.
            let first: usize = (0..count / 2).fold(0, |at, _| at + packet_len(&plain[at..]));
            let (head, tail) = plain.split_at(first);
            let mut compressor = Compressor::default();
            let packed = compressor.pack(&[IoSlice::new(head), IoSlice::new(tail)]).unwrap();
            let (unpacked, largest) = unpack(packed);
            assert!(unpacked == plain, "{count} x {len}");
            assert!(largest < MAX_COMPRESSED || len > BLOCK, "{count} x {len}: {largest}");
        }
    }
}
