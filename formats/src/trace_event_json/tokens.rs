//! Splits an object into its members in one pass, with all checks of JSON's grammar.
//!
//! It reads nearly all events. For the rest it returns `None`: an object that is cut off, malformed, nested
//! deeper than 63 levels, or with an escape in a member's name. The general reader then decides.

use crate::trace_event_json::window::is_space;

/// A member of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its name, if it has at most eight bytes. No other name is known.
    pub(super) key: Key,
    /// The place of its value.
    pub(super) value: (u32, u32),
}

/// A name of at most eight bytes as a number, so that it is compared at once. 0 for a longer name, and for
/// one with a byte of 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    /// The number of a name.
    pub(super) const fn of(name: &str) -> Self {
        let (name, mut key, mut at) = (name.as_bytes(), 0, 0);
        while at < name.len() && name.len() <= 8 {
            if name[at] == 0 {
                return Self(0);
            }
            key |= (name[at] as u64) << (8 * at);
            at += 1;
        }
        Self(key)
    }

    /// The number of the name between two places.
    #[inline]
    fn at(bytes: &[u8], from: usize, to: usize) -> Self {
        match (bytes[from..].first_chunk(), to - from) {
            (_, 0) => Self(0),
            (Some(first), len @ 1..=8) => Self(u64::from_le_bytes(*first) & u64::MAX >> (64 - 8 * len)),
            (_, 9..) => Self(0),
            (None, _) => Self::of(std::str::from_utf8(&bytes[from..to]).unwrap_or_default()),
        }
    }
}

/// The end of an object, and whether it has only ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    pub(super) end: usize,
    pub(super) is_ascii: bool,
}

/// The limit for the size of an object, so that places have 32 bits.
const LARGEST: usize = u32::MAX as usize;

/// Sets `members` to those of the object at the beginning of `bytes`.
pub(super) fn object(bytes: &[u8], members: &mut Vec<Member>) -> Option<Split> {
    members.clear();
    let bytes = &bytes[..bytes.len().min(LARGEST)];
    let (mut at, mut high) = (after_space(bytes, 1), 0);
    if bytes.get(at) == Some(&b'}') {
        return Some(Split { end: at + 1, is_ascii: true });
    }
    loop {
        let (name_end, value) = name(bytes, at, &mut high)?;
        let end = value_end(bytes, value, &mut high)?;
        let key = Key::at(bytes, at + 1, name_end);
        members.push(Member { key, value: (value as u32, end as u32) });
        at = after_space(bytes, end);
        match bytes.get(at)? {
            b',' => at = after_space(bytes, at + 1),
            b'}' => return Some(Split { end: at + 1, is_ascii: high & HIGH == 0 }),
            _ => return None,
        }
    }
}

/// Reads the name that begins at `at`, and the colon. Returns the end of the name and the begin of the value.
#[inline]
fn name(bytes: &[u8], at: usize, high: &mut u64) -> Option<(usize, usize)> {
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let end = plain_end(bytes, at + 1, high);
    if bytes.get(end) != Some(&b'"') {
        return None;
    }
    let colon = after_space(bytes, end + 1);
    (bytes.get(colon) == Some(&b':')).then(|| (end, after_space(bytes, colon + 1)))
}

/// Returns the end of the value that begins at `at`, if the value and the byte after it are in `bytes`.
#[inline]
pub(super) fn value_end(bytes: &[u8], at: usize, high: &mut u64) -> Option<usize> {
    match bytes.get(at)? {
        b'{' | b'[' => nested_end(bytes, at, high),
        _ => scalar_end(bytes, at, high),
    }
}

#[inline]
fn scalar_end(bytes: &[u8], at: usize, high: &mut u64) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => string_end(bytes, at + 1, high),
        b'-' | b'0'..=b'9' => number_end(bytes, at),
        b't' => word_end(bytes, at, b"true"),
        b'f' => word_end(bytes, at, b"false"),
        b'n' => word_end(bytes, at, b"null"),
        _ => None,
    }
}

fn word_end(bytes: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    bytes[at..].starts_with(word).then_some(at + word.len())
}

/// Finds the end of an object or array. One bit for each open bracket says whether it is an object's.
fn nested_end(bytes: &[u8], mut at: usize, high: &mut u64) -> Option<usize> {
    const DEEPEST: u32 = 63;
    let (mut objects, mut depth) = (0_u64, 0);
    loop {
        // A value begins here.
        match *bytes.get(at)? {
            open @ (b'{' | b'[') => {
                if depth == DEEPEST {
                    return None;
                }
                depth += 1;
                objects = objects << 1 | u64::from(open == b'{');
                at = after_space(bytes, at + 1);
                let next = *bytes.get(at)?;
                if !matches!((open, next), (b'{', b'}') | (b'[', b']')) {
                    if open == b'{' {
                        at = name(bytes, at, high)?.1;
                    }
                    continue;
                }
            }
            _ => at = after_space(bytes, scalar_end(bytes, at, high)?),
        }
        // A value is complete, or an empty bracket is to be closed.
        loop {
            let in_object = objects & 1 == 1;
            match *bytes.get(at)? {
                b',' => {
                    at = after_space(bytes, at + 1);
                    if in_object {
                        at = name(bytes, at, high)?.1;
                    }
                    break;
                }
                b'}' if in_object => {}
                b']' if !in_object => {}
                _ => return None,
            }
            (depth, objects) = (depth - 1, objects >> 1);
            if depth == 0 {
                return Some(at + 1);
            }
            at = after_space(bytes, at + 1);
        }
    }
}

#[inline]
fn after_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| is_space(*byte)) {
        at += 1;
    }
    at
}

/// Eight bytes with this one.
const fn eight(byte: u8) -> u64 {
    u64::from_le_bytes([byte; 8])
}

/// The highest bit of each byte.
const HIGH: u64 = eight(0x80);

/// Returns the place of the next quote, backslash or control character, or the end. `high` gets the highest
/// bits of the bytes up to there, and perhaps of some after it.
///
/// In a word of eight bytes, the lowest bit that is found is exact, since only bytes above it take a carry.
#[inline]
pub(super) fn plain_end(bytes: &[u8], mut at: usize, high: &mut u64) -> usize {
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*chunk);
        *high |= word;
        let (quotes, escapes) = (word ^ eight(b'"'), word ^ eight(b'\\'));
        let found = (word.wrapping_sub(eight(0x20)) & !word
            | quotes.wrapping_sub(eight(1)) & !quotes
            | escapes.wrapping_sub(eight(1)) & !escapes)
            & HIGH;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at).filter(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)) {
        *high |= u64::from(*byte);
        at += 1;
    }
    at
}

/// Returns the end of the string whose content begins at `at`, after its quote.
#[inline]
pub(super) fn string_end(bytes: &[u8], mut at: usize, high: &mut u64) -> Option<usize> {
    loop {
        at = plain_end(bytes, at, high);
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at = escape_end(bytes, at + 1)?,
            _ => return None,
        }
    }
}

/// Returns the end of an escape after its backslash.
fn escape_end(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(at + 1),
        b'u' if bytes.get(at + 1..at + 5)?.iter().all(u8::is_ascii_hexdigit) => Some(at + 5),
        _ => None,
    }
}

/// Returns the end of a number: `-? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)?`.
#[inline]
fn number_end(bytes: &[u8], at: usize) -> Option<usize> {
    let at = at + usize::from(bytes.get(at) == Some(&b'-'));
    let mut end = match bytes.get(at)? {
        b'0' => at + 1,
        _ => digits_end(bytes, at)?,
    };
    if bytes.get(end) == Some(&b'.') {
        end = digits_end(bytes, end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits_end(bytes, end + 1 + sign)?;
    }
    // After a digit: as in 01. At the end of the bytes, more digits may follow.
    (!bytes.get(end)?.is_ascii_digit()).then_some(end)
}

/// Returns the end of the digits, of which there must be at least one.
#[inline]
fn digits_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut end = at;
    while let Some(chunk) = bytes.get(end..).and_then(<[u8]>::first_chunk) {
        // Of these bytes, those of digits are at most 9. The sums have no carry.
        let word = u64::from_le_bytes(*chunk) ^ eight(b'0');
        let others = (((word & !HIGH) + eight(0x7f - 9)) | word) & HIGH;
        if others != 0 {
            end += others.trailing_zeros() as usize / 8;
            return (end > at).then_some(end);
        }
        end += 8;
    }
    while bytes.get(end).is_some_and(u8::is_ascii_digit) {
        end += 1;
    }
    (end > at).then_some(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::trace_event_json::json;

    /// The members of an object, by the general parser. `None` if it is not JSON.
    fn slowly(object: &str) -> Option<Vec<(Key, String)>> {
        let mut members = Vec::new();
        json::members(object, |key, value| members.push((Key::of(&key), value.to_owned()))).ok()?;
        Some(members)
    }

    /// The end and the members.
    fn quickly(text: &str) -> Option<(usize, Vec<(Key, String)>)> {
        let mut members = Vec::new();
        let Split { end, is_ascii } = object(text.as_bytes(), &mut members)?;
        assert!(!is_ascii || text[..end].is_ascii());
        let at = |(from, to): (u32, u32)| text[from as usize..to as usize].to_owned();
        Some((end, members.iter().map(|member| (member.key, at(member.value))).collect()))
    }

    #[test]
    fn names_of_up_to_eight_bytes_have_a_number() {
        let names = ["", "a", "é", "flow_in", "flow_out"].map(|name| (name, Key::of(name)));
        for (name, key) in names {
            let text = format!("{{\"{name}\":0}}");
            assert_eq!(quickly(&text).unwrap().1[0].0, key, "{name}");
            assert_eq!(names.iter().filter(|(_, other)| *other == key).count(), 1, "{name}");
        }
        assert_ne!(Key::of("ts\0"), Key::of("ts"));
        assert_eq!(quickly(r#"{"flow_out_":0}"#).unwrap().1[0].0, Key::of("flow_out_"));
    }

    #[test]
    fn an_object_has_the_members_that_the_general_parser_finds() {
        for text in [
            "{}",
            "{ }",
            r#"{"a":1}"#,
            r#" {"a":1}"#.trim_start(),
            "{ \"a\" :\t-0.5e+7 ,\r\n\"b\": [ ] , \"c\":{ } }",
            r#"{"a":[1,{"b":"}\"]"},[[],{}],null],"é":"\ud834\\ü\u00e9","c":true,"d":false,"e":0}"#,
            r#"{"a":"0123456 8901234\n67890","a":"x"}"#,
        ] {
            assert_eq!(quickly(text), Some((text.len(), slowly(text).unwrap())), "{text}");
            assert_eq!(quickly(&format!("{text} , ")).map(|found| found.0), Some(text.len()), "{text}");
        }
    }

    #[test]
    fn an_object_that_is_malformed_or_cut_off_is_left_to_the_general_parser() {
        for text in [
            r#"{"a":01}"#,
            r#"{"a":1.}"#,
            r#"{"a":-}"#,
            r#"{"a":1e}"#,
            r#"{"a":.5}"#,
            r#"{"a":1,}"#,
            r#"{,}"#,
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":[1}}"#,
            r#"{"a":{"b"]}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":nul}"#,
            "{\"a\":\"\u{1}\"}",
            "{\"a\u{1}\":1}",
            r#"{"a":"\x"}"#,
            r#"{"a":"\u00g0"}"#,
            r#"{"a":1 2}"#,
        ] {
            assert_eq!((quickly(text), slowly(text)), (None, None), "{text}");
        }
        let whole = r#"{"a":[1,{"b":"}\"]"},[[],{}],null],"c":"\u00e9","d":12.5e3}"#;
        for cut in 1..whole.len() {
            assert_eq!(quickly(&whole[..cut]), None, "{}", &whole[..cut]);
        }
        assert_eq!(quickly(r#"{"\u0061":1}"#), None);
        assert_eq!(quickly(&format!(r#"{{"a":{}{}}}"#, "[".repeat(64), "]".repeat(64))), None);
    }

    #[test]
    fn every_special_byte_is_found_at_every_place() {
        for before in 0..20 {
            for byte in 0..=255_u8 {
                let mut bytes = vec![b'x'; 40];
                bytes[before] = byte;
                let expected = if matches!(byte, b'"' | b'\\' | 0..0x20) { before } else { 40 };
                assert_eq!(plain_end(&bytes, 0, &mut 0), expected, "{byte} at {before}");
            }
        }
    }

    #[test]
    fn every_byte_that_is_no_digit_is_found_at_every_place() {
        for before in 0..20 {
            for byte in 0..=255_u8 {
                let mut bytes = vec![b'7'; 40];
                bytes[before] = byte;
                let end = if byte.is_ascii_digit() { 40 } else { before };
                assert_eq!(digits_end(&bytes, 0), (end > 0).then_some(end), "{byte} at {before}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_split_as_by_the_general_parser_or_not_at_all(
            text in r#"\{("(a|\\n|é|[ -~])*"|[0-9]|-|\.|e|true|null|[\[\]{},: ]){0,12}\}"#,
        ) {
            if let Some((end, members)) = quickly(&text) {
                prop_assert_eq!(Some(members), slowly(&text[..end]));
            }
        }
    }
}
