//! Cuts text to a length, and bytes to valid text.

/// Returns the longest prefix of `s` that has at most `max` bytes and ends between two characters.
///
/// ```
/// use hairline_formats::truncate_utf8;
///
/// assert_eq!(truncate_utf8("naïve", 3), "na");      // ï is two bytes
/// assert_eq!(truncate_utf8("naïve", 99), "naïve");
/// ```
#[inline]
#[must_use]
pub fn truncate_utf8(s: &str, max: usize) -> &str {
    if s.len() <= max { s } else { cut(s, max) }
}

#[cold]
fn cut(s: &str, max: usize) -> &str {
    // 0 is always a boundary.
    let end = (0..=max).rev().find(|&i| s.is_char_boundary(i)).unwrap_or(0);
    &s[..end]
}

/// Returns the longest prefix of `bytes` that is UTF-8.
///
/// It is for names in foreign traces, whose last character is often cut by a length limit.
pub(crate) fn valid_prefix(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => std::str::from_utf8(&bytes[..e.valid_up_to()]).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_is_cut_between_characters_at_every_length() {
        let text = "aé€𝄞";
        let fits: Vec<_> = (0..=text.len() + 1).map(|max| truncate_utf8(text, max)).collect();
        assert_eq!(fits, ["", "a", "a", "aé", "aé", "aé", "aé€", "aé€", "aé€", "aé€", "aé€𝄞", "aé€𝄞"]);
    }

    #[test]
    fn the_text_ends_at_the_first_wrong_byte() {
        assert_eq!(valid_prefix(b"abc"), "abc");
        assert_eq!(valid_prefix(b"abc\xe2\x82"), "abc");
        assert_eq!(valid_prefix(b"\xff"), "");
    }
}
