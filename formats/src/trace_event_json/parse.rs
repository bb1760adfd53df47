//! Parses one object of a trace: an event, a frame or a sample.

use std::borrow::Cow;

use crate::DecodeErrorKind;
use crate::trace_event_json::event::{Args, Event, Id, Id2, Sample, StackFrame};
use crate::trace_event_json::json::{Json, members, unquoted};
use crate::trace_event_json::number;
use crate::trace_event_json::phase::{InstantScope, Phase};
use crate::trace_event_json::tokens::{Key, Member, plain_end};

/// The fault of an object.
#[derive(Debug)]
pub(super) enum Fault {
    /// The object is not JSON.
    Json(serde_json::Error),
    /// A field that must be a time is none; `at` is the position of its value.
    Time { field: &'static str, at: usize },
}

impl Fault {
    /// Returns the position and kind of the fault of an object with this `text`, which begins at `start`.
    pub(super) fn at(self, text: &str, start: usize) -> (usize, DecodeErrorKind) {
        match self {
            Self::Time { field, at } => (start + at, DecodeErrorKind::Time { field }),
            Self::Json(e) => (start + position(text, &e), DecodeErrorKind::Json(why(&e))),
        }
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

impl From<serde_json::Error> for Fault {
    fn from(e: serde_json::Error) -> Self {
        Self::Json(e)
    }
}

/// Whether the object that is split into `members` has a phase, as events have.
#[inline]
pub(super) fn has_phase(members: &[Member]) -> bool {
    members.iter().any(|member| member.key == keys::PH)
}

/// Sets the fields of an event from an object that is split into `members` already. The event is large, so it
/// is filled where it is returned.
#[inline]
pub(super) fn fill<'a>(event: &mut Event<'a>, object: &'a str, members: &[Member]) -> Result<(), Fault> {
    let mut times = Times::new(object);
    let text = |(from, to): (u32, u32)| object.get(from as usize..to as usize).unwrap_or_default();
    for member in members {
        set(event, &mut times, member.key, text(member.value));
    }
    match times.fault {
        None => Ok(()),
        Some(fault) => Err(fault),
    }
}

pub(super) fn event(object: &str) -> Result<Event<'_>, Fault> {
    let mut event = Event::default();
    let mut times = Times::new(object);
    members(object, |key, raw| set(&mut event, &mut times, Key::of(&key), raw))?;
    times.fault.map_or(Ok(event), Err)
}

/// Sets a field of an event.
#[inline]
fn set<'a>(event: &mut Event<'a>, times: &mut Times<'_>, key: Key, raw: &'a str) {
    match key {
        keys::NAME => event.name = text(raw),
        keys::CAT => event.cat = text(raw),
        keys::PH => event.ph = phase(raw).map(Phase::from_letter),
        keys::TS => event.ts = times.nanoseconds("ts", raw),
        keys::DUR => event.dur = times.nanoseconds("dur", raw),
        keys::TTS => event.tts = cpu_time(event, raw),
        keys::TDUR => event.tdur = cpu_time(event, raw),
        keys::PID => set_id(&mut event.pid, raw),
        keys::TID => set_id(&mut event.tid, raw),
        keys::ID => event.id = id(raw),
        keys::ID2 => event.id2 = id2(raw),
        keys::SCOPE => event.scope = text(raw),
        keys::ARGS => event.args = value(raw).map_or(Args::None, Args::Json),
        keys::BP => event.bp = text(raw),
        keys::S => event.s = letter(raw).map(InstantScope::from_letter),
        keys::SF => event.sf = id(raw),
        keys::STACK => event.stack = value(raw),
        keys::ESF => event.esf = id(raw),
        keys::ESTACK => event.estack = value(raw),
        keys::CNAME => event.cname = text(raw),
        keys::BIND_ID => event.bind_id = id(raw),
        keys::FLOW_IN => event.flow_in = truth(raw),
        keys::FLOW_OUT => event.flow_out = truth(raw),
        _ => event.skipped = event.skipped.saturating_add(1),
    }
}

/// The names of an event's members.
mod keys {
    use crate::trace_event_json::tokens::Key;

    macro_rules! keys {
        ($($key:ident $name:literal)*) => {
            $(pub(super) const $key: Key = Key::of($name);)*
            pub(super) const ALL: &[Key] = &[$($key),*];
        };
    }

    keys! {
        NAME "name"
        CAT "cat"
        PH "ph"
        TS "ts"
        DUR "dur"
        TTS "tts"
        TDUR "tdur"
        PID "pid"
        TID "tid"
        ID "id"
        ID2 "id2"
        SCOPE "scope"
        ARGS "args"
        BP "bp"
        S "s"
        SF "sf"
        STACK "stack"
        ESF "esf"
        ESTACK "estack"
        CNAME "cname"
        BIND_ID "bind_id"
        FLOW_IN "flow_in"
        FLOW_OUT "flow_out"
    }
}

/// Whether this is the name of a member of an event.
pub(super) fn is_known(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|name| keys::ALL.contains(&Key::of(name)))
}

pub(super) fn sample(object: &str) -> Result<Sample<'_>, Fault> {
    let mut sample = Sample::default();
    let mut times = Times::new(object);
    members(object, |key, raw| match &*key {
        "cpu" => sample.cpu = id(raw),
        "tid" => sample.tid = id(raw),
        "ts" => sample.ts = times.nanoseconds("ts", raw),
        "name" => sample.name = text(raw),
        "sf" => sample.sf = id(raw),
        "weight" => sample.weight = id(raw),
        _ => {}
    })?;
    times.fault.map_or(Ok(sample), Err)
}

pub(super) fn stack_frame<'a>(name: &'a str, object: &'a str) -> Result<StackFrame<'a>, Fault> {
    crate::trace_event_json::json::check(name)?;
    let mut frame = StackFrame { id: text(name), ..StackFrame::default() };
    members(object, |key, raw| match &*key {
        "category" => frame.category = text(raw),
        "name" => frame.name = text(raw),
        "parent" => frame.parent = id(raw),
        _ => {}
    })?;
    Ok(frame)
}

/// Parses times and keeps the first fault.
struct Times<'a> {
    object: &'a str,
    fault: Option<Fault>,
}

impl<'a> Times<'a> {
    fn new(object: &'a str) -> Self {
        Self { object, fault: None }
    }

    fn nanoseconds(&mut self, field: &'static str, raw: &str) -> Option<i64> {
        if raw == "null" {
            return None;
        }
        let time = nanoseconds(raw);
        if time.is_none() && self.fault.is_none() {
            // `raw` is a part of `object`, so the difference of their addresses is its position.
            let at = raw.as_ptr().addr().saturating_sub(self.object.as_ptr().addr());
            self.fault = Some(Fault::Time { field, at });
        }
        time
    }
}

fn nanoseconds(raw: &str) -> Option<i64> {
    match quoted(raw) {
        Some(text) => number::nanoseconds(&text),
        None => number::nanoseconds(raw),
    }
}

/// A time without which the event is still one.
fn cpu_time(event: &mut Event<'_>, raw: &str) -> Option<i64> {
    let time = nanoseconds(raw);
    if time.is_none() && raw != "null" {
        event.skipped = event.skipped.saturating_add(1);
    }
    time
}

fn quoted(raw: &str) -> Option<Cow<'_, str>> {
    raw.starts_with('"').then(|| unquoted(raw))
}

/// A text, which is stored from registers: what the processor loads right after it was stored in other pieces
/// waits for the store.
#[inline]
fn text(raw: &str) -> Cow<'_, str> {
    match plain_text(raw) {
        Some(text) => Cow::Borrowed(text),
        None => any_text(raw),
    }
}

/// The content of a string without escapes.
#[inline(never)]
fn plain_text(raw: &str) -> Option<&str> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    (plain_end(inner.as_bytes(), 0, &mut 0) == inner.len()).then_some(inner)
}

#[inline(never)]
fn any_text(raw: &str) -> Cow<'_, str> {
    match quoted(raw) {
        Some(text) => text,
        None if raw == "null" => Cow::Borrowed(""),
        None => Cow::Borrowed(raw),
    }
}

fn value(raw: &str) -> Option<Json<'_>> {
    Some(Json::valid(raw)).filter(|value| !value.is_null())
}

fn letter(raw: &str) -> Option<char> {
    if let [b'"', letter @ (b'A'..=b'Z' | b'a'..=b'z'), b'"'] = raw.as_bytes() {
        return Some(char::from(*letter)); // nearly all phases
    }
    let text = quoted(raw)?;
    let mut letters = text.chars();
    letters.next().filter(|_| letters.next().is_none())
}

/// The letter of a phase: the first one, as importers have it.
fn phase(raw: &str) -> Option<char> {
    letter(raw).or_else(|| quoted(raw)?.chars().next())
}

/// Sets an id, nearly always from registers, as [`text`].
#[inline]
fn set_id<'a>(to: &mut Option<Id<'a>>, raw: &'a str) {
    *to = match number::plain_number(raw) {
        Some(number) => Some(Id::Number(number)),
        None => id(raw),
    };
}

fn id(raw: &str) -> Option<Id<'_>> {
    match quoted(raw) {
        Some(text) => Some(Id::Text(text)),
        None if raw == "null" => None,
        None => Some(number::id(raw)),
    }
}

fn id2(raw: &str) -> Id2<'_> {
    let mut id2 = Id2::default();
    if raw.starts_with('{') {
        // Valid JSON does not fail.
        let _ = members(raw, |key, raw| match &*key {
            "local" => id2.local = id(raw),
            "global" => id2.global = id(raw),
            _ => {}
        });
    }
    id2
}

fn truth(raw: &str) -> bool {
    !matches!(raw, "false" | "null" | "0" | "\"\"" | "\"false\"")
}
