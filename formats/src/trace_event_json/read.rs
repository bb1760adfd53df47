//! Streams the items of a trace. Memory: a buffer of 64 KiB, or the largest object that is returned. An
//! object that is not JSON is written anew as JSON.

use std::borrow::Cow;
use std::io::Read;

use crate::trace_event_json::event::{Event, Sample, StackFrame};
use crate::trace_event_json::json::{self, Json, unquoted};
use crate::trace_event_json::parse::{self, Fault};
use crate::trace_event_json::sections::{Found, Section, Sections};
use crate::trace_event_json::text::repair;
use crate::trace_event_json::tokens::Member;
use crate::{DecodeError, DecodeErrorKind};

/// The default of [`JsonReader::limit`], in bytes.
pub const LIMIT: usize = 8 << 20;

/// Reads a trace, item by item.
///
/// ```
/// use hairline_formats::trace_event_json::{Item, JsonReader, Phase};
///
/// // The final ] is missing, which is no error.
/// let trace = r#"[{"name": "read", "ph": "X", "ts": 1.5, "dur": 2, "pid": 7, "tid": 8}"#;
/// let mut reader = JsonReader::new(trace.as_bytes());
/// while let Some((offset, item)) = reader.next()? {
///     if let Item::Event(event) = item {
///         assert_eq!((offset, &*event.name, event.ph), (1, "read", Some(Phase::Complete)));
///         assert_eq!((event.ts, event.dur), (Some(1_500), Some(2_000)));
///     }
/// }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct JsonReader<R> {
    sections: Sections<R>,
    /// The size of the item that was returned last, in bytes.
    current: usize,
    /// The text of the item that was returned last, if it was not UTF-8.
    repaired: String,
    repairs: u64,
    mends: u64,
    /// The members of the object that is read.
    members: Vec<Member>,
}

/// An item of a trace.
///
/// ```
/// use hairline_formats::trace_event_json::{Item, JsonReader};
///
/// let trace = br#"{"displayTimeUnit": "ns", "traceEvents": [{"name": "read", "ph": "i", "ts": 1}]}"#;
/// let mut reader = JsonReader::new(&trace[..]);
/// let Some((_, Item::Member { key, value, .. })) = reader.next()? else { panic!() };
/// assert_eq!((&*key, value.text()), ("displayTimeUnit", r#""ns""#));
/// let Some((_, Item::Event(event))) = reader.next()? else { panic!() };
/// assert_eq!(event.name, "read");
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // events are nearly all there is
#[non_exhaustive]
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// A member of `stackFrames`.
    StackFrame(StackFrame<'a>),
    /// An element of `samples`.
    Sample(Sample<'a>),
    /// Another member of the object form: `displayTimeUnit`, `otherData`, `systemTraceEvents`,
    /// `powerTraceAsString`, `controllerTraceDataKey`, or a name of the tracer's own.
    Member {
        /// The name.
        key: Cow<'a, str>,
        /// The value.
        value: Json<'a>,
    },
}

impl<R: Read> JsonReader<R> {
    /// Creates a reader of `reader`, which needs no buffer of its own.
    pub fn new(reader: R) -> Self {
        Self {
            sections: Sections::new(reader, LIMIT),
            current: 0,
            repaired: String::new(),
            repairs: 0,
            mends: 0,
            members: Vec::new(),
        }
    }

    /// Limits the objects that are returned to `bytes`. The default is [`LIMIT`].
    ///
    /// The reader's buffer grows to at most twice the size of the largest object that it returns. An object
    /// that is not UTF-8 takes up to three times its size in addition, one that is not JSON up to twelve
    /// times.
    ///
    /// ```
    /// use hairline_formats::DecodeErrorKind;
    /// use hairline_formats::trace_event_json::{Item, JsonReader};
    ///
    /// let trace = br#"[{"name": "an event of more than 32 bytes"}, {"name": "short"}]"#;
    /// let mut reader = JsonReader::new(&trace[..]).limit(32);
    /// let error = reader.next().unwrap_err();
    /// assert!(matches!(error.kind, DecodeErrorKind::TooLarge { limit: 32, .. }));
    /// let Some((_, Item::Event(event))) = reader.next()? else { panic!() }; // the event after it
    /// assert_eq!(event.name, "short");
    /// # Ok::<(), hairline_formats::DecodeError>(())
    /// ```
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.sections.limit = bytes;
        self
    }

    /// Returns the number of values that were passed over so far: elements of the arrays of events and
    /// samples that are no objects, text between events or after the end of the trace, and members of the
    /// object form above the limit.
    ///
    /// ```
    /// let trace = br#"[{"name": "read"}, "no object"]"#;
    /// let mut reader = hairline_formats::trace_event_json::JsonReader::new(&trace[..]);
    /// while reader.next()?.is_some() {}
    /// assert_eq!(reader.skipped(), 1);
    /// # Ok::<(), hairline_formats::DecodeError>(())
    /// ```
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.sections.skipped
    }

    /// Returns the number of objects that were not UTF-8 so far. U+FFFD replaces their wrong bytes.
    ///
    /// ```
    /// use hairline_formats::trace_event_json::{Item, JsonReader};
    ///
    /// let trace = b"[{\"name\": \"caf\xe9\"}]"; // Latin-1
    /// let mut reader = JsonReader::new(&trace[..]);
    /// let Some((_, Item::Event(event))) = reader.next()? else { panic!() };
    /// assert_eq!(event.name, "caf\u{fffd}");
    /// assert_eq!(reader.repairs(), 1);
    /// # Ok::<(), hairline_formats::DecodeError>(())
    /// ```
    #[must_use]
    pub fn repairs(&self) -> u64 {
        self.repairs
    }

    /// Returns the number of events so far that were not JSON. They were read as what they mean.
    ///
    /// ```
    /// use hairline_formats::trace_event_json::{Item, JsonReader};
    ///
    /// let trace = br#"[{"name": "C:\Users\me", "args": {"load": NaN}}]"#;
    /// # let trace = std::str::from_utf8(trace).unwrap().replace("\\\\", "\\");
    /// let mut reader = JsonReader::new(trace.as_bytes());
    /// let Some((_, Item::Event(event))) = reader.next()? else { panic!() };
    /// assert_eq!(event.name, r"C:\Users\me");
    /// assert_eq!(reader.mends(), 1);
    /// # Ok::<(), hairline_formats::DecodeError>(())
    /// ```
    #[must_use]
    pub fn mends(&self) -> u64 {
        self.mends
    }

    /// Returns the number of traces that followed the end of another one so far, as in a file to which a
    /// second run appended.
    ///
    /// ```
    /// let trace = br#"[{"name": "run 1", "ph": "i"}] [{"name": "run 2", "ph": "i"}]"#;
    /// let mut reader = hairline_formats::trace_event_json::JsonReader::new(&trace[..]);
    /// let mut count = 0;
    /// while reader.next()?.is_some() {
    ///     count += 1;
    /// }
    /// assert_eq!((count, reader.restarts()), (2, 1));
    /// # Ok::<(), hairline_formats::DecodeError>(())
    /// ```
    #[must_use]
    pub fn restarts(&self) -> u64 {
        self.sections.restarts
    }

    /// Returns the next item and the offset of its first byte; `None` at the end of the input.
    ///
    /// # Errors
    /// * A member is not JSON, an event has a time that is no number, or an object exceeds the limit. The next
    ///   call returns the item after it.
    /// * The input ends inside a value ([`DecodeError::is_truncated`]), is no trace, or cannot be read. The
    ///   next call returns `None`.
    #[allow(clippy::should_implement_trait)] // an Iterator's item cannot borrow from the reader
    pub fn next(&mut self) -> Result<Option<(u64, Item<'_>)>, DecodeError> {
        self.sections.input.consume(std::mem::take(&mut self.current));
        if let Some(end) = self.sections.plain_event(&mut self.members) {
            self.current = end;
            let (offset, bytes) = (self.sections.input.offset(), &self.sections.input.available()[..end]);
            // `plain_event` has checked the text.
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let mut event = Event::default();
            if let Err(fault) = parse::fill(&mut event, text, &self.members) {
                let (at, kind) = fault.at(text, 0);
                return Err(DecodeError::new(offset + at.min(end) as u64, kind));
            }
            return Ok(Some((offset, Item::Event(event))));
        }
        match self.sections.find() {
            Ok(Some(found)) => self.item(found).map(Some),
            Ok(None) => Ok(None),
            Err(e) => {
                if !matches!(e.kind, DecodeErrorKind::TooLarge { .. }) {
                    self.sections.end();
                }
                Err(e)
            }
        }
    }

    /// Reads what was found.
    fn item(&mut self, found: Found) -> Result<(u64, Item<'_>), DecodeError> {
        let (end, is_json) = (found.end, found.is_json);
        self.current = end;
        let offset = self.sections.input.offset();
        let bytes = &self.sections.input.available()[..end];
        let bytes = if is_json { bytes } else { &self.sections.json };
        let (text, found, is_text) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, found, true),
            Err(_) => {
                let found = found.repaired(bytes, &mut self.repaired);
                (self.repaired.as_str(), found, false)
            }
        };
        let item = found.item(text).map_err(|(at, kind)| {
            // The place of a fault in what was written anew is none in the input.
            let at = if is_json { at.min(end) } else { 0 };
            DecodeError::new(offset + at as u64, kind)
        })?;
        self.repairs += u64::from(!is_text);
        self.mends += u64::from(!is_json);
        Ok((offset, item))
    }
}

impl Found {
    /// Reads the item. Returns the position and kind of a fault.
    fn item(self, text: &str) -> Result<Item<'_>, (usize, DecodeErrorKind)> {
        let (key, value) = (&text[self.key], &text[self.value.clone()]);
        let item = match self.section {
            Section::Samples => parse::sample(value).map(Item::Sample),
            Section::Frames => parse::stack_frame(key, value).map(Item::StackFrame),
            Section::Object => json::check(key)
                .and_then(|()| json::check(value))
                .map_err(Fault::Json)
                .map(|()| Item::Member { key: unquoted(key), value: Json::valid(value) }),
            _ => parse::event(value).map(Item::Event),
        };
        item.map_err(|fault| fault.at(value, self.value.start))
    }

    /// Copies the item to `into`, with U+FFFD for bytes that are not UTF-8.
    fn repaired(self, window: &[u8], into: &mut String) -> Self {
        *into = String::new(); // frees the previous one first
        repair(&window[self.key], into);
        let start = into.len();
        repair(&window[self.value], into);
        Self { key: 0..start, value: start..into.len(), ..self }
    }
}
