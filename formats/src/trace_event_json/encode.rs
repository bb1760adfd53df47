//! Writes events and values as JSON.

use crate::Value;
use crate::trace_event_json::event::{Args, Event, Id, Id2};
use crate::trace_event_json::json::Json;
use crate::trace_event_json::phase::{InstantScope, Phase};
use crate::trace_event_json::put::{put_display, put_integer, put_microseconds, put_string};
use crate::value::MAX_DEPTH;

/// Appends an event as an object on one line.
///
/// ```
/// use hairline_formats::trace_event_json::{Event, Id, Phase, put_event};
///
/// let mut line = Vec::new();
/// put_event(&mut line, &Event {
///     name: "read".into(),
///     ph: Some(Phase::Complete),
///     ts: Some(1_500),
///     dur: Some(2_000),
///     pid: Some(Id::Number(7)),
///     ..Event::default()
/// });
/// assert_eq!(line, br#"{"name":"read","ph":"X","ts":1.5,"dur":2,"pid":7}"#);
/// ```
pub fn put_event(out: &mut Vec<u8>, event: &Event<'_>) {
    let mut object = Object::new(out);
    object.text("name", &event.name);
    object.text("cat", &event.cat);
    object.letter("ph", event.ph.map(Phase::letter));
    object.time("ts", event.ts);
    object.time("dur", event.dur);
    object.time("tts", event.tts);
    object.time("tdur", event.tdur);
    object.id("pid", event.pid.as_ref());
    object.id("tid", event.tid.as_ref());
    object.id("id", event.id.as_ref());
    if event.id2 != Id2::default() {
        let mut id2 = Object::new(object.key("id2"));
        id2.id("local", event.id2.local.as_ref());
        id2.id("global", event.id2.global.as_ref());
        id2.end();
    }
    object.text("scope", &event.scope);
    object.letter("s", event.s.map(InstantScope::letter));
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

/// Appends arguments as an object.
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

/// Writes an object, member by member. Absent values are not written.
struct Object<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
}

impl<'o> Object<'o> {
    fn new(out: &'o mut Vec<u8>) -> Self {
        out.push(b'{');
        Self { out, first: true }
    }

    /// Begins a member. The caller appends the value to the returned output.
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if !self.first {
            self.out.push(b',');
        }
        self.first = false;
        put_string(self.out, key);
        self.out.push(b':');
        self.out
    }

    /// Begins a member whose name needs no escapes.
    #[inline(always)] // the length is then constant, and the copy is no call
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
/// Values that JSON lacks become text: a pointer is "0x" and its digits, a blob two hexadecimal digits for
/// each byte, and a floating point number that is not finite "NaN", "inf" or "-inf". Values nested deeper
/// than 32 levels become "...".
///
/// ```
/// use hairline_formats::Value;
/// use hairline_formats::trace_event_json::put_value;
///
/// let json = |value| {
///     let mut out = Vec::new();
///     put_value(&mut out, &value);
///     String::from_utf8(out).unwrap()
/// };
/// assert_eq!(json(Value::I64(-3)), "-3");
/// assert_eq!(json(Value::Str("a\n")), r#""a\n""#);
/// assert_eq!(json(Value::Pointer(255)), r#""0xff""#);
/// assert_eq!(json(Value::Blob(&[1, 2])), r#""0102""#);
/// assert_eq!(json(Value::F64(f64::NAN)), r#""NaN""#);
/// ```
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
