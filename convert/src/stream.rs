//! The interface of all readers and all writers.

use std::io;

use crate::{Context, Error, Item, Report};

/// Reads a trace item by item.
///
/// ```
/// use hairline_convert::{Context, JsonReader, TraceReader};
///
/// let json = br#"[{"name":"read","ph":"?","ts":1,"pid":1,"tid":1}]"#;
/// let (mut reader, mut context) = (JsonReader::new(&json[..]), Context::new());
/// while reader.next(&mut context)?.is_some() {}
/// assert!(!reader.report().is_empty()); // an unknown phase
/// # Ok::<(), hairline_convert::Error>(())
/// ```
pub trait TraceReader {
    /// Returns the next item, or `None` at the end of the trace.
    ///
    /// # Errors
    /// Fails with the byte offset if the input is not valid in its format. Later calls return `None`. An
    /// input that ends early is also an error ([`Error::is_truncated`]); all items before it are valid.
    fn next<'s>(&'s mut self, context: &'s mut Context) -> Result<Option<Item<'s>>, Error>;

    /// Counts the data that the reader did not understand and skipped.
    fn report(&self) -> &Report;

    /// The number of bytes that were read from the input.
    fn position(&self) -> u64;
}

/// Writes a trace item by item.
///
/// ```
/// use hairline_convert::{CounterTrack, Item, JsonWriter, TraceWriter, Track, TrackId, TrackKind};
/// use hairline_formats::track_event::Unit;
///
/// let series = "sent".into(); // JSON writes it in the place of the unit
/// let counter = CounterTrack { unit: Unit::SizeBytes, series, ..CounterTrack::default() };
/// let track = Track::new(TrackId(0), TrackKind::Counter(Box::new(counter)));
/// let mut writer = JsonWriter::new(std::io::sink());
/// writer.write(&Item::Track(track))?;
/// writer.finish()?;
/// assert!(!writer.report().is_empty()); // the unit is lost
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait TraceWriter {
    /// Writes an item in the nearest form that the format has, and counts what changes by that. A writer may
    /// use the number of a text as a table index, so all texts must come from one [`Context`].
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    fn write(&mut self, item: &Item<'_>) -> io::Result<()>;

    /// Writes the end of the trace, and flushes the output.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    fn finish(&mut self) -> io::Result<()>;

    /// Counts the data that the format cannot express, or only in another form.
    fn report(&self) -> &Report;
}
