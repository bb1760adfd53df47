//! The interface of all readers and all writers.

use std::io;

use crate::{BriefEvent, BriefUse, Context, Error, Item, Report, Strings};

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

    /// Reads the events that come next, up to the first one that has no [`BriefEvent`] for this use: at most
    /// [`MOST_BRIEF`](crate::MOST_BRIEF), and maybe none, as at the end. [`next`](Self::next) returns what
    /// follows. It would have returned an item for each of these events too.
    ///
    /// ```
    /// use hairline_convert::{BriefUse, Context, TraceReader, TrackEventReader};
    /// use hairline_formats::track_event::{Event, EventType, SequenceId, event};
    ///
    /// let mut trace = Vec::new();
    /// for time in 0..100 {
    ///     let instant = Event::new(SequenceId(1), EventType::Instant, time);
    ///     event(&mut trace, &Event { needs_state: false, ..instant });
    /// }
    /// let (mut reader, mut context) = (TrackEventReader::new(&trace[..]), Context::new());
    /// let (mut briefs, mut all) = (Vec::new(), 0);
    /// loop {
    ///     reader.briefs(BriefUse::Counting, &mut context, &mut briefs);
    ///     all += briefs.len();
    ///     if reader.next(&mut context)?.is_none() {
    ///         break;
    ///     }
    ///     all += 1;
    /// }
    /// assert_eq!(all, 101); // the events and their track
    /// # Ok::<(), hairline_convert::Error>(())
    /// ```
    fn briefs(&mut self, wanted: BriefUse, context: &mut Context, briefs: &mut Vec<BriefEvent>) {
        let _ = (wanted, context);
        briefs.clear();
    }

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

    /// Writes events that a reader gave for [writing](BriefUse::Writing). `strings` are those of its context.
    ///
    /// # Errors
    /// As `write`.
    fn write_briefs(&mut self, briefs: &[BriefEvent], strings: &Strings) -> io::Result<()> {
        briefs
            .iter()
            .filter_map(|brief| brief.event(strings))
            .try_for_each(|event| self.write(&Item::Event(event)))
    }

    /// Ends an input: no later item belongs to a track of the items so far. A writer needs it only to hold back
    /// less.
    ///
    /// # Errors
    /// As `write`.
    fn next_input(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Writes the end of the trace, and flushes the output.
    ///
    /// # Errors
    /// Fails if the output cannot be written.
    fn finish(&mut self) -> io::Result<()>;

    /// Counts the data that the format cannot express, or only in another form.
    fn report(&self) -> &Report;
}
