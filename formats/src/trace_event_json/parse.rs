//! Parses one object of a trace: an event, a frame or a sample.

use std::borrow::Cow;

use crate::trace_event_json::event::{Args, Event, Id, Id2, Sample, StackFrame};
use crate::trace_event_json::json::{Json, members, unquoted};
use crate::trace_event_json::number;
use crate::trace_event_json::phase::{InstantScope, Phase};

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

pub(super) fn event(object: &str) -> Result<Event<'_>, Fault> {
    let mut event = Event::default();
    let mut times = Times::new(object);
    members(object, |key, raw| match &*key {
        "name" => event.name = text(raw),
        "cat" => event.cat = text(raw),
        "ph" => event.ph = letter(raw).map(Phase::from_letter),
        "ts" => event.ts = times.nanoseconds("ts", raw),
        "dur" => event.dur = times.nanoseconds("dur", raw),
        "tts" => event.tts = times.nanoseconds("tts", raw),
        "tdur" => event.tdur = times.nanoseconds("tdur", raw),
        "pid" => event.pid = id(raw),
        "tid" => event.tid = id(raw),
        "id" => event.id = id(raw),
        "id2" => event.id2 = id2(raw),
        "scope" => event.scope = text(raw),
        "args" => event.args = value(raw).map_or(Args::None, Args::Json),
        "bp" => event.bp = text(raw),
        "s" => event.s = letter(raw).map(InstantScope::from_letter),
        "sf" => event.sf = id(raw),
        "stack" => event.stack = value(raw),
        "esf" => event.esf = id(raw),
        "estack" => event.estack = value(raw),
        "cname" => event.cname = text(raw),
        "bind_id" => event.bind_id = id(raw),
        "flow_in" => event.flow_in = truth(raw),
        "flow_out" => event.flow_out = truth(raw),
        _ => event.skipped = event.skipped.saturating_add(1),
    })?;
    times.fault.map_or(Ok(event), Err)
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
