//! The table `arg`: a row for each leaf of an argument.

use std::io;

use hairline_convert::{Event, StringId};
use hairline_formats::{Value, truncate_utf8};

use crate::rows::Rows;
use crate::schema::{TableId, arg};
use crate::source::Sink;

/// Deeper values are cut. Readers cut and count them already.
const DEEPEST: usize = 32;

/// The owner of arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArgOwner {
    pub(crate) time: i64,
    /// [`TableId::Slice`] or [`TableId::Instant`].
    pub(crate) table: TableId,
    pub(crate) id: u32,
}

/// The limit for the name of a leaf in a nested value, in bytes. Longer ones are cut. A short text can have
/// very many such leaves: `{"<a long name>": [0, 0, ...]}`.
const LONGEST: usize = 1 << 10;

/// The name of a leaf: without and with the indices of arrays.
#[derive(Debug, Default)]
struct Name {
    flat: String,
    key: String,
    /// The number of leaves whose names were cut.
    cut: u64,
}

/// Adds a part to a name, as far as there is room.
fn push(name: &mut String, part: &str) -> bool {
    let fits = truncate_utf8(part, LONGEST.saturating_sub(name.len()));
    name.push_str(fits);
    fits.len() == part.len()
}

/// A leaf, with its own memory: that of an end whose begin is not known yet.
#[derive(Debug)]
pub(crate) struct OwnLeaf {
    flat: Box<str>,
    key: Box<str>,
    value: OwnValue,
}

#[derive(Debug)]
enum OwnValue {
    /// A value without memory of its own.
    Plain(Value<'static>),
    Text(Box<str>),
    Bytes(Box<[u8]>),
}

impl OwnLeaf {
    fn of(flat: &str, key: &str, value: &Value<'_>) -> Self {
        let value = match *value {
            Value::Bool(v) => OwnValue::Plain(Value::Bool(v)),
            Value::I64(v) => OwnValue::Plain(Value::I64(v)),
            Value::U64(v) => OwnValue::Plain(Value::U64(v)),
            Value::F64(v) => OwnValue::Plain(Value::F64(v)),
            Value::Pointer(v) => OwnValue::Plain(Value::Pointer(v)),
            Value::Koid(v) => OwnValue::Plain(Value::Koid(v)),
            Value::Str(text) | Value::Interned { text, .. } => OwnValue::Text(text.into()),
            Value::Blob(bytes) => OwnValue::Bytes(bytes.into()),
            Value::Null | Value::Dict(_) | Value::Array(_) => OwnValue::Plain(Value::Null),
        };
        Self { flat: flat.into(), key: key.into(), value }
    }

    /// What it takes in memory, in bytes, about.
    pub(crate) fn bytes(&self) -> usize {
        bytes_of(&self.flat, &self.key, &self.value())
    }

    fn value(&self) -> Value<'_> {
        match &self.value {
            OwnValue::Plain(value) => *value,
            OwnValue::Text(text) => Value::Str(text),
            OwnValue::Bytes(bytes) => Value::Blob(bytes),
        }
    }

    /// Adds its row.
    pub(crate) fn put(&self, owner: ArgOwner, rows: &mut Rows, sink: &mut dyn Sink) -> io::Result<()> {
        put(owner, (&self.flat, &self.key, None), &self.value(), rows, sink)
    }
}

/// Adds the rows of an event's arguments.
pub(crate) fn put_all(
    event: &Event<'_>,
    owner: ArgOwner,
    rows: &mut Rows,
    sink: &mut dyn Sink,
) -> io::Result<()> {
    let mut result = Ok(());
    let cut = each(event, &mut |flat, key, id, value| {
        if result.is_ok() {
            result = put(owner, (flat, key, id), value, rows, sink);
        }
    });
    rows.cut += cut;
    result
}

/// The leaves of an event's arguments. Returns `None` if they take more than `room` bytes. Counts names that
/// were cut.
pub(crate) fn leaves(event: &Event<'_>, room: usize, cut: &mut u64) -> Option<Vec<OwnLeaf>> {
    let (mut all, mut bytes) = (Vec::new(), 0_usize);
    let names = each(event, &mut |flat, key, _, value| {
        bytes = bytes.saturating_add(bytes_of(flat, key, value));
        if bytes <= room {
            all.push(OwnLeaf::of(flat, key, value));
        } else {
            all = Vec::new();
        }
    });
    if bytes > room {
        return None;
    }
    *cut += names;
    Some(all)
}

/// What a leaf takes in memory, in bytes, about.
fn bytes_of(flat: &str, key: &str, value: &Value<'_>) -> usize {
    let value = match value {
        Value::Str(text) | Value::Interned { text, .. } => text.len(),
        Value::Blob(bytes) => bytes.len(),
        _ => 0,
    };
    128 + flat.len() + key.len() + value
}

type Show<'s> = &'s mut dyn FnMut(&str, &str, Option<StringId>, &Value<'_>);

/// Shows the leaves of the arguments and details of an event: flat name, name, the number of both if they are
/// equal, and value. Returns the number of leaves whose names were cut.
pub(crate) fn each(event: &Event<'_>, show: Show<'_>) -> u64 {
    let mut cut = 0;
    event.args.each(&mut |name, value| match value {
        Value::Dict(_) | Value::Array(_) => {
            let mut path = Name::default();
            let is_whole = push(&mut path.flat, name.text) & push(&mut path.key, name.text);
            nested(&value, (&mut path, is_whole), 0, show);
            cut += path.cut;
        }
        _ => show(name.text, name.text, name.id, &value),
    });
    if event.details.is_none() {
        return cut;
    }
    let details = event.details();
    let mut text = |name: &str, text: &str| {
        if !text.is_empty() {
            show(name, name, None, &Value::Str(text));
        }
    };
    if let Some(location) = details.location {
        text("source.file_name", location.file);
        text("source.function_name", location.function);
        if location.line != 0 {
            show("source.line_number", "source.line_number", None, &Value::I64(i64::from(location.line)));
        }
    }
    let mut text = |name: &str, text: &str| show(name, name, None, &Value::Str(text));
    if let Some(log) = details.log {
        text("message", log.body);
        text("priority", &format!("{:?}", log.priority).to_lowercase());
    }
    if let Some(correlation) = details.correlation {
        text("correlation_id", correlation);
    }
    if let Some(weight) = details.stack_weight {
        show("callstack_weight", "callstack_weight", None, &Value::F64(weight));
    }
    if let Some(stack) = details.stack {
        let mut index = 0_usize;
        stack.each(&mut |frame| {
            show("callstack", &format!("callstack[{index}]"), None, &Value::Str(&frame.to_string()));
            index += 1;
        });
    }
    cut
}

/// Shows the leaves of a value. `is_whole`: whether nothing of its name was cut.
fn nested(value: &Value<'_>, (name, is_whole): (&mut Name, bool), depth: usize, show: Show<'_>) {
    let (flat, key) = (name.flat.len(), name.key.len());
    match value {
        Value::Dict(_) | Value::Array(_) if depth == DEEPEST => {}
        Value::Dict(entries) => entries.each(&mut |entry, value| {
            let mut is_whole = is_whole;
            for path in [&mut name.flat, &mut name.key] {
                is_whole &= push(path, ".") & push(path, entry);
            }
            nested(&value, (&mut *name, is_whole), depth + 1, show);
            name.flat.truncate(flat);
            name.key.truncate(key);
        }),
        Value::Array(entries) => {
            let mut index = 0_usize;
            entries.each(&mut |_, value| {
                let is_whole = push(&mut name.key, &format!("[{index}]")) & is_whole;
                nested(&value, (&mut *name, is_whole), depth + 1, show);
                name.key.truncate(key);
                index += 1;
            });
        }
        leaf => {
            name.cut += u64::from(!is_whole);
            show(&name.flat, &name.key, None, leaf);
        }
    }
}

/// The columns of a value: its type, and one of the others.
fn put(
    owner: ArgOwner,
    (flat, key, id): (&str, &str, Option<StringId>),
    value: &Value<'_>,
    rows: &mut Rows,
    sink: &mut dyn Sink,
) -> io::Result<()> {
    rows.int(arg::time, owner.time);
    rows.keyed(arg::of, owner.table as u32, || owner.table.table().name);
    rows.int(arg::owner, i64::from(owner.id));
    for (column, name) in [(arg::flat_key, flat), (arg::key, key)] {
        match id {
            Some(id) => rows.keyed(column, id.0, || name),
            None => rows.opt_text(column, Some(name)),
        }
    }
    let (kind, int, float, truth) = match *value {
        Value::Null => (0, None, None, None),
        Value::Bool(v) => (1, None, None, Some(v)),
        Value::I64(v) => (2, Some(v), None, None),
        Value::U64(v) => (3, Some(v.cast_signed()), None, None),
        Value::F64(v) => (4, None, Some(v), None),
        Value::Str(_) | Value::Interned { .. } => (5, None, None, None),
        Value::Pointer(v) => (6, Some(v.cast_signed()), None, None),
        Value::Koid(v) => (7, Some(v.cast_signed()), None, None),
        Value::Blob(_) | Value::Dict(_) | Value::Array(_) => (8, None, None, None),
    };
    rows.keyed(arg::value_type, kind, || TYPES[kind as usize]);
    rows.opt_int(arg::int_value, int);
    rows.opt_float(arg::float_value, float);
    rows.opt_bool(arg::bool_value, truth);
    match *value {
        Value::Interned { iid, text } if !text.is_empty() => {
            let id = iid.checked_sub(1).and_then(|id| u32::try_from(id).ok()).unwrap_or(u32::MAX);
            rows.keyed(arg::text_value, id, || text);
        }
        // The empty text is a value too.
        Value::Str(text) | Value::Interned { text, .. } => rows.opt_text(arg::text_value, Some(text)),
        Value::Blob(bytes) => rows.opt_text(arg::text_value, Some(&hexadecimal(bytes))),
        _ => rows.opt_text(arg::text_value, None),
    }
    rows.end_row(sink)
}

const TYPES: [&str; 9] = ["null", "bool", "int", "uint", "float", "text", "pointer", "koid", "bytes"];

/// Bytes in hexadecimal, lower case.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Data;
    use crate::wanted::Wanted;

    #[test]
    fn the_empty_text_is_a_value() {
        let mut rows = Rows::new(TableId::Arg, &Wanted::nothing().table(TableId::Arg));
        let (owner, mut batches) = (ArgOwner { time: 1, table: TableId::Slice, id: 1 }, Vec::new());
        for value in [Value::Str(""), Value::Interned { iid: 5, text: "" }, Value::Null] {
            put(owner, ("name", "name", None), &value, &mut rows, &mut batches).expect("a row");
        }
        rows.flush(&mut batches).expect("a batch");
        let texts = batches.pop().and_then(|mut batch| batch.columns[arg::text_value].take()).expect("texts");
        assert_eq!(texts.is_valid, [true, true, false]);
        let Data::Text { codes, texts } = texts.data else { panic!("a text") };
        assert_eq!((texts.get(codes[0]), texts.get(codes[1])), ("", ""));
    }
}
