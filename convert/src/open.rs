//! From a stream of bytes to a reader, from a format to a writer.

use std::io::{self, Cursor, Read, Write};

use flate2::read::MultiGzDecoder;

use crate::format::Source;
use crate::format::{DETECTED_BY, detect, is_gzip};
use crate::stream::{Reader, Writer};
use crate::{fxt, json, track_event};

/// Why an input cannot be read as a trace at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is not one byte in it.
    #[error("byte 0: it is empty")]
    Empty,
    /// It begins like none of the formats.
    #[error("byte 0: neither a Perfetto trace, nor FXT, nor Trace Event JSON")]
    Unknown,
    /// Reading its first bytes failed, or inflating them.
    #[error("reading it failed: {0}")]
    Io(#[from] io::Error),
}

/// A reader for the format that the input is in: `format` if it is given, else what its first bytes say. What is compressed with gzip
/// is inflated.
///
/// # Errors
/// If it is empty, of no known format, or cannot be read.
pub fn open<'r>(input: impl Read + 'r, format: Option<Source>) -> Result<Box<dyn Reader + 'r>, OpenError> {
    let (beginning, input) = peek(input)?;
    if !is_gzip(&beginning) {
        return reader(&beginning, input, format);
    }
    let (beginning, input) = peek(MultiGzDecoder::new(input))?;
    reader(&beginning, input, format)
}

fn reader<'r>(
    beginning: &[u8],
    input: impl Read + 'r,
    format: Option<Source>,
) -> Result<Box<dyn Reader + 'r>, OpenError> {
    if beginning.is_empty() {
        return Err(OpenError::Empty);
    }
    Ok(match format.or_else(|| detect(beginning)).ok_or(OpenError::Unknown)? {
        Source::TrackEvent => Box::new(track_event::Reader::new(input)),
        Source::Fxt => Box::new(fxt::Reader::new(input)),
        Source::Json => Box::new(json::Reader::new(input)),
    })
}

/// The first bytes of a stream, and the stream with them still in it.
fn peek<R: Read>(mut input: R) -> io::Result<(Vec<u8>, impl Read)> {
    let mut beginning = Vec::new();
    let read = input.by_ref().take(DETECTED_BY as u64).read_to_end(&mut beginning);
    // Where something came before the error, the reader comes upon it after that.
    read.map(drop).or_else(|e| if beginning.is_empty() { Err(e) } else { Ok(()) })?;
    Ok((beginning.clone(), Cursor::new(beginning).chain(input)))
}

/// A writer of a format. It gathers what it writes: `output` needs no buffer.
///
/// # Errors
/// None yet.
pub fn create<'w>(format: Source, output: impl Write + 'w) -> io::Result<Box<dyn Writer + 'w>> {
    Ok(match format {
        Source::TrackEvent => Box::new(track_event::Writer::new(output)),
        Source::Fxt => Box::new(fxt::Writer::new(output)),
        Source::Json => Box::new(json::Writer::new(output)),
    })
}
