//! Opens readers and writers.

use std::io::{Cursor, Read, Write};

use flate2::read::MultiGzDecoder;

use crate::format::{DETECTED_BY, detect, is_gzip};
use crate::fxt::{FxtReader, FxtWriter};
use crate::json::{JsonReader, JsonWriter};
use crate::track_event::{TrackEventReader, TrackEventWriter};
use crate::{Error, TraceFormat, TraceReader, TraceWriter};

/// Opens a reader for a trace. Without a `format`, the first bytes of the input decide. A gzip stream is
/// inflated.
///
/// # Errors
/// Fails if the input is empty, has an unknown format, or cannot be read.
pub fn open<'r>(
    input: impl Read + 'r,
    format: Option<TraceFormat>,
) -> Result<Box<dyn TraceReader + 'r>, Error> {
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
    format: Option<TraceFormat>,
) -> Result<Box<dyn TraceReader + 'r>, Error> {
    if beginning.is_empty() {
        return Err(Error::Empty);
    }
    Ok(match format.or_else(|| detect(beginning)).ok_or(Error::UnknownFormat)? {
        TraceFormat::TrackEvent => Box::new(TrackEventReader::new(input)),
        TraceFormat::Fxt => Box::new(FxtReader::new(input)),
        TraceFormat::Json => Box::new(JsonReader::new(input)),
    })
}

/// Reads the first bytes of a stream. Returns them with a stream that starts with the same bytes.
fn peek<R: Read>(mut input: R) -> Result<(Vec<u8>, impl Read), Error> {
    let mut beginning = Vec::new();
    let read = input.by_ref().take(DETECTED_BY as u64).read_to_end(&mut beginning);
    // If bytes precede the error, the reader returns them and then meets the error itself.
    read.map(drop).or_else(|e| if beginning.is_empty() { Err(Error::Input(e)) } else { Ok(()) })?;
    Ok((beginning.clone(), Cursor::new(beginning).chain(input)))
}

/// Creates a writer. It collects its output in large blocks, so `output` needs no buffer.
pub fn create<'w>(format: TraceFormat, output: impl Write + 'w) -> Box<dyn TraceWriter + 'w> {
    match format {
        TraceFormat::TrackEvent => Box::new(TrackEventWriter::new(output)),
        TraceFormat::Fxt => Box::new(FxtWriter::new(output)),
        TraceFormat::Json => Box::new(JsonWriter::new(output)),
    }
}
