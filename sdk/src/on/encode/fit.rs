//! Events whose records do not fit a chunk or the format: their strings are cut, with a mark, and the rest is
//! kept.

use hairline_formats::{Value, truncate_utf8};

use crate::on::base::memory::{List, Text};
use crate::on::encode::no_room::NoRoom;
use crate::on::event::Event;

/// Ends a string that was cut, and replaces nested values that were dropped.
const MARK: &str = "…";

/// An upper bound of a record's bytes without the text of its strings: headers, names, numbers, padding.
const FIXED: usize = 256;
/// An upper bound of the bytes of each argument without its text.
const PER_VALUE: usize = 40;

/// Calls `record` with strings cut so that all of them fit `room` bytes. While the event is still too large,
/// drops its nested values and then halves the length of the strings.
pub(crate) fn shortened(
    event: &Event<'_>,
    room: usize,
    mut record: impl FnMut(&Event<'_>) -> Result<(), NoRoom>,
) -> Result<(), NoRoom> {
    let count = event.values.len() + event.named.len();
    let all = || event.values.iter().chain(event.named.iter().map(|(_, value)| value));
    let strings = all().filter(|v| matches!(v, Value::Str(_) | Value::Interned { .. })).count()
        + usize::from(event.log.is_some());
    let nested = all().any(is_nested);
    if strings == 0 && !nested {
        return Err(NoRoom::TooLarge);
    }
    let room = room.min(hairline_formats::fxt::MAX_STRING);
    let mut each = room.saturating_sub(FIXED + PER_VALUE * count) / strings.max(1);
    let mut keep_nested = nested;
    while each > MARK.len() {
        let texts: List<Option<Text>> = all().map(|v| cut_value(v, each, keep_nested)).collect();
        let mut shorter = all().zip(&texts[..]).map(|(value, text)| match text {
            Some(text) => Value::Str(text.as_str()),
            None => *value,
        });
        let values: List<Value<'_>> = shorter.by_ref().take(event.values.len()).collect();
        let named: List<(&str, Value<'_>)> =
            event.named.iter().map(|(name, _)| *name).zip(&mut shorter).collect();
        let body = event.log.and_then(|(_, body)| cut(body, each));
        let log = event.log.map(|(level, whole)| (level, body.as_ref().map_or(whole, Text::as_str)));
        match record(&Event { log, ..event.with_values(&values, &named) }) {
            Err(NoRoom::TooLarge) if keep_nested => keep_nested = false,
            Err(NoRoom::TooLarge) => each /= 2,
            done => return done,
        }
    }
    Err(NoRoom::TooLarge)
}

/// Whether the value has other values in it.
pub(crate) fn is_nested(value: &Value<'_>) -> bool {
    matches!(value, Value::Dict(_) | Value::Array(_))
}

fn cut_value(value: &Value<'_>, max: usize, keep_nested: bool) -> Option<Text> {
    match value {
        Value::Str(s) | Value::Interned { text: s, .. } => cut(s, max),
        nested if is_nested(nested) && !keep_nested => Some(text_of([MARK])),
        _ => None,
    }
}

fn cut(text: &str, max: usize) -> Option<Text> {
    (text.len() > max).then(|| text_of([truncate_utf8(text, max - MARK.len()), MARK]))
}

fn text_of<const N: usize>(parts: [&str; N]) -> Text {
    let mut text = Text::default();
    parts.iter().for_each(|part| text.push(part));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::on::callsite::Callsite;
    use crate::on::event::extras::Extras;
    use crate::site::CallsiteKind;
    use crate::site::Site;

    static SITE: Site = Site { file: "f", line: 1, module: "m", ..Site::NOWHERE };
    static CALLSITE: Callsite = Callsite::new(CallsiteKind::Scope, "t", "n", &[], &SITE);

    #[test]
    fn long_strings_are_cut_with_a_mark_and_short_ones_stay() {
        let long = "é".repeat(5000);
        let values = [Value::I64(7), Value::Str("short"), Value::Str(&long)];
        let mut seen = Vec::new();
        let extras = Extras::new();
        let outcome = shortened(&Event::new(&CALLSITE, &values, &extras), 4000, |event| {
            seen = event.values.iter().map(|v| format!("{v:?}")).collect();
            Ok(())
        });
        assert_eq!(outcome, Ok(()));
        assert_eq!(seen[..2], ["I64(7)", "Str(\"short\")"]);
        assert!(seen[2].ends_with("é…\")") && seen[2].len() < 4000, "{}", seen[2].len());
    }

    #[test]
    fn a_record_without_strings_stays_too_large() {
        let extras = Extras::new();
        let event = Event::new(&CALLSITE, &[Value::I64(1)], &extras);
        assert_eq!(shortened(&event, 10, |_| Ok(())), Err(NoRoom::TooLarge));
    }
}
