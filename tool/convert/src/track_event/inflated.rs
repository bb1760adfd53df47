//! The content of compressed and of hidden packets.
//!
//! A writer collects some 256 KiB of packets before it compresses them. Zlib makes them a thousand times
//! smaller at most, so without a limit a packet of 1 MB could have 1 GB of content; zstd has no such factor.

use std::io::{self, ErrorKind, Read};

use flate2::read::ZlibDecoder;
use hairline_formats::track_event::{Compression, MAX_PACKET};

#[cfg(feature = "unpack")]
use crate::packed::Frames;

/// The content of a compressed packet, up to [`MAX_PACKET`].
#[derive(Debug)]
pub(crate) struct Inflated<R> {
    decoder: Decoder<R>,
    /// The bytes that may still follow.
    left: usize,
}

enum Decoder<R> {
    Zlib(ZlibDecoder<R>),
    #[cfg(feature = "unpack")]
    Zstd(Box<Frames<R>>),
    Plain(R),
    /// Reads nothing.
    #[cfg(not(feature = "unpack"))]
    None,
}

/// Counted where this crate is built without zstd.
pub(crate) const NOT_UNPACKED: &str = "packets compressed with zstd, left out (feature `unpack`)";

impl<R: Read> Inflated<R> {
    pub(crate) fn new(by: Compression, compressed: R) -> Self {
        let decoder = match by {
            Compression::Zlib => Decoder::Zlib(ZlibDecoder::new(compressed)),
            #[cfg(feature = "unpack")]
            Compression::Zstd => Decoder::Zstd(Box::new(Frames::new(compressed, MAX_PACKET as u64))),
            #[cfg(not(feature = "unpack"))]
            Compression::Zstd => Decoder::None,
            Compression::None => Decoder::Plain(compressed),
        };
        Self { decoder, left: MAX_PACKET }
    }

    /// Whether the content is read.
    pub(crate) fn is_read(&self) -> bool {
        matches!(self.decoder, Decoder::Zlib(_) | Decoder::Plain(_)) || cfg!(feature = "unpack")
    }
}

impl<R> std::fmt::Debug for Decoder<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Decoder")
    }
}

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Zlib(decoder) => decoder.read(buffer),
            #[cfg(feature = "unpack")]
            Self::Zstd(frames) => frames.read(buffer),
            Self::Plain(packets) => packets.read(buffer),
            #[cfg(not(feature = "unpack"))]
            Self::None => Ok(0),
        }
    }
}

impl<R: Read> Read for Inflated<R> {
    /// Fails with [`ErrorKind::FileTooLarge`] at the limit.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            let mut more = [0];
            let is_end = buffer.is_empty() || self.decoder.read(&mut more)? == 0;
            return if is_end { Ok(0) } else { Err(ErrorKind::FileTooLarge.into()) };
        }
        let most = buffer.len().min(self.left);
        let read = self.decoder.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

/// So many zeros in a row are a hole.
const HOLE: usize = 16;

/// Whether the last byte of a packet, or many in a row, are zeros.
#[cold]
pub(crate) fn has_hole(packet: &[u8]) -> bool {
    let zeros = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
    packet.last() == Some(&0) || packet.windows(HOLE).any(zeros)
}

/// Whether all of a compressed packet is read.
#[cold]
fn is_intact(by: Compression, compressed: &[u8]) -> bool {
    match io::copy(&mut Inflated::new(by, compressed), &mut io::sink()) {
        Ok(_) => true,
        Err(e) => e.kind() == ErrorKind::FileTooLarge,
    }
}

/// Whether a compressed packet is damaged because it has a hole: what comes out of zeros can be anything
/// before an error does.
pub(crate) fn has_lost_content(by: Compression, compressed: &[u8]) -> bool {
    has_hole(compressed) && !is_intact(by, compressed)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression as Level;
    use flate2::write::ZlibEncoder;

    use super::*;

    fn inflated(len: usize) -> Result<usize, ErrorKind> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Level::fast());
        encoder.write_all(&vec![0; len]).unwrap();
        let compressed = encoder.finish().unwrap();
        let mut content = Vec::new();
        Inflated::new(Compression::Zlib, &compressed[..]).read_to_end(&mut content).map_err(|e| e.kind())
    }

    #[test]
    fn the_content_of_a_compressed_packet_is_limited() {
        assert_eq!(inflated(1000), Ok(1000));
        assert_eq!(inflated(MAX_PACKET), Ok(MAX_PACKET));
        assert_eq!(inflated(MAX_PACKET + 1), Err(ErrorKind::FileTooLarge));
    }
}
