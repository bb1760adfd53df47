//! Writes a trace.

use std::io::{self, ErrorKind, Write};

use crate::Value;
use crate::trace_event_json::encode::{put_event, put_value};
use crate::trace_event_json::event::Event;
use crate::trace_event_json::json::Json;
use crate::trace_event_json::plain::{PlainEvent, put_plain};
use crate::trace_event_json::put::{Times, put_string};

/// The bytes that are buffered before they are written.
const BUFFER: usize = 64 * 1024;

/// Writes a trace, event by event.
///
/// The output is a readable trace at any time, because the end of the array is optional.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::trace_event_json::{Args, Event, Id, JsonWriter, Phase, TimeUnit};
///
/// let mut writer = JsonWriter::object(Vec::new());
/// writer.display_time_unit(TimeUnit::Nanoseconds)?;
/// writer.event(&Event {
///     name: "read".into(),
///     ph: Some(Phase::Instant),
///     ts: Some(1_500),
///     pid: Some(Id::Number(7)),
///     args: Args::List(&[("bytes", Value::U64(512))]),
///     ..Event::default()
/// })?;
/// let trace = String::from_utf8(writer.finish()?).unwrap();
/// let event = r#"{"name":"read","ph":"i","ts":1.5,"pid":7,"args":{"bytes":512}}"#;
/// assert_eq!(trace, format!("{{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[\n{event}\n]}}\n"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct JsonWriter<W> {
    output: W,
    buffer: Vec<u8>,
    section: Section,
    /// Whether the next item is the first of its array or object.
    first: bool,
    times: Times,
}

/// The section of the trace that is being written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    /// The array form.
    Array,
    /// The object form, before its events.
    Before,
    /// The events of the object form.
    Events,
    /// The object form, after its events.
    After,
}

/// The unit in which viewers show times, `displayTimeUnit`. The times in the trace are always microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeUnit {
    /// "ms".
    Milliseconds,
    /// "ns".
    Nanoseconds,
}

impl<W: Write> JsonWriter<W> {
    /// Creates a writer of the array form.
    pub fn array(output: W) -> Self {
        Self::new(output, b"[", Section::Array)
    }

    /// Creates a writer of the object form.
    pub fn object(output: W) -> Self {
        Self::new(output, b"{", Section::Before)
    }

    fn new(output: W, start: &[u8], section: Section) -> Self {
        Self { output, buffer: start.to_vec(), section, first: true, times: Times::default() }
    }

    /// Writes an event.
    ///
    /// # Errors
    /// The output fails, or a [member](Self::member) has ended the events of the object form.
    pub fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.put(|out, _| put_event(out, event))
    }

    /// Writes an event from prepared pieces, in a fraction of the time of [`event`](Self::event).
    ///
    /// # Errors
    /// As [`event`](Self::event).
    #[inline]
    pub fn plain(&mut self, event: &PlainEvent<'_>) -> io::Result<()> {
        self.put(|out, times| put_plain(out, times, event))
    }

    #[inline]
    fn put(&mut self, event: impl FnOnce(&mut Vec<u8>, &mut Times)) -> io::Result<()> {
        match self.section {
            Section::Array | Section::Events => {}
            Section::Before => self.open_events(),
            Section::After => return Err(misplaced("an event after the end of the events")),
        }
        self.separate();
        event(&mut self.buffer, &mut self.times);
        self.write_above(BUFFER)
    }

    /// Writes an event that is already JSON.
    ///
    /// ```
    /// use hairline_formats::trace_event_json::{Json, JsonWriter};
    ///
    /// let mut writer = JsonWriter::array(Vec::new());
    /// writer.json(Json::new(r#"{"name": "read", "ph": "i", "ts": 1}"#).unwrap())?;
    /// assert_eq!(writer.finish()?, b"[\n{\"name\": \"read\", \"ph\": \"i\", \"ts\": 1}\n]\n");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn json(&mut self, event: Json<'_>) -> io::Result<()> {
        self.put(|out, _| out.extend_from_slice(event.text().as_bytes()))
    }

    /// Writes a member of the object form, for example `otherData`, `stackFrames` or `samples`.
    ///
    /// Members can precede or follow the events. A member after an event ends the events.
    ///
    /// ```
    /// use hairline_formats::Value;
    /// use hairline_formats::trace_event_json::{Event, JsonWriter};
    ///
    /// let mut writer = JsonWriter::object(Vec::new());
    /// writer.member("otherData", &Value::Str("first run"))?;
    /// writer.event(&Event::default())?;
    /// writer.member("version", &Value::U64(2))?; // ends the events
    /// assert!(writer.event(&Event::default()).is_err());
    /// assert!(JsonWriter::array(Vec::new()).member("version", &Value::U64(2)).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// The output fails, or the trace has the array form, which has no members.
    pub fn member(&mut self, key: &str, value: &Value<'_>) -> io::Result<()> {
        match self.section {
            Section::Array => return Err(misplaced("a member in the array form")),
            Section::Before | Section::After => {}
            Section::Events => self.close_events(),
        }
        if !self.first {
            self.buffer.extend_from_slice(b",\n");
        }
        self.first = false;
        put_string(&mut self.buffer, key);
        self.buffer.push(b':');
        put_value(&mut self.buffer, value);
        self.write_above(BUFFER)
    }

    /// Writes `displayTimeUnit`.
    ///
    /// # Errors
    /// As [`member`](Self::member).
    pub fn display_time_unit(&mut self, unit: TimeUnit) -> io::Result<()> {
        let unit = match unit {
            TimeUnit::Milliseconds => "ms",
            TimeUnit::Nanoseconds => "ns",
        };
        self.member("displayTimeUnit", &Value::Str(unit))
    }

    /// Writes the buffer to the output and flushes it. The output is then a trace without an end.
    ///
    /// # Errors
    /// The output fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_above(0)?;
        self.output.flush()
    }

    /// Ends the trace. Returns the output.
    ///
    /// # Errors
    /// The output fails.
    pub fn finish(mut self) -> io::Result<W> {
        if self.section == Section::Before {
            self.open_events(); // a trace without events needs the member too
        }
        match self.section {
            Section::Array => self.buffer.extend_from_slice(b"\n]\n"),
            Section::Before | Section::Events => self.buffer.extend_from_slice(b"\n]}\n"),
            Section::After => self.buffer.extend_from_slice(b"}\n"),
        }
        self.flush()?;
        Ok(self.output)
    }

    #[cold] // once in a trace
    fn open_events(&mut self) {
        if !self.first {
            self.buffer.extend_from_slice(b",\n");
        }
        self.buffer.extend_from_slice(b"\"traceEvents\":[");
        (self.section, self.first) = (Section::Events, true);
    }

    fn close_events(&mut self) {
        self.buffer.extend_from_slice(b"\n]");
        (self.section, self.first) = (Section::After, false);
    }

    #[inline]
    fn separate(&mut self) {
        if std::mem::take(&mut self.first) {
            self.buffer.push(b'\n');
        } else {
            self.buffer.extend_from_slice(b",\n");
        }
    }

    #[inline]
    fn write_above(&mut self, most: usize) -> io::Result<()> {
        if self.buffer.len() > most { self.write_out() } else { Ok(()) }
    }

    #[cold] // once for each full buffer
    fn write_out(&mut self) -> io::Result<()> {
        self.output.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

fn misplaced(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}
