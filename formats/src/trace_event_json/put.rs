//! Writes strings, numbers and times.

use std::io::Write;

/// Appends an integer.
pub(super) fn put_integer(out: &mut Vec<u8>, number: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends the display form of a value.
pub(super) fn put_display(out: &mut Vec<u8>, what: &dyn std::fmt::Display) {
    let _ = write!(out, "{what}"); // a Vec cannot fail
}

/// Appends text in quotes, with escapes.
///
/// A backslash at the end is written as `\u005c`: trace_processor v52 misreads `\\"` as a quote within the
/// text, and then refuses the whole trace.
pub(super) fn put_string(out: &mut Vec<u8>, text: &str) {
    if !has_special(text.as_bytes()) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        return out.push(b'"');
    }
    let front = text.strip_suffix('\\');
    let _ = serde_json::to_writer(&mut *out, front.unwrap_or(text)); // neither a Vec nor a string can fail
    if front.is_some() {
        out.pop();
        out.extend_from_slice(b"\\u005c\"");
    }
}

/// Whether the text has a byte that needs an escape. Checks eight bytes at a time; the last eight can overlap
/// others.
fn has_special(text: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let has_zero = |eight: u64| eight.wrapping_sub(ONES) & !eight;
    let any = |eight: u64| {
        let control = eight.wrapping_sub(ONES * 0x20) & !eight;
        let quote = has_zero(eight ^ (ONES * u64::from(b'"')));
        let backslash = has_zero(eight ^ (ONES * u64::from(b'\\')));
        (control | quote | backslash) & HIGH != 0
    };
    let eight = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let four = |bytes: &[u8; 4]| u64::from(u32::from_le_bytes(*bytes));
    if let Some(last) = text.last_chunk() {
        any(eight(last)) || text.as_chunks().0.iter().any(|bytes| any(eight(bytes)))
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        any(four(first) | four(last) << 32)
    } else {
        text.iter().any(|byte| matches!(byte, 0..0x20 | b'"' | b'\\'))
    }
}

const MILLISECOND: i64 = 1_000_000;

/// Appends a time in microseconds, with as few decimals as possible.
pub(super) fn put_microseconds(out: &mut Vec<u8>, ns: i64) {
    if ns < 0 {
        out.push(b'-');
    }
    let (whole, rest) = (ns.unsigned_abs() / 1000, ns.unsigned_abs() % 1000);
    put_integer(out, whole);
    let (decimals, len) = decimals(rest as usize);
    put_front(out, &decimals, len);
}

/// Writes times like [`put_microseconds`], but faster for consecutive times: it keeps the digits of the last
/// millisecond.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// The millisecond whose digits are kept; 0 if there is none.
    millisecond: i64,
    digits: [u8; 16],
    len: usize,
}

impl Times {
    #[inline]
    pub(super) fn put(&mut self, out: &mut Vec<u8>, ns: i64) {
        let millisecond = ns / MILLISECOND;
        // Shorter times can have fewer than three digits, and negative ones a sign.
        if millisecond <= 0 {
            return put_microseconds(out, ns);
        }
        if millisecond != self.millisecond {
            self.keep(millisecond);
        }
        put_front(out, &self.digits, self.len);
        let rest = (ns % MILLISECOND) as usize;
        let (decimals, len) = decimals(rest % 1000);
        let [_, a, b, c] = THREE_DIGITS[rest / 1000];
        let [point, d, e, f] = decimals;
        put_front(out, &[a, b, c, point, d, e, f, 0], 3 + len);
    }

    fn keep(&mut self, millisecond: i64) {
        self.millisecond = millisecond;
        let mut text = itoa::Buffer::new();
        let text = text.format(millisecond).as_bytes();
        self.len = text.len();
        if let Some(digits) = self.digits.get_mut(..text.len()) {
            digits.copy_from_slice(text);
        }
    }
}

/// A point and three digits, for each number below 1000.
static THREE_DIGITS: [[u8; 4]; 1000] = {
    let mut all = [*b".000"; 1000];
    let mut n = 0;
    while n < 1000 {
        all[n] = [b'.', b'0' + (n / 100) as u8, b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    all
};

/// Returns the decimals of a number of thousandths, and how many of the bytes are not trailing zeros.
#[inline]
fn decimals(thousandths: usize) -> ([u8; 4], usize) {
    let all = THREE_DIGITS[thousandths % 1000];
    let zeros = (u32::from_le_bytes(all) ^ u32::from_le_bytes([b'0'; 4])).leading_zeros() as usize / 8;
    // Without digits, the point goes too.
    (all, 4 - zeros - zeros / 3)
}

/// Appends the first `len` bytes of an array.
///
/// It copies the whole array and truncates: a copy of constant length is a few instructions, one of variable
/// length a call.
#[inline]
pub(super) fn put_front<const N: usize>(out: &mut Vec<u8>, bytes: &[u8; N], len: usize) {
    let end = out.len() + len;
    out.extend_from_slice(bytes);
    out.truncate(end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(put: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        put(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_time_does_not_depend_on_the_previous_one() {
        let mut times = Times::default();
        let around = |ns: i64| [ns, ns + 1, ns - 1, ns + 10, ns + 100, ns + 1000, ns + 999_000, ns, -ns];
        let all = [0, 1, 999_999, MILLISECOND, 1_234_567_890, i64::MAX - MILLISECOND];
        for ns in all.into_iter().flat_map(around) {
            assert_eq!(put(|out| times.put(out, ns)), put(|out| put_microseconds(out, ns)), "{ns}");
        }
        assert_eq!(put(|out| times.put(out, i64::MAX)), "9223372036854775.807");
        assert_eq!(put(|out| times.put(out, i64::MIN)), "-9223372036854775.808");
    }

    #[test]
    fn a_byte_that_needs_an_escape_is_found_at_every_position() {
        for special in ["\0", "\u{1f}", "\"", "\\", "\n"] {
            for (before, after) in (0..20).flat_map(|before| (0..20).map(move |after| (before, after))) {
                let text = format!("{}{special}{}", "é".repeat(before), "~".repeat(after));
                assert!(has_special(text.as_bytes()), "{text:?}");
            }
        }
        for text in ["", "a", "\u{20}!#[]\u{7f}é𝄞", &"sixteen bytes !!".repeat(3)] {
            assert!(!has_special(text.as_bytes()), "{text:?}");
        }
    }
}
