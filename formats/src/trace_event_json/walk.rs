//! Iterates over objects and arrays that are known to be JSON, for the values of events.
//!
//! Other text gives no or wrong members, but does not panic.

use crate::trace_event_json::scan::Scan;
use crate::trace_event_json::tokens::{string_end, value_end};
use crate::trace_event_json::window::is_space;

/// Calls `show` for each member of an object: its name in quotes, and its value. Returns `None` where the
/// text is no JSON.
pub(super) fn members<'a>(text: &'a str, mut show: impl FnMut(&'a str, &'a str)) -> Option<()> {
    let mut at = next(text, 1);
    while text.as_bytes().get(at) == Some(&b'"') {
        let name = string_end(text.as_bytes(), at + 1, &mut 0)?;
        let colon = next(text, name);
        if text.as_bytes().get(colon) != Some(&b':') {
            return None;
        }
        let value = next(text, colon + 1);
        let end = end_of(text, value)?;
        show(text.get(at..name)?, text.get(value..end)?);
        at = next(text, end);
    }
    Some(())
}

/// Calls `show` for each element of an array. Returns `None` where the text is no JSON.
pub(super) fn elements<'a>(text: &'a str, mut show: impl FnMut(&'a str)) -> Option<()> {
    let mut at = next(text, 1);
    while !matches!(text.as_bytes().get(at)?, b']' | b'}' | b':') {
        let end = end_of(text, at)?;
        show(text.get(at..end)?);
        at = next(text, end);
    }
    Some(())
}

/// The next byte that is neither white space nor a comma.
#[inline]
fn next(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes().get(from..).unwrap_or_default();
    from + bytes.iter().position(|byte| !is_space(*byte) && *byte != b',').unwrap_or(bytes.len())
}

/// The end of the value that begins at `at`. Returns `None` if no value begins there.
#[inline]
fn end_of(text: &str, at: usize) -> Option<usize> {
    value_end(text.as_bytes(), at, &mut 0).or_else(|| {
        // Nested deeper than `value_end` looks.
        let end = Scan::default().feed(text.as_bytes().get(at..)?)?;
        (end > 0).then_some(at + end)
    })
}
