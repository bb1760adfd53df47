//! Writes a trace.

use std::io::{self, ErrorKind, Write};

use super::event::{Args, Event, Id};
use super::json::Json;
use super::plain::{Plain, put_plain};
use super::put::{Times, put_display, put_integer, put_microseconds, put_string};
use crate::Value;
use crate::value::MAX_DEPTH;

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

/// Appends an event: an object on one line.
pub fn put_event(out: &mut Vec<u8>, event: &Event<'_>) {
    let mut object = Object::new(out);
    object.text("name", &event.name);
    object.text("cat", &event.cat);
    object.letter("ph", event.ph.map(super::Phase::letter));
    object.time("ts", event.ts);
    object.time("dur", event.dur);
    object.time("tts", event.tts);
    object.time("tdur", event.tdur);
    object.id("pid", event.pid.as_ref());
    object.id("tid", event.tid.as_ref());
    object.id("id", event.id.as_ref());
    if event.id2 != super::Id2::default() {
        let mut id2 = Object::new(object.key("id2"));
        id2.id("local", event.id2.local.as_ref());
        id2.id("global", event.id2.global.as_ref());
        id2.end();
    }
    object.text("scope", &event.scope);
    object.letter("s", event.s.map(super::InstantScope::letter));
    object.text("bp", &event.bp);
    object.id("bind_id", event.bind_id.as_ref());
    object.truth("flow_in", event.flow_in);
    object.truth("flow_out", event.flow_out);
    object.text("cname", &event.cname);
    object.id("sf", event.sf.as_ref());
    object.json("stack", event.stack);
    object.id("esf", event.esf.as_ref());
    object.json("estack", event.estack);
    if !matches!(event.args, Args::None) {
        put_args(object.member("args"), &event.args);
    }
    object.end();
}

/// Appends arguments, as the object that they are.
pub(super) fn put_args(out: &mut Vec<u8>, args: &Args<'_>) {
    match args {
        Args::None => out.extend_from_slice(b"{}"),
        Args::Json(json) => out.extend_from_slice(json.text().as_bytes()),
        Args::List(all) => {
            let mut args = Object::new(out);
            for (name, value) in *all {
                put_nested(args.key(name), value, 1);
            }
            args.end();
        }
        Args::Shown(entries) => put_nested(out, &Value::Dict(*entries), 0),
    }
}

/// An object that is written member by member; what is not there is left out.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Object<'o> {
    fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Begins a member, whose value is then to be written.
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        put_string(self.out, key);
        self.out.push(b':');
        self.out
    }

    /// The same with a name that needs no escapes.
    #[inline(always)] // its length is then known, and the copy is no call
    fn member(&mut self, key: &'static str) -> &mut Vec<u8> {
        self.out.extend_from_slice(if self.first { b"\"" } else { b",\"" });
        self.first = false;
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    #[inline]
    fn text(&mut self, key: &'static str, text: &str) {
        if !text.is_empty() {
            put_string(self.member(key), text);
        }
    }

    #[inline]
    fn letter(&mut self, key: &'static str, letter: Option<char>) {
        if let Some(letter) = letter {
            let out = self.member(key);
            match u8::try_from(letter) {
                Ok(byte) if byte.is_ascii_alphabetic() => out.extend_from_slice(&[b'"', byte, b'"']),
                _ => put_string(out, letter.encode_utf8(&mut [0; 4])),
            }
        }
    }

    #[inline]
    fn time(&mut self, key: &'static str, ns: Option<i64>) {
        if let Some(ns) = ns {
            put_microseconds(self.member(key), ns);
        }
    }

    #[inline]
    fn id(&mut self, key: &'static str, id: Option<&Id<'_>>) {
        match id {
            None => {}
            Some(Id::Number(number)) => put_integer(self.member(key), *number),
            Some(Id::Negative(number)) => put_integer(self.member(key), *number),
            Some(Id::Text(text)) => put_string(self.member(key), text),
        }
    }

    #[inline]
    fn truth(&mut self, key: &'static str, truth: bool) {
        if truth {
            self.member(key).extend_from_slice(b"true");
        }
    }

    #[inline]
    fn json(&mut self, key: &'static str, json: Option<Json<'_>>) {
        if let Some(json) = json {
            self.member(key).extend_from_slice(json.text().as_bytes());
        }
    }

    fn end(self) {
        self.out.push(b'}');
    }
}

/// Appends a value in JSON.
///
/// What JSON does not have is text: a pointer is "0x" and its digits, a blob two hexadecimal digits for each byte, and
/// a floating point number that is none "NaN", "inf" or "-inf". Nesting deeper than 32 levels is "...".
pub fn put_value(out: &mut Vec<u8>, value: &Value<'_>) {
    put_nested(out, value, 0);
}

fn put_nested(out: &mut Vec<u8>, value: &Value<'_>, depth: usize) {
    match *value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(truth) => put_display(out, &truth),
        Value::I64(number) => put_integer(out, number),
        Value::U64(number) | Value::Koid(number) => put_integer(out, number),
        Value::F64(number) if number.is_finite() => put_display(out, &format_args!("{number:?}")),
        Value::F64(number) => put_display(out, &format_args!("\"{number}\"")),
        Value::Str(text) | Value::Interned { text, .. } => put_string(out, text),
        Value::Pointer(address) => put_display(out, &format_args!("\"{address:#x}\"")),
        Value::Blob(bytes) => {
            out.push(b'"');
            bytes.iter().for_each(|byte| put_display(out, &format_args!("{byte:02x}")));
            out.push(b'"');
        }
        Value::Dict(_) | Value::Array(_) if depth >= MAX_DEPTH => put_string(out, "..."),
        Value::Dict(entries) => {
            let mut object = Object::new(out);
            entries.each(&mut |name, value| put_nested(object.key(name), &value, depth + 1));
            object.end();
        }
        Value::Array(entries) => {
            out.push(b'[');
            let mut first = true;
            entries.each(&mut |_, value| {
                if !std::mem::take(&mut first) {
                    out.push(b',');
                }
                put_nested(out, &value, depth + 1);
            });
            out.push(b']');
        }
    }
}
