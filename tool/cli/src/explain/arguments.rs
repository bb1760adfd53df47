//! The arguments of examples.

use std::collections::HashMap;

use hairline_convert::{Event, TrackId};
use hairline_formats::Value;

use crate::explain::cpu_times::CLOCK_ARGUMENTS;
use crate::table::{cut_path, is_path};

/// The limit for arguments of an example, and for the characters of a value.
const MOST_ARGUMENTS: usize = 16;
const MOST_CHARACTERS: usize = 64;

/// The arguments at the begin of examples, by the track and the begin.
pub(super) type Arguments = HashMap<(TrackId, i64), Vec<Argument>>;

/// An argument.
#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) number: Option<f64>,
}

/// The arguments of an event: numbers and texts, without their content if they are nested.
pub(super) fn arguments(event: &Event<'_>) -> Vec<Argument> {
    let mut all = Vec::new();
    event.args.each(&mut |name, value| {
        if all.len() >= MOST_ARGUMENTS || CLOCK_ARGUMENTS.contains(&name.text) {
            return;
        }
        let (value, number) = match value {
            Value::Bool(value) => (value.to_string(), None),
            Value::I64(value) => number(value, value as f64),
            Value::U64(value) | Value::Koid(value) => number(value, value as f64),
            Value::F64(value) => number(value, value),
            Value::Pointer(value) => (format!("{value:#x}"), None),
            Value::Str(text) | Value::Interned { text, .. } if is_path(text) => {
                (cut_path(text, MOST_CHARACTERS), None)
            }
            Value::Str(text) | Value::Interned { text, .. } => {
                let cut = text.char_indices().nth(MOST_CHARACTERS).map(|(at, _)| format!("{}…", &text[..at]));
                (cut.unwrap_or_else(|| text.to_owned()), None)
            }
            _ => return,
        };
        all.push(Argument { name: name.text.to_owned(), value, number });
    });
    all
}

fn number(value: impl ToString, number: f64) -> (String, Option<f64>) {
    (value.to_string(), Some(number))
}
