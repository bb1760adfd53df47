//! Parses one object of a trace: an event, a frame or a sample.

use std::borrow::Cow;

use crate::trace_event_json::event::{Args, Event, Id, Id2, Sample, StackFrame};
use crate::trace_event_json::json::{Json, members, unquoted};
use crate::trace_event_json::number;
use crate::trace_event_json::phase::{InstantScope, Phase};
use crate::trace_event_json::tokens::{Key, Member};

/// The fault of an object.
#[derive(Debug)]
pub(super) enum Fault {
    /// The object is not JSON.
    Json(serde_json::Error),
    /// A field that must be a time is none; `at` is the position of its value.
    Time { field: &'static str, at: usize },
}

impl From<serde_json::Error> for Fault {
    fn from(e: serde_json::Error) -> Self {
        Self::Json(e)
    }
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
        keys::PH => event.ph = letter(raw).map(Phase::from_letter),
        keys::TS => event.ts = times.nanoseconds("ts", raw),
        keys::DUR => event.dur = times.nanoseconds("dur", raw),
        keys::TTS => event.tts = times.nanoseconds("tts", raw),
        keys::TDUR => event.tdur = times.nanoseconds("tdur", raw),
        keys::PID => event.pid = id(raw),
        keys::TID => event.tid = id(raw),
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

    pub(super) const NAME: Key = Key::of("name");
    pub(super) const CAT: Key = Key::of("cat");
    pub(super) const PH: Key = Key::of("ph");
    pub(super) const TS: Key = Key::of("ts");
    pub(super) const DUR: Key = Key::of("dur");
    pub(super) const TTS: Key = Key::of("tts");
    pub(super) const TDUR: Key = Key::of("tdur");
    pub(super) const PID: Key = Key::of("pid");
    pub(super) const TID: Key = Key::of("tid");
    pub(super) const ID: Key = Key::of("id");
    pub(super) const ID2: Key = Key::of("id2");
    pub(super) const SCOPE: Key = Key::of("scope");
    pub(super) const ARGS: Key = Key::of("args");
    pub(super) const BP: Key = Key::of("bp");
    pub(super) const S: Key = Key::of("s");
    pub(super) const SF: Key = Key::of("sf");
    pub(super) const STACK: Key = Key::of("stack");
    pub(super) const ESF: Key = Key::of("esf");
    pub(super) const ESTACK: Key = Key::of("estack");
    pub(super) const CNAME: Key = Key::of("cname");
    pub(super) const BIND_ID: Key = Key::of("bind_id");
    pub(super) const FLOW_IN: Key = Key::of("flow_in");
    pub(super) const FLOW_OUT: Key = Key::of("flow_out");
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
        let time = match quoted(raw) {
            Some(text) => number::nanoseconds(&text),
            None => number::nanoseconds(raw),
        };
        if time.is_none() && self.fault.is_none() {
            // `raw` is a part of `object`, so the difference of their addresses is its position.
            let at = raw.as_ptr().addr().saturating_sub(self.object.as_ptr().addr());
            self.fault = Some(Fault::Time { field, at });
        }
        time
    }
}

fn quoted(raw: &str) -> Option<Cow<'_, str>> {
    raw.starts_with('"').then(|| unquoted(raw))
}

fn text(raw: &str) -> Cow<'_, str> {
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
