//! Looks ahead, to say what begins at a brace.
//!
//! A look ahead that finds nothing costs time for bytes that are read again later. In a hostile trace each
//! brace could cost such a look, so there is a budget: all looks together take so many times the bytes that
//! were passed, and a constant.

use crate::trace_event_json::window::is_space;

/// What an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begins {
    /// It has a member `ph`.
    Event,
    /// It has a member `traceEvents`, a list of objects.
    Trace,
    Other,
}

/// The bytes that were looked at in advance.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    spent: u64,
}

impl Ahead {
    /// What may be spent at the beginning: a look through the largest object by default, twice.
    const FIRST: u64 = 16 << 20;
    /// What may be spent for each byte that was passed.
    const EACH: u64 = 8;
    /// The name of a member is looked for in so many bytes.
    const FAR: usize = 64 << 10;

    /// The number of bytes that may be looked at, `at` bytes after the begin of the trace.
    pub(super) fn left(&self, at: u64) -> usize {
        let earned = Self::FIRST.saturating_add(at.saturating_mul(Self::EACH));
        usize::try_from(earned.saturating_sub(self.spent)).unwrap_or(usize::MAX)
    }

    pub(super) fn spend(&mut self, bytes: usize) {
        self.spent = self.spent.saturating_add(bytes as u64);
    }

    /// What the object at `at` of `bytes` is, the first of which is `offset` bytes after the begin of the trace.
    /// Returns `None` if more bytes must say so; with `is_all`, no bytes follow.
    pub(super) fn begins(&mut self, bytes: &[u8], is_all: bool, at: usize, offset: u64) -> Option<Begins> {
        let far = Self::FAR.min(self.left(offset + at as u64));
        let rest = bytes.get(at..).unwrap_or_default();
        let near = &rest[..rest.len().min(far)];
        let (looked, found) = look(near);
        // A look that more bytes repeat is not counted, so that the pieces of the input make no difference.
        let found = found.or_else(|| (is_all || near.len() == far).then_some(Begins::Other))?;
        self.spend(looked);
        Some(found)
    }

    /// Whether the bracket at the beginning of `bytes` opens an array whose first object is an event. With
    /// `after_others`, strings, numbers and other words of JSON may precede it. The rest is as for
    /// [`begins`](Self::begins).
    pub(super) fn begins_array(
        &mut self,
        bytes: &[u8],
        is_all: bool,
        after_others: bool,
        offset: u64,
    ) -> Option<bool> {
        let far = Self::FAR.min(self.left(offset));
        let near = &bytes[..bytes.len().min(far)];
        match first_object(near, after_others) {
            Some(Some(at)) => {
                let begins = self.begins(bytes, is_all, at, offset)?;
                self.spend(at);
                Some(begins == Begins::Event)
            }
            Some(None) => Some(false),
            None if is_all || near.len() == far => {
                self.spend(near.len());
                Some(false)
            }
            None => None,
        }
    }
}

/// The place of the first object of the array at the beginning of `bytes`. The inner `None` if something
/// else precedes it, the outer one if the bytes are too few.
fn first_object(bytes: &[u8], after_others: bool) -> Option<Option<usize>> {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let mut at = 1;
    loop {
        match *bytes.get(at)? {
            b'{' => return Some(Some(at)),
            byte if is_space(byte) || byte == b',' => at += 1,
            _ if !after_others => return Some(None),
            b'"' => match end_in_line(bytes, at + 1)? {
                Some(end) => at = end,
                None => return Some(None),
            },
            _ => {
                let rest = &bytes[at..];
                let word = &rest[..rest.iter().position(|byte| !is_of_word(byte))?];
                let is_number = !word.is_empty() && word.iter().all(is_of_number);
                if !is_number && !matches!(word, b"null" | b"true" | b"false") {
                    return Some(None);
                }
                at += word.len();
            }
        }
    }
}

/// How many bytes say what the object at their beginning is, and what it is. `None` if they are too few.
fn look(bytes: &[u8]) -> (usize, Option<Begins>) {
    let (mut depth, mut at) = (0_u32, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let inner = at + 1;
                let Some(end) = end_in_line(bytes, inner) else { break };
                let Some(end) = end else { return (at, Some(Begins::Other)) };
                at = end;
                let name = bytes.get(inner..end - 1).filter(|_| depth == 1).unwrap_or_default();
                let found = match name {
                    b"ph" => Begins::Event,
                    b"traceEvents" => Begins::Trace,
                    _ => continue,
                };
                let colon = after_space(bytes, end);
                if bytes.get(colon) == Some(&b':') && (found == Begins::Event || is_list(bytes, colon + 1)) {
                    return (at, Some(found));
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 1 => depth -= 1,
            b'}' | b']' => return (at, Some(Begins::Other)),
            _ if depth == 0 => return (at, Some(Begins::Other)),
            _ => {}
        }
        at += 1;
    }
    (bytes.len(), None)
}

/// The end of the string whose content begins at `at`, after its quote: `Some(None)` if a line ends inside,
/// `None` if the bytes do.
fn end_in_line(bytes: &[u8], mut at: usize) -> Option<Option<usize>> {
    loop {
        match bytes.get(at)? {
            b'"' => return Some(Some(at + 1)),
            b'\\' => at += 1,
            b'\n' => return Some(None),
            _ => {}
        }
        at += 1;
    }
}

/// Whether a list of objects begins at `at`. An event may have a member `traceEvents` of its own, a number.
fn is_list(bytes: &[u8], at: usize) -> bool {
    let bracket = after_space(bytes, at);
    let first = bytes.get(bracket + 1..).unwrap_or_default();
    bytes.get(bracket) == Some(&b'[')
        && first.iter().find(|byte| !is_space(**byte) && **byte != b',') == Some(&b'{')
}

fn after_space(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !is_space(*byte)).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begins(text: &str, is_all: bool) -> Option<Begins> {
        Ahead::default().begins(text.as_bytes(), is_all, 0, 0)
    }

    #[test]
    fn a_member_says_what_an_object_is() {
        assert_eq!(begins(r#"{"a":{"ph":1},"ph" : "X""#, false), Some(Begins::Event));
        assert_eq!(begins(r#"{"otherData":{},"traceEvents" : [ {"#, false), Some(Begins::Trace));
        for own in ["3", "[]", "[1]", "{}"] {
            let event = format!(r#"{{"traceEvents":{own},"ph":"X""#);
            assert_eq!(begins(&event, false), Some(Begins::Event), "{event}");
        }
        for text in [r#"{"a":["ph":1]}"#, r#"{"a":"ph"}"#, "{\"a\n\":1,\"ph\":1}", "[1]", "x"] {
            assert_eq!(begins(text, false), Some(Begins::Other), "{text}");
        }
        for text in ["{", r#"{"a":"#, r#"{"ph"#, r#"{"traceEvents":["#] {
            assert_eq!((begins(text, false), begins(text, true)), (None, Some(Begins::Other)), "{text}");
        }
    }

    #[test]
    fn all_looks_together_are_limited() {
        let bytes = vec![b'{'; 1 << 20];
        let mut ahead = Ahead::default();
        for at in 0..bytes.len() {
            assert_eq!(ahead.begins(&bytes, true, at, 0), Some(Begins::Other));
        }
        assert!(ahead.spent <= Ahead::FIRST + Ahead::EACH * bytes.len() as u64, "{}", ahead.spent);
        assert_eq!(ahead.begins(br#"{"ph":1}"#, true, 0, 2 << 20), Some(Begins::Event));
    }
}
