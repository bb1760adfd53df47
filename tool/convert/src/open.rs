//! Opens readers and writers.

use std::io::{self, Cursor, Read, Write};

use flate2::read::MultiGzDecoder;

use crate::format::{DETECTED_BY, detect, is_gzip};
use crate::fxt::{FxtReader, FxtWriter};
use crate::json::{JsonReader, JsonWriter};
use crate::track_event::{Again, TrackEventReader, TrackEventWriter};
use crate::{Error, TraceFormat, TraceReader, TraceWriter, kinds};

/// Opens a reader for a trace. Without a `format`, the first bytes of the input decide. A gzip stream is
/// inflated.
///
/// ```
/// use hairline_convert::{Context, Error, Item, TraceFormat, open};
///
/// let json = br#"[{"name":"read","ph":"i","ts":1,"pid":1,"tid":1}]"#;
/// let (mut reader, mut context) = (open(&json[..], None)?, Context::new());
/// let mut names = Vec::new();
/// while let Some(item) = reader.next(&mut context)? {
///     if let Item::Event(event) = item {
///         names.push(event.name.text.to_owned());
///     }
/// }
/// assert_eq!(names, ["read"]);
/// assert!(matches!(open(&b"hello"[..], None), Err(Error::UnknownFormat)));
/// assert!(open(&b"hello"[..], Some(TraceFormat::Fxt)).is_ok()); // its first record is the error then
/// # Ok::<(), Error>(())
/// ```
///
/// # Errors
/// Fails if the input is empty, has an unknown format, or cannot be read.
pub fn open<'r>(
    input: impl Read + 'r,
    format: Option<TraceFormat>,
) -> Result<Box<dyn TraceReader + 'r>, Error> {
    open_any(input, format, None)
}

/// As [`open`], for an input that can be read a second time. Packets need that if descriptions of tracks
/// follow the first event of their track: see [`TrackEventReader::reading_again`]. `again` opens the input
/// from its first byte, compressed as it is. It is called at most once.
///
/// ```
/// use hairline_convert::{Context, Item, TrackKind, open_twice};
/// use hairline_formats::track_event::{
///     Event, EventType, SequenceId, ThreadTrack, TrackUuid, event, thread_descriptor,
/// };
///
/// let mut trace = Vec::new();
/// let (sequence, uuid) = (SequenceId(1), TrackUuid(4));
/// let begin = Event::new(sequence, EventType::SliceBegin, 1_000);
/// event(&mut trace, &Event { track_uuid: Some(uuid), needs_state: false, ..begin });
/// let thread = ThreadTrack { uuid, parent_uuid: TrackUuid(0), pid: 7, tid: 8, name: "main" };
/// thread_descriptor(&mut trace, sequence, &thread);
///
/// let copy = trace.clone();
/// let again = || Ok(Box::new(std::io::Cursor::new(copy)) as Box<dyn std::io::Read>);
/// let (mut reader, mut context) = (open_twice(&trace[..], None, again)?, Context::new());
/// let mut kinds = Vec::new();
/// while let Some(item) = reader.next(&mut context)? {
///     match item {
///         Item::Track(track) => kinds.push(track.kind),
///         Item::Event(_) => break,
///         _ => {}
///     }
/// }
/// assert!(kinds.contains(&TrackKind::Thread { pid: 7, tid: 8 }));
/// # Ok::<(), hairline_convert::Error>(())
/// ```
///
/// # Errors
/// As [`open`]. If `again` fails, the reader counts that in its report.
pub fn open_twice<'r>(
    input: impl Read + 'r,
    format: Option<TraceFormat>,
    again: impl FnOnce() -> io::Result<Box<dyn Read>> + Send + 'static,
) -> Result<Box<dyn TraceReader + 'r>, Error> {
    open_any(input, format, Some(Box::new(again)))
}

fn open_any<'r>(
    input: impl Read + 'r,
    format: Option<TraceFormat>,
    again: Option<Again>,
) -> Result<Box<dyn TraceReader + 'r>, Error> {
    let (beginning, input) = peek(input)?;
    if !is_gzip(&beginning) {
        return reader(&beginning, input, format, again);
    }
    let again = again.map(|again| {
        let inflated = || again().map(|input| Box::new(MultiGzDecoder::new(input)) as Box<dyn Read>);
        Box::new(inflated) as Again
    });
    let (beginning, input) = peek(MultiGzDecoder::new(input))?;
    reader(&beginning, input, format, again)
}

/// Creates a reader. It is compiled in this crate, as one unit, since it is called for every event; its input
/// is read in large blocks.
fn reader<'r>(
    beginning: &[u8],
    input: impl Read + 'r,
    format: Option<TraceFormat>,
    again: Option<Again>,
) -> Result<Box<dyn TraceReader + 'r>, Error> {
    if beginning.is_empty() {
        return Err(Error::Empty);
    }
    let input: Box<dyn Read + 'r> = Box::new(input);
    if format.is_none()
        && let Some(what) = kinds::other(beginning)
    {
        return Err(Error::Other(what));
    }
    Ok(match format.or_else(|| detect(beginning)).ok_or(Error::UnknownFormat)? {
        TraceFormat::TrackEvent => {
            let reader = TrackEventReader::new(input);
            Box::new(match again {
                Some(again) => reader.reading_again(again),
                None => reader,
            })
        }
        TraceFormat::Fxt => Box::new(FxtReader::new(input)),
        TraceFormat::Json => Box::new(JsonReader::new(input).expecting_events(kinds::other_json(beginning))),
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
///
/// ```
/// use hairline_convert::{Event, EventKind, Item, TraceFormat, Track, TrackId, TrackKind, create};
///
/// let (process, thread) = (TrackId(0), TrackId(1));
/// let mut json = Vec::new();
/// let mut writer = create(TraceFormat::Json, &mut json);
/// writer.write(&Item::Track(Track::new(process, TrackKind::process(7))))?;
/// let kind = TrackKind::Thread { pid: 7, tid: 8 };
/// writer.write(&Item::Track(Track { parent: Some(process), ..Track::new(thread, kind) }))?;
/// let read = Event { name: "read".into(), ..Event::new(1_500, thread, EventKind::Instant) };
/// writer.write(&Item::Event(read))?;
/// writer.finish()?;
/// drop(writer);
/// assert!(String::from_utf8(json)?.contains(r#""name":"read","ph":"i","ts":1.5,"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create<'w>(format: TraceFormat, output: impl Write + 'w) -> Box<dyn TraceWriter + 'w> {
    let output: Box<dyn Write + 'w> = Box::new(output); // as the input of a reader
    match format {
        TraceFormat::TrackEvent => Box::new(TrackEventWriter::new(output)),
        TraceFormat::Fxt => Box::new(FxtWriter::new(output)),
        TraceFormat::Json => Box::new(JsonWriter::new(output)),
    }
}
