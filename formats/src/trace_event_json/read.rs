//! Streams the items of a trace. Memory: a buffer of 64 KiB, or the largest object that is returned.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use crate::input::Input;
use crate::trace_event_json::event::{Event, Sample, StackFrame};
use crate::trace_event_json::json::{self, Json, unquoted};
use crate::trace_event_json::parse::{self, Fault};
use crate::trace_event_json::tokens::{self, Member, Split};
use crate::trace_event_json::window::{End, is_space};
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
    input: Input<R>,
    /// The size of the item that was returned last, in bytes.
    current: usize,
    limit: usize,
    section: Section,
    skipped: u64,
    /// The text of the item that was returned last, if it was not UTF-8.
    repaired: String,
    repairs: u64,
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

/// The section of the trace in which the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Section {
    Start,
    /// In the array form.
    Array,
    /// In the object form: between its members.
    Object,
    /// In its `traceEvents`.
    Events,
    /// In its `stackFrames`.
    Frames,
    /// In its `samples`.
    Samples,
    /// After the last bracket.
    After,
    Ended,
}

/// An object or a member that is complete in memory.
struct Found {
    section: Section,
    /// The member's name; empty for an element of an array.
    key: Range<usize>,
    value: Range<usize>,
}

impl<R: Read> JsonReader<R> {
    /// Creates a reader of `reader`, which needs no buffer of its own.
    pub fn new(reader: R) -> Self {
        Self {
            input: Input::new(reader),
            current: 0,
            limit: LIMIT,
            section: Section::Start,
            skipped: 0,
            repaired: String::new(),
            repairs: 0,
            members: Vec::new(),
        }
    }

    /// Limits the objects that are returned to `bytes`. The default is [`LIMIT`].
    ///
    /// The reader's buffer grows to at most twice the size of the largest object that it returns. An object
    /// that is not UTF-8 takes up to three times its size in addition.
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
        self.limit = bytes;
        self
    }

    /// Returns the number of values that were passed over so far: elements of the arrays of events and
    /// samples that are no objects, and members of the object form above the limit.
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
        self.skipped
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

    /// Returns the next item and the offset of its first byte; `None` at the end of the trace or of the
    /// input.
    ///
    /// # Errors
    /// * An object is not JSON, has a time that is no number, or exceeds the limit. The next call returns the
    ///   item after it.
    /// * The input ends inside a value ([`DecodeError::is_truncated`]), is no trace, or cannot be read. The
    ///   next call returns `None`.
    #[allow(clippy::should_implement_trait)] // an Iterator's item cannot borrow from the reader
    pub fn next(&mut self) -> Result<Option<(u64, Item<'_>)>, DecodeError> {
        self.input.consume(std::mem::take(&mut self.current));
        if let Some(end) = self.plain_event() {
            self.current = end;
            let (offset, bytes) = (self.input.offset(), &self.input.available()[..end]);
            // `plain_event` has checked the text.
            let text = std::str::from_utf8(bytes).unwrap_or_default();
            let mut event = Event::default();
            if let Err(fault) = parse::fill(&mut event, text, &self.members) {
                let (at, kind) = fault.at(text, 0);
                return Err(DecodeError::new(offset + at.min(end) as u64, kind));
            }
            return Ok(Some((offset, Item::Event(event))));
        }
        let found = match self.find() {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(e) => {
                if !matches!(e.kind, DecodeErrorKind::TooLarge { .. }) {
                    self.section = Section::Ended;
                }
                return Err(e);
            }
        };
        self.current = found.value.end;
        let offset = self.input.offset();
        let window = &self.input.available()[..found.value.end];
        let (text, found) = match std::str::from_utf8(window) {
            Ok(text) => (text, found),
            Err(_) => {
                self.repairs += 1;
                let found = found.repaired(window, &mut self.repaired);
                (self.repaired.as_str(), found)
            }
        };
        match found.item(text) {
            Ok(item) => Ok(Some((offset, item))),
            Err((at, kind)) => Err(DecodeError::new(offset + at.min(self.current) as u64, kind)),
        }
    }

    /// Splits the next object into its members if it is an event that is in memory. Returns its end, or
    /// `None` for everything else. May pass over white space and a comma.
    #[inline]
    fn plain_event(&mut self) -> Option<usize> {
        if !matches!(self.section, Section::Array | Section::Events) {
            return None;
        }
        let available = self.input.available();
        let passed = available.iter().position(|byte| !is_space(*byte) && *byte != b',')?;
        self.input.consume(passed);
        let available = self.input.available();
        if available[0] != b'{' {
            return None;
        }
        let Split { end, is_ascii } = tokens::object(available, &mut self.members)?;
        let is_text = is_ascii || std::str::from_utf8(&available[..end]).is_ok();
        (end <= self.limit && is_text).then_some(end)
    }

    /// Reads the next object or member into memory. Returns `None` at the end.
    fn find(&mut self) -> Result<Option<Found>, DecodeError> {
        loop {
            let Some(byte) = self.peek()? else {
                self.section = Section::Ended;
                return Ok(None);
            };
            let section = self.section;
            match (section, byte) {
                (Section::Start, b'[') => self.enter(1, Section::Array),
                (Section::Start, b'{') => self.enter(1, Section::Object),
                (Section::Array, b']') | (Section::Object, b'}') => self.enter(1, Section::After),
                (Section::Events | Section::Samples, b']') | (Section::Frames, b'}') => {
                    self.enter(1, Section::Object);
                }
                (Section::Array | Section::Events | Section::Samples, b'{') => {
                    let value = 0..self.object()?;
                    return Ok(Some(Found { section, key: 0..0, value }));
                }
                (
                    Section::Array | Section::Events | Section::Samples,
                    b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'"' | b'[',
                ) => self.pass()?,
                (Section::Object | Section::Frames, b'"') => {
                    if let Some(found) = self.member()? {
                        return Ok(Some(found));
                    }
                }
                _ => return Err(self.unexpected(0)),
            }
        }
    }

    /// Passes over white space and commas. Returns the next byte, which is not consumed.
    fn peek(&mut self) -> Result<Option<u8>, DecodeError> {
        if self.section == Section::Start && self.input.fill(3)?.starts_with("\u{feff}".as_bytes()) {
            self.input.consume(3);
        }
        // Extra and missing commas are tolerated.
        let comma = if matches!(self.section, Section::Start | Section::After) { b' ' } else { b',' };
        loop {
            let available = match self.input.available() {
                [] => self.input.fill(1)?,
                available => available,
            };
            if available.is_empty() || self.section == Section::Ended {
                return Ok(None);
            }
            let next = available.iter().position(|byte| !is_space(*byte) && *byte != comma);
            let (passed, byte) = (next.unwrap_or(available.len()), next.map(|at| available[at]));
            self.input.consume(passed);
            if byte.is_some() {
                return Ok(byte);
            }
        }
    }

    fn enter(&mut self, len: usize, section: Section) {
        self.input.consume(len);
        self.section = section;
    }

    /// Returns the length of the object that begins here.
    fn object(&mut self) -> Result<usize, DecodeError> {
        let offset = self.input.offset();
        match self.input.value_end(0, self.limit)? {
            End::At(end) => Ok(end),
            End::TooLarge => {
                let what = "an object";
                Err(DecodeError::new(offset, DecodeErrorKind::TooLarge { what, limit: self.limit }))
            }
            End::Cut => Err(DecodeError::truncated(offset, "an object")),
        }
    }

    /// Passes over a value that is no object.
    fn pass(&mut self) -> Result<(), DecodeError> {
        let offset = self.input.offset();
        match self.input.value_end(0, self.limit)? {
            End::At(end) => self.input.consume(end),
            End::TooLarge => {}
            End::Cut => return Err(DecodeError::truncated(offset, "a value")),
        }
        self.skipped += 1;
        Ok(())
    }

    /// Returns the member that begins here. Returns `None` if it is passed over, or is a section that is
    /// entered.
    fn member(&mut self) -> Result<Option<Found>, DecodeError> {
        let (section, offset) = (self.section, self.input.offset());
        let truncated = || DecodeError::truncated(offset, "a member of an object");
        let key = match self.input.value_end(0, self.limit)? {
            End::At(end) => end,
            // Without the name, the end of the value cannot be found.
            End::TooLarge => {
                return Err(DecodeError::new(offset, DecodeErrorKind::Unexpected("a shorter name")));
            }
            End::Cut => return Err(truncated()),
        };
        let (colon, byte) = self.input.beyond_space(key, self.limit)?.ok_or_else(truncated)?;
        if byte != b':' {
            return Err(DecodeError::new(offset + colon as u64, DecodeErrorKind::Unexpected("a colon")));
        }
        let (value, byte) = self.input.beyond_space(colon + 1, self.limit)?.ok_or_else(truncated)?;
        let inside = match (section, &self.input.available()[..key], byte) {
            (Section::Object, b"\"traceEvents\"", b'[') => Some(Section::Events),
            (Section::Object, b"\"stackFrames\"", b'{') => Some(Section::Frames),
            (Section::Object, b"\"samples\"", b'[') => Some(Section::Samples),
            _ => None,
        };
        if let Some(inside) = inside {
            self.enter(value + 1, inside);
            return Ok(None);
        }
        match self.input.value_end(value, self.limit)? {
            End::At(end) if end == value => Err(self.unexpected(value)),
            End::At(end) => Ok(Some(Found { section, key: 0..key, value: value..end })),
            End::TooLarge => {
                self.skipped += 1;
                Ok(None)
            }
            End::Cut => Err(truncated()),
        }
    }

    /// The error of a byte, `ahead` bytes from here, that cannot follow.
    fn unexpected(&self, ahead: usize) -> DecodeError {
        let expected = match self.section {
            Section::Start => "[ or {, with which a trace begins,",
            Section::Array | Section::Events | Section::Samples => "an object or ]",
            Section::Object | Section::Frames if ahead > 0 => "a value",
            Section::Object | Section::Frames => "a name or }",
            Section::After | Section::Ended => "the end of the trace",
        };
        DecodeError::new(self.input.offset() + ahead as u64, DecodeErrorKind::Unexpected(expected))
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
        Self { section: self.section, key: 0..start, value: start..into.len() }
    }
}

impl Fault {
    /// Returns the position and kind of the fault of an object with this `text`, which begins at `start`.
    fn at(self, text: &str, start: usize) -> (usize, DecodeErrorKind) {
        match self {
            Self::Time { field, at } => (start + at, DecodeErrorKind::Time { field }),
            Self::Json(e) => (start + position(text, &e), DecodeErrorKind::Json(why(&e))),
        }
    }
}

/// Appends `bytes` as text. Reserves exactly its length, which can be three times that of the bytes.
fn repair(bytes: &[u8], into: &mut String) {
    let replacement =
        |chunk: &std::str::Utf8Chunk<'_>| if chunk.invalid().is_empty() { "" } else { "\u{fffd}" };
    into.reserve_exact(
        bytes.utf8_chunks().map(|chunk| chunk.valid().len() + replacement(&chunk).len()).sum(),
    );
    for chunk in bytes.utf8_chunks() {
        into.push_str(chunk.valid());
        into.push_str(replacement(&chunk));
    }
}

/// Returns the parser's position in `text`.
fn position(text: &str, e: &serde_json::Error) -> usize {
    let before: usize = text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
    (before + e.column().saturating_sub(1)).min(text.len())
}

/// Returns the parser's message without line and column.
fn why(e: &serde_json::Error) -> String {
    let text = e.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}
