//! Parses decimal numbers without floating point, so that microseconds become exact nanoseconds.

use std::borrow::Cow;

use crate::trace_event_json::event::Id;

/// A decimal number that was multiplied by a power of ten.
#[derive(Debug, PartialEq)]
struct Decimal {
    /// The result, rounded to the nearest integer; a half is rounded away from zero.
    value: i128,
    /// Whether the result was not rounded.
    exact: bool,
}

/// A mantissa of this size takes no further digits: 36 digits cover every 64-bit integer.
const ENOUGH: u128 = 10_u128.pow(36);

/// Returns `text` times 10^`places`. Returns `None` if it is no decimal number, or out of range.
fn decimal(text: &str, places: i32) -> Option<Decimal> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let (mut mantissa, mut shift, mut exact) = (0_u128, places, true);
    let (mut digit, mut point) = (false, false);
    for (at, byte) in digits.bytes().enumerate() {
        match byte {
            b'0'..=b'9' if mantissa < ENOUGH => {
                mantissa = mantissa * 10 + u128::from(byte - b'0');
                shift -= i32::from(point);
                digit = true;
            }
            b'0'..=b'9' => {
                shift += i32::from(!point);
                exact &= byte == b'0';
            }
            b'.' if !point => point = true,
            b'e' | b'E' => {
                let exponent: i32 = digits[at + 1..].parse().ok()?;
                shift = shift.saturating_add(exponent);
                break;
            }
            _ => return None,
        }
    }
    if !digit {
        return None;
    }
    let value = if mantissa == 0 {
        0
    } else if shift >= 0 {
        mantissa.checked_mul(10_u128.checked_pow(shift.unsigned_abs())?)?
    } else {
        let divisor = 10_u128.checked_pow(shift.unsigned_abs());
        let (quotient, rest) = divisor.map_or((0, mantissa), |d| (mantissa / d, mantissa % d));
        exact &= rest == 0;
        quotient + u128::from(divisor.is_some_and(|d| rest >= d - rest))
    };
    let value = i128::try_from(value).ok()?;
    Some(Decimal { value: if negative { -value } else { value }, exact })
}

/// Returns the nanoseconds of `text`, which is in microseconds.
pub(super) fn nanoseconds(text: &str) -> Option<i64> {
    plain_nanoseconds(text).or_else(|| any_nanoseconds(text))
}

/// The fast path for nearly all times: at most 18 characters, without sign and exponent, and with at most
/// three digits after the point.
fn plain_nanoseconds(text: &str) -> Option<i64> {
    if text.len() > 18 {
        return None;
    }
    let (mut number, mut digits, mut whole) = (0_i64, 0, None);
    for byte in text.bytes() {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            number = number * 10 + i64::from(digit);
            digits += 1;
        } else if byte == b'.' && whole.is_none() && digits > 0 {
            whole = Some(digits);
        } else {
            return None;
        }
    }
    let decimals = digits - whole.unwrap_or(digits);
    if digits == 0 { None } else { number.checked_mul(*[1000, 100, 10, 1].get(decimals)?) }
}

fn any_nanoseconds(text: &str) -> Option<i64> {
    i64::try_from(decimal(text, 3)?.value).ok()
}

/// The fast path for nearly all ids: at most 18 digits.
#[inline(never)] // its result has two registers
pub(super) fn plain_number(text: &str) -> Option<u64> {
    if !matches!(text.len(), 1..=18) {
        return None;
    }
    text.bytes().try_fold(0, |number, byte| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| number * 10 + u64::from(digit))
    })
}

/// Parses an id: an integer if the text is one.
pub(super) fn id(text: &str) -> Id<'_> {
    if let Some(number) = plain_number(text) {
        return Id::Number(number);
    }
    let whole = decimal(text, 0).filter(|decimal| decimal.exact).map(|decimal| decimal.value);
    if let Some(number) = whole.and_then(|value| u64::try_from(value).ok()) {
        return Id::Number(number);
    }
    match whole.and_then(|value| i64::try_from(value).ok()) {
        Some(number) => Id::Negative(number),
        None => Id::Text(Cow::Borrowed(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn microseconds_are_exact_to_the_nanosecond() {
        for (text, ns) in [
            ("0", 0),
            ("-0", 0),
            ("829", 829_000),
            ("0.001", 1),
            ("-1.5", -1_500),
            ("1234567890123.456", 1_234_567_890_123_456),
            ("9007199254740993.001", 9_007_199_254_740_993_001), // more digits than a double has
            ("9223372036854775.807", i64::MAX),
            ("-9223372036854775.808", i64::MIN),
            ("1.5e3", 1_500_000),
            ("1E+2", 100_000),
            ("125e-3", 125),
            ("7.", 7_000),
            ("7.25", 7_250),
            ("9223372036854774.999", 9_223_372_036_854_774_999),
            ("0.0004", 0),
            ("0.0005", 1),
            ("-0.0005", -1),
            ("1e-40", 0),
            ("0e400", 0),
            ("1.00000000000000000000000000000000000000000000000000000001", 1_000),
        ] {
            assert_eq!((nanoseconds(text), any_nanoseconds(text)), (Some(ns), Some(ns)), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_time_is_none() {
        let huge = "9".repeat(400);
        for text in [
            "",
            "-",
            ".",
            "e",
            "e5",
            "1e",
            "1.2.3",
            "+1",
            " 1",
            "0x10",
            "1e400",
            "1e99999999999",
            "NaN",
            "9223372036854775.808",
            "18446744073709551615",
            &huge,
        ] {
            assert_eq!(nanoseconds(text), None, "{text}");
        }
    }

    #[test]
    fn an_id_is_an_integer_where_it_is_one() {
        assert_eq!(id("18446744073709551615"), Id::Number(u64::MAX));
        assert_eq!(id("7.0"), Id::Number(7));
        assert_eq!(id("-7"), Id::Negative(-7));
        for text in ["18446744073709551616", "7.5", "-9223372036854775809", "1e400"] {
            assert_eq!(id(text), Id::Text(text.into()));
        }
    }
}
