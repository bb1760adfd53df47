//! Writes a trace.

use std::io::{self, ErrorKind, Write};

use crate::Value;
use crate::trace_event_json::encode::{put_event, put_value};
use crate::trace_event_json::event::Event;
use crate::trace_event_json::json::Json;
use crate::trace_event_json::plain::{Plain, put_plain};
use crate::trace_event_json::put::{Times, put_string};

/// Bytes that are gathered before they are written.
const BUFFER: usize = 64 * 1024;

/// Writes a trace, event by event. What was written is a trace at any time, as far as it goes: the end of the array may be
/// missing.
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::trace_event_json::{Args, Event, Id, Phase, TimeUnit, Writer};
///
/// let mut writer = Writer::object(Vec::new());
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
pub struct Writer<W> {
    to: W,
    buffer: Vec<u8>,
    place: Place,
    /// Nothing stands before the next in its array or object.
    first: bool,
    times: Times,
}

/// What is written at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The array form.
    Array,
    /// The object form, before its events.
    Before,
    /// Its events.
    Events,
    /// What follows them.
    After,
}

/// The unit in which a viewer shows times, `displayTimeUnit`. Those in the trace are microseconds whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// "ms".
    Milliseconds,
    /// "ns".
    Nanoseconds,
}

impl<W: Write> Writer<W> {
    /// A trace in the array form.
    pub fn array(to: W) -> Self {
        Self::new(to, b"[", Place::Array)
    }

    /// A trace in the object form.
    pub fn object(to: W) -> Self {
        Self::new(to, b"{", Place::Before)
    }

    fn new(to: W, start: &[u8], place: Place) -> Self {
        Self { to, buffer: start.to_vec(), place, first: true, times: Times::default() }
    }

    /// Writes an event.
    ///
    /// # Errors
    /// The output fails. The object form has had a [member](Self::member) after its events, which end there.
    pub fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.put(|out, _| put_event(out, event))
    }

    /// Writes an event whose text is nearly ready, which takes a fraction of the time.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    #[inline]
    pub fn plain(&mut self, event: &Plain<'_>) -> io::Result<()> {
        self.put(|out, times| put_plain(out, times, event))
    }

    #[inline]
    fn put(&mut self, event: impl FnOnce(&mut Vec<u8>, &mut Times)) -> io::Result<()> {
        match self.place {
            Place::Array | Place::Events => {}
            Place::Before => self.open_events(),
            Place::After => return Err(misplaced("an event after the end of the events")),
        }
        self.separate();
        event(&mut self.buffer, &mut self.times);
        self.drain(BUFFER)
    }

    /// Writes an event as it stands.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn json(&mut self, event: Json<'_>) -> io::Result<()> {
        self.put(|out, _| out.extend_from_slice(event.text().as_bytes()))
    }

    /// Writes a member of the object form, before its events or after them: `otherData`, `stackFrames`, `samples` or what else there is.
    ///
    /// # Errors
    /// The output fails. The array form has no members.
    pub fn member(&mut self, key: &str, value: &Value<'_>) -> io::Result<()> {
        match self.place {
            Place::Array => return Err(misplaced("a member in the array form")),
            Place::Before | Place::After => {}
            Place::Events => self.close_events(),
        }
        if !self.first {
            self.buffer.extend_from_slice(b",\n");
        }
        self.first = false;
        put_string(&mut self.buffer, key);
        self.buffer.push(b':');
        put_value(&mut self.buffer, value);
        self.drain(BUFFER)
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

    /// Hands on what is still in the buffer. What was written so far is then a trace that is cut.
    ///
    /// # Errors
    /// The output fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.drain(0)?;
        self.to.flush()
    }

    /// Ends the trace, and gives the output back.
    ///
    /// # Errors
    /// The output fails.
    pub fn finish(mut self) -> io::Result<W> {
        if self.place == Place::Before {
            self.open_events(); // without them it is no trace
        }
        match self.place {
            Place::Array => self.buffer.extend_from_slice(b"\n]\n"),
            Place::Before | Place::Events => self.buffer.extend_from_slice(b"\n]}\n"),
            Place::After => self.buffer.extend_from_slice(b"}\n"),
        }
        self.flush()?;
        Ok(self.to)
    }

    #[cold] // once in a trace
    fn open_events(&mut self) {
        if !self.first {
            self.buffer.extend_from_slice(b",\n");
        }
        self.buffer.extend_from_slice(b"\"traceEvents\":[");
        (self.place, self.first) = (Place::Events, true);
    }

    fn close_events(&mut self) {
        self.buffer.extend_from_slice(b"\n]");
        (self.place, self.first) = (Place::After, false);
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
    fn drain(&mut self, most: usize) -> io::Result<()> {
        if self.buffer.len() > most { self.hand_on() } else { Ok(()) }
    }

    #[cold] // once in so many events as the buffer holds
    fn hand_on(&mut self) -> io::Result<()> {
        self.to.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

fn misplaced(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, what)
}
