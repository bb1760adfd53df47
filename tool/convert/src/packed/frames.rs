//! zstd: one frame after the other, as `zstd` itself reads them.

use std::io::{self, Read};

use ruzstd::decoding::errors::{FrameDecoderError, FrameHeaderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::packed::refused::too_large;

/// The content of all frames. An error is an early end if the input has ended, whatever the decoder calls it.
pub(crate) struct Frames<R> {
    input: Ending<R>,
    /// The decoder of the current frame.
    decoder: FrameDecoder,
    /// The error that follows what the decoder has.
    error: Option<io::Error>,
}

/// A last block without content, and room for a checksum.
const END: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

impl<R: Read> Frames<R> {
    /// Frames with a window of more than `most_memory` bytes are refused.
    pub(crate) fn new(input: R, most_memory: u64) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(most_memory);
        Self { input: Ending { input, has_ended: false }, decoder, error: None }
    }

    /// Begins the next frame. Returns `false` at the end of the input.
    fn advance(&mut self) -> io::Result<bool> {
        loop {
            let mut first = [0];
            // The decoder does not distinguish the end of the input from a cut frame.
            if self.input.read(&mut first)? == 0 {
                return Ok(false);
            }
            // As a file has them that was made longer than its content. No frame begins with one.
            if first == [0] {
                continue;
            }
            match self.decoder.init((&first[..]).chain(&mut self.input)) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.input.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(e) => return Err(self.input.error(e)),
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
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            if !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                if let Err(e) = self.decoder.decode_blocks(&mut self.input, one) {
                    self.error = Some(self.input.error(e));
                    // A decoder keeps the bytes of the window, up to the end of the frame.
                    let _ = self.decoder.decode_blocks(&END[..], BlockDecodingStrategy::All);
                }
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

/// Notes the end of the input.
struct Ending<R> {
    input: R,
    has_ended: bool,
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.has_ended |= read == 0 && !buffer.is_empty();
        Ok(read)
    }
}

impl<R> Ending<R> {
    fn error(&self, e: FrameDecoderError) -> io::Error {
        let needs_memory = matches!(
            e,
            FrameDecoderError::WindowSizeTooBig { .. }
                | FrameDecoderError::FrameHeaderError(FrameHeaderError::WindowTooBig { .. })
                | FrameDecoderError::FailedToInitialize(FrameHeaderError::WindowTooBig { .. })
        );
        if needs_memory {
            return too_large("zstd", "unzstd --long=31");
        }
        let is_cut = self.has_ended;
        io::Error::new(if is_cut { io::ErrorKind::UnexpectedEof } else { io::ErrorKind::InvalidData }, e)
    }
}
