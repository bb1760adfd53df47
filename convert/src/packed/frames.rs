//! zstd: one frame after the other, as `zstd` itself reads them.

use std::io::{self, Read};

use ruzstd::decoding::errors::{FrameDecoderError, FrameHeaderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::packed::refused::too_large;

/// The content of all frames.
pub(crate) struct Frames<R> {
    input: R,
    /// The decoder of the current frame.
    decoder: FrameDecoder,
}

impl<R: Read> Frames<R> {
    /// Frames with a window of more than `most_memory` bytes are refused.
    pub(crate) fn new(input: R, most_memory: u64) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(most_memory);
        Self { input, decoder }
    }

    /// Begins the next frame. Returns `false` at the end of the input.
    fn advance(&mut self) -> io::Result<bool> {
        loop {
            let mut first = [0];
            // The decoder does not distinguish the end of the input from a cut frame.
            if self.input.read(&mut first)? == 0 {
                return Ok(false);
            }
            match self.decoder.init((&first[..]).chain(&mut self.input)) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.input.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(e) => return Err(damaged(e)),
            }
        }
    }

    /// Checks the checksum of a frame that was read to its end.
    fn check(&self) -> io::Result<()> {
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(stored), Some(calculated)) if stored != calculated => {
                Err(io::Error::new(io::ErrorKind::InvalidData, "a zstd frame's checksum is wrong"))
            }
            _ => Ok(()),
        }
    }
}

impl<R: Read> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.decoder.can_collect() == 0 {
            if !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.input, one).map_err(damaged)?;
                continue;
            }
            self.check()?;
            if !self.advance()? {
                return Ok(0);
            }
        }
        self.decoder.read(buffer)
    }
}

fn damaged(e: FrameDecoderError) -> io::Error {
    let needs_memory = matches!(
        e,
        FrameDecoderError::WindowSizeTooBig { .. }
            | FrameDecoderError::FrameHeaderError(FrameHeaderError::WindowTooBig { .. })
            | FrameDecoderError::FailedToInitialize(FrameHeaderError::WindowTooBig { .. })
    );
    if needs_memory {
        return too_large("zstd", "unzstd --long=31");
    }
    io::Error::new(io::ErrorKind::InvalidData, e)
}
