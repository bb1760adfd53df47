//! The content of compressed packets.
//!
//! A writer collects some 256 KiB of packets before it compresses them. Zlib makes them a thousand times
//! smaller at most, so without a limit a packet of 1 MB could have 1 GB of content.

use std::io::{self, ErrorKind, Read};

use flate2::read::ZlibDecoder;
use hairline_formats::track_event::MAX_PACKET;
use hairline_formats::{DecodeError, DecodeErrorKind};

/// The content of a compressed packet, up to [`MAX_PACKET`].
#[derive(Debug)]
pub(crate) struct Inflated<R> {
    decoder: ZlibDecoder<R>,
    /// The bytes that may still follow.
    left: usize,
}

impl<R: Read> Inflated<R> {
    pub(crate) fn new(compressed: R) -> Self {
        Self { decoder: ZlibDecoder::new(compressed), left: MAX_PACKET }
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

/// Whether an error of the packets in a compressed one means that there are too many.
pub(crate) fn is_too_large(e: &DecodeError) -> bool {
    matches!(&e.kind, DecodeErrorKind::Io(e) if e.kind() == ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    fn inflated(len: usize) -> Result<usize, ErrorKind> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&vec![0; len]).unwrap();
        let compressed = encoder.finish().unwrap();
        let mut content = Vec::new();
        Inflated::new(&compressed[..]).read_to_end(&mut content).map_err(|e| e.kind())
    }

    #[test]
    fn the_content_of_a_compressed_packet_is_limited() {
        assert_eq!(inflated(1000), Ok(1000));
        assert_eq!(inflated(MAX_PACKET), Ok(MAX_PACKET));
        assert_eq!(inflated(MAX_PACKET + 1), Err(ErrorKind::FileTooLarge));
    }
}
