//! Finds the items of a trace, section by section.

use std::io::Read;
use std::ops::Range;

use crate::input::Input;
use crate::trace_event_json::ahead::{Ahead, Begins};
use crate::trace_event_json::object::Object;
use crate::trace_event_json::parse;
use crate::trace_event_json::tokens::{self, Member, Split};
use crate::trace_event_json::window::{End, is_no_word, is_space, wanted};
use crate::{DecodeError, DecodeErrorKind};

/// The input of a trace.
#[derive(Debug)]
pub(super) struct Sections<R> {
    pub(super) input: Input<R>,
    pub(super) limit: usize,
    section: Section,
    ahead: Ahead,
    pub(super) skipped: u64,
    pub(super) restarts: u64,
    /// What the latest object that is not JSON means.
    pub(super) json: Vec<u8>,
}

/// The section of the trace in which the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
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
pub(super) struct Found {
    pub(super) section: Section,
    /// Where it ends.
    pub(super) end: usize,
    /// Whether it may be JSON. Otherwise [`Sections::json`] has what it means.
    pub(super) is_json: bool,
    /// The member's name; empty for an element of an array.
    pub(super) key: Range<usize>,
    pub(super) value: Range<usize>,
}

impl<R: Read> Sections<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            input: Input::new(reader),
            limit,
            section: Section::Start,
            ahead: Ahead::default(),
            skipped: 0,
            restarts: 0,
            json: Vec::new(),
        }
    }

    /// Ends the trace, after a fault behind which nothing can be found.
    pub(super) fn end(&mut self) {
        self.section = Section::Ended;
    }

    /// Splits the next object into its members if it is an event that is in memory. Returns its end, or
    /// `None` for everything else. May pass over white space and a comma before an event.
    #[inline]
    pub(super) fn plain_event(&mut self, members: &mut Vec<Member>) -> Option<usize> {
        if !matches!(self.section, Section::Array | Section::Events) {
            return None;
        }
        let available = self.input.available();
        let begin = available.iter().position(|byte| !is_space(*byte) && *byte != b',')?;
        let object = &available[begin..];
        if object[0] != b'{' {
            return None;
        }
        let Split { end, is_ascii } = tokens::object(object, members)?;
        let is_text = is_ascii || std::str::from_utf8(&object[..end]).is_ok();
        if end > self.limit || !is_text || !parse::has_phase(members) {
            return None;
        }
        self.input.consume(begin);
        Some(end)
    }

    /// Reads the next object or member into memory. Returns `None` at the end.
    pub(super) fn find(&mut self) -> Result<Option<Found>, DecodeError> {
        loop {
            let Some(byte) = self.peek()? else {
                self.section = Section::Ended;
                return Ok(None);
            };
            let section = self.section;
            match (section, byte) {
                (Section::Start, b'[') => self.enter(1, Section::Array),
                // Without brackets around them: an event on each line.
                (Section::Start, b'{') if self.begins_event()? => self.enter(0, Section::Array),
                (Section::Start, b'{') => self.enter(1, Section::Object),
                (Section::Start, _) => return Err(self.unexpected()),
                (Section::After, b'[' | b'{') if self.begins_trace()? => self.restart(),
                // A second run, and the first one did not close its brackets.
                (Section::Array | Section::Events, b'[') if self.begins_array(false)? => self.restart(),
                (Section::Array | Section::Events | Section::Object | Section::Frames, b'{')
                    if self.begins_here()? == Begins::Trace =>
                {
                    self.restart();
                }
                (Section::Array, b']') | (Section::Object, b'}') => self.enter(1, Section::After),
                (Section::Events | Section::Samples, b']') | (Section::Frames, b'}') => {
                    self.enter(1, Section::Object);
                }
                (Section::Array | Section::Events | Section::Samples, b'{') => {
                    let Object { end, is_json } =
                        self.input.object(self.limit, &mut self.ahead, &mut self.json)?;
                    let value = 0..if is_json { end } else { self.json.len() };
                    return Ok(Some(Found { section, end, is_json, key: 0..0, value }));
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
                // Another writer of the file closed its bracket before this event.
                (Section::Object | Section::Frames, b'{') if self.begins_event()? => {
                    self.skipped += 1;
                    self.enter(0, Section::Events);
                }
                _ => self.pass_text()?,
            }
        }
    }

    /// Whether the object here is an event.
    fn begins_event(&mut self) -> Result<bool, DecodeError> {
        Ok(self.begins_here()? == Begins::Event)
    }

    /// Whether a trace begins at the bracket here: an object after it, or a name and a colon.
    fn begins_trace(&mut self) -> Result<bool, DecodeError> {
        let Some((_, byte)) = self.input.beyond_space(1, self.limit)? else { return Ok(false) };
        match (self.input.available()[0], byte) {
            (b'[', b']') | (b'{', b'"') => Ok(true),
            (b'[', _) => self.begins_array(true),
            _ => Ok(false),
        }
    }

    /// Whether an array of events begins at the bracket here, and with `after_others` also where strings,
    /// numbers or other words precede its first event. Inside of another array, that is a value.
    fn begins_array(&mut self, after_others: bool) -> Result<bool, DecodeError> {
        self.look_ahead(|ahead, bytes, is_all, offset| {
            ahead.begins_array(bytes, is_all, after_others, offset)
        })
    }

    /// What the object here is.
    fn begins_here(&mut self) -> Result<Begins, DecodeError> {
        self.look_ahead(|ahead, bytes, is_all, offset| ahead.begins(bytes, is_all, 0, offset))
    }

    /// Reads more bytes until `look` says something about them.
    fn look_ahead<T>(
        &mut self,
        look: impl Fn(&mut Ahead, &[u8], bool, u64) -> Option<T>,
    ) -> Result<T, DecodeError> {
        let mut is_all = false;
        loop {
            let (offset, available) = (self.input.offset(), self.input.available());
            if let Some(found) = look(&mut self.ahead, available, is_all, offset) {
                return Ok(found);
            }
            let seen = available.len();
            is_all = self.input.fill(wanted(seen))?.len() == seen;
        }
    }

    /// Begins anew with another trace.
    fn restart(&mut self) {
        self.restarts += 1;
        self.enter(0, Section::Start);
    }

    /// Passes over text that is no value: to the end of the line, or to the next event.
    fn pass_text(&mut self) -> Result<(), DecodeError> {
        self.skipped += 1;
        self.input.consume(1);
        loop {
            let available = match self.input.available() {
                [] => self.input.fill(1)?,
                available => available,
            };
            let stop = available.iter().position(|byte| matches!(byte, b'\n' | b'{' | b']'));
            let len = stop.unwrap_or(available.len());
            if len == 0 && available.is_empty() {
                return Ok(());
            }
            self.input.consume(len);
            match stop.map(|_| self.input.available()[0]) {
                None => {}
                Some(b'\n') => return Ok(()),
                Some(b']') if self.section != Section::After && self.is_last_bracket()? => return Ok(()),
                Some(b'{') if self.begins_here()? != Begins::Other => return Ok(()),
                Some(_) => self.input.consume(1),
            }
        }
    }

    /// Whether the bracket here ends an array of the trace: what follows is the end, a line or a member.
    fn is_last_bracket(&mut self) -> Result<bool, DecodeError> {
        let next = self.input.beyond_space(1, self.limit)?;
        Ok(next.is_none_or(|(at, byte)| {
            matches!(byte, b',' | b'}' | 0) || self.input.available()[..at].contains(&b'\n')
        }))
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

    /// Passes over a value that is no object.
    fn pass(&mut self) -> Result<(), DecodeError> {
        let offset = self.input.offset();
        match self.input.value_end(0, self.limit)? {
            End::At(end) => self.input.consume(end),
            End::TooLarge => {}
            // A word may end with the input.
            End::Cut => match self.input.available() {
                [b'"' | b'[', ..] | [] => return Err(DecodeError::truncated(offset, "a value")),
                word => {
                    let len = word.len();
                    self.input.consume(len);
                }
            },
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
            self.pass_text()?;
            return Ok(None);
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
        match self.input.member_end(value, self.limit)? {
            End::At(end) if end == value => {
                self.pass_text()?;
                Ok(None)
            }
            End::At(end) => Ok(Some(Found { section, end, is_json: true, key: 0..key, value: value..end })),
            End::TooLarge => {
                self.skipped += 1;
                Ok(None)
            }
            // What has begun wrong is wrong, whatever followed.
            End::Cut => match self.input.available() {
                all if all.get(value..).is_some_and(is_no_word) => {
                    let end = all.len();
                    Ok(Some(Found { section, end, is_json: true, key: 0..key, value: value..end }))
                }
                _ => Err(truncated()),
            },
        }
    }

    /// The error of a byte with which no trace begins.
    fn unexpected(&self) -> DecodeError {
        let expected = "[ or {, with which a trace begins,";
        DecodeError::new(self.input.offset(), DecodeErrorKind::Unexpected(expected))
    }
}
