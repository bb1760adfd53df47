//! Streams what a trace holds, in memory for a buffer (64 KiB) or the largest object that is handed out.

use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;

use crate::input::Input;
use crate::trace_event_json::event::{Event, Sample, StackFrame};
use crate::trace_event_json::json::{self, Json, unquoted};
use crate::trace_event_json::parse::{self, Fault};
use crate::trace_event_json::window::{End, is_space};
use crate::{DecodeError, DecodeErrorKind};

/// The largest object, or other value, that a [`Reader`] hands out unless [told otherwise](Reader::limit), in bytes.
pub const LIMIT: usize = 8 << 20;

/// Reads a trace, object by object.
///
/// ```
/// use hairline_formats::trace_event_json::{Item, Phase, Reader};
///
/// let trace = r#"[{"name": "read", "ph": "X", "ts": 1.5, "dur": 2, "pid": 7, "tid": 8}"#; // cut: there is no ]
/// let mut reader = Reader::new(trace.as_bytes());
/// while let Some((offset, item)) = reader.next()? {
///     if let Item::Event(event) = item {
///         assert_eq!((offset, &*event.name, event.ph), (1, "read", Some(Phase::Complete)));
///         assert_eq!((event.ts, event.dur), (Some(1_500), Some(2_000)));
///     }
/// }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    /// Bytes of what was given out last.
    given: usize,
    limit: usize,
    place: Place,
    skipped: u64,
    /// What was given out last, if it was not UTF-8.
    repaired: String,
    repairs: u64,
}

/// What a trace holds.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant)] // events are nearly all there is
#[non_exhaustive]
pub enum Item<'a> {
    /// An event.
    Event(Event<'a>),
    /// An entry of `stackFrames`.
    StackFrame(StackFrame<'a>),
    /// An element of `samples`.
    Sample(Sample<'a>),
    /// Any other member of the object form: `displayTimeUnit`, `otherData`, `systemTraceEvents`, `powerTraceAsString`,
    /// `controllerTraceDataKey`, or a name that is the tracer's own.
    Member {
        /// Its name.
        key: Cow<'a, str>,
        /// Its value.
        value: Json<'a>,
    },
}

/// Where in the trace the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
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

/// Something that is in memory in full.
struct Found {
    place: Place,
    /// The name of a member; empty for an element of an array.
    key: Range<usize>,
    value: Range<usize>,
}

impl<R: Read> Reader<R> {
    /// Reads from `reader`, which needs no buffer of its own.
    pub fn new(reader: R) -> Self {
        Self {
            input: Input::new(reader),
            given: 0,
            limit: LIMIT,
            place: Place::Start,
            skipped: 0,
            repaired: String::new(),
            repairs: 0,
        }
    }

    /// Hands out objects of up to this many bytes, instead of [`LIMIT`]. The reader keeps up to twice as much memory as the
    /// largest it handed out; of one that is not UTF-8, up to three times its size more.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Values that were passed over so far: elements of the arrays of events and samples that are no objects, and
    /// members of the object form that are larger than the limit.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Objects that were not UTF-8 so far: what was wrong in them is U+FFFD.
    #[must_use]
    pub fn repairs(&self) -> u64 {
        self.repairs
    }

    /// The next of what the trace holds, and the byte it begins at; None at the end, be it only that of the input.
    ///
    /// # Errors
    /// An object that is not JSON, that has a time which is no number, or that is larger than the limit: the next call goes on
    /// with what follows it. An input that ends inside a value ([`DecodeError::is_truncated`]), is no trace at all or cannot be
    /// read: the next call gives None.
    #[allow(clippy::should_implement_trait)] // the item borrows from the reader, which an Iterator's item cannot
    pub fn next(&mut self) -> Result<Option<(u64, Item<'_>)>, DecodeError> {
        self.input.consume(std::mem::take(&mut self.given));
        let found = match self.find() {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(None),
            Err(e) => {
                if !matches!(e.kind, DecodeErrorKind::TooLarge { .. }) {
                    self.place = Place::Ended;
                }
                return Err(e);
            }
        };
        self.given = found.value.end;
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
            Err((at, kind)) => Err(DecodeError::new(offset + at.min(self.given) as u64, kind)),
        }
    }

    /// Makes the next object or member available; None at the end.
    fn find(&mut self) -> Result<Option<Found>, DecodeError> {
        loop {
            let Some(byte) = self.peek()? else {
                self.place = Place::Ended;
                return Ok(None);
            };
            let place = self.place;
            match (place, byte) {
                (Place::Start, b'[') => self.enter(1, Place::Array),
                (Place::Start, b'{') => self.enter(1, Place::Object),
                (Place::Array, b']') | (Place::Object, b'}') => self.enter(1, Place::After),
                (Place::Events | Place::Samples, b']') | (Place::Frames, b'}') => {
                    self.enter(1, Place::Object);
                }
                (Place::Array | Place::Events | Place::Samples, b'{') => {
                    let value = 0..self.object()?;
                    return Ok(Some(Found { place, key: 0..0, value }));
                }
                (
                    Place::Array | Place::Events | Place::Samples,
                    b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'"' | b'[',
                ) => self.pass()?,
                (Place::Object | Place::Frames, b'"') => {
                    if let Some(found) = self.member()? {
                        return Ok(Some(found));
                    }
                }
                _ => return Err(self.unexpected(0)),
            }
        }
    }

    /// The next byte that is not between things, none of which are passed.
    fn peek(&mut self) -> Result<Option<u8>, DecodeError> {
        if self.place == Place::Start && self.input.fill(3)?.starts_with("\u{feff}".as_bytes()) {
            self.input.consume(3);
        }
        // Commas too many, or too few, do no harm.
        let comma = if matches!(self.place, Place::Start | Place::After) { b' ' } else { b',' };
        loop {
            let available = match self.input.available() {
                [] => self.input.fill(1)?,
                available => available,
            };
            if available.is_empty() || self.place == Place::Ended {
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

    fn enter(&mut self, len: usize, place: Place) {
        self.input.consume(len);
        self.place = place;
    }

    /// Where the object ends that begins here.
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

    /// The member that begins here; None if there is nothing to give out of it, and it is passed over or entered.
    fn member(&mut self) -> Result<Option<Found>, DecodeError> {
        let (place, offset) = (self.place, self.input.offset());
        let truncated = || DecodeError::truncated(offset, "a member of an object");
        let key = match self.input.value_end(0, self.limit)? {
            End::At(end) => end,
            // Without its name nothing can be said of its value, nor where that ends.
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
        let inside = match (place, &self.input.available()[..key], byte) {
            (Place::Object, b"\"traceEvents\"", b'[') => Some(Place::Events),
            (Place::Object, b"\"stackFrames\"", b'{') => Some(Place::Frames),
            (Place::Object, b"\"samples\"", b'[') => Some(Place::Samples),
            _ => None,
        };
        if let Some(inside) = inside {
            self.enter(value + 1, inside);
            return Ok(None);
        }
        match self.input.value_end(value, self.limit)? {
            End::At(end) if end == value => Err(self.unexpected(value)),
            End::At(end) => Ok(Some(Found { place, key: 0..key, value: value..end })),
            End::TooLarge => {
                self.skipped += 1;
                Ok(None)
            }
            End::Cut => Err(truncated()),
        }
    }

    /// The byte that is `ahead` has no place here.
    fn unexpected(&self, ahead: usize) -> DecodeError {
        let expected = match self.place {
            Place::Start => "[ or {, with which a trace begins,",
            Place::Array | Place::Events | Place::Samples => "an object or ]",
            Place::Object | Place::Frames if ahead > 0 => "a value",
            Place::Object | Place::Frames => "a name or }",
            Place::After | Place::Ended => "the end of the trace",
        };
        DecodeError::new(self.input.offset() + ahead as u64, DecodeErrorKind::Unexpected(expected))
    }
}

impl Found {
    /// What it says; else where it is wrong, and how.
    fn item(self, text: &str) -> Result<Item<'_>, (usize, DecodeErrorKind)> {
        let (key, value) = (&text[self.key], &text[self.value.clone()]);
        let item = match self.place {
            Place::Samples => parse::sample(value).map(Item::Sample),
            Place::Frames => parse::stack_frame(key, value).map(Item::StackFrame),
            Place::Object => json::check(key)
                .and_then(|()| json::check(value))
                .map_err(Fault::Json)
                .map(|()| Item::Member { key: unquoted(key), value: Json::valid(value) }),
            _ => parse::event(value).map(Item::Event),
        };
        item.map_err(|fault| match fault {
            Fault::Time { field, at } => (self.value.start + at, DecodeErrorKind::Time { field }),
            Fault::Json(e) => (self.value.start + position(value, &e), DecodeErrorKind::Json(why(&e))),
        })
    }

    /// The same with U+FFFD for what is not UTF-8, in `into`.
    fn repaired(self, window: &[u8], into: &mut String) -> Self {
        *into = String::new(); // not to hold two of them
        repair(&window[self.key], into);
        let start = into.len();
        repair(&window[self.value], into);
        Self { place: self.place, key: 0..start, value: start..into.len() }
    }
}

/// Appends `bytes` as text, in memory for that and no more: it may be three times as long.
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

/// Where in `text` the parser stood.
fn position(text: &str, e: &serde_json::Error) -> usize {
    let before: usize = text.split_inclusive('\n').take(e.line().saturating_sub(1)).map(str::len).sum();
    (before + e.column().saturating_sub(1)).min(text.len())
}

/// What the parser says, without its line and column.
fn why(e: &serde_json::Error) -> String {
    let text = e.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}
