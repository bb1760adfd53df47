//! Words as values: numbers, truth values, and what JSON does not have.

use crate::trace_event_json::put::put_string;

/// Appends what a word means.
pub(super) fn put_word(json: &mut Vec<u8>, word: &[u8]) {
    match word {
        b"" | b"undefined" | b"None" | b"nil" | b"null" => json.extend_from_slice(b"null"),
        b"true" | b"True" | b"TRUE" => json.extend_from_slice(b"true"),
        b"false" | b"False" | b"FALSE" => json.extend_from_slice(b"false"),
        _ => match number(word) {
            Some(number) => json.extend_from_slice(number.as_bytes()),
            None => put_text(json, word),
        },
    }
}

/// Appends a text without quotes as a string.
pub(super) fn put_text(json: &mut Vec<u8>, text: &[u8]) {
    put_string(json, &String::from_utf8_lossy(text));
}

/// A number that JSON writes otherwise: with a plus, with zeros before it, without a digit before or after
/// its point.
fn number(word: &[u8]) -> Option<String> {
    let word = std::str::from_utf8(word).ok()?;
    let word = word.strip_prefix('+').unwrap_or(word);
    let (sign, digits) = word.strip_prefix('-').map_or(("", word), |digits| ("-", digits));
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    let zero = if digits.starts_with(|first: char| first.is_ascii_digit()) { "" } else { "0" };
    let number = format!("{sign}{zero}{digits}").replace(".e", ".0e").replace(".E", ".0e");
    let number = number.strip_suffix('.').map(str::to_owned).unwrap_or(number);
    serde_json::from_str::<serde::de::IgnoredAny>(&number).ok()?;
    Some(number)
}
