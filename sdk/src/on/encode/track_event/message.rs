//! The TrackEvent packet as this SDK writes it, and which of its parts vary.
//!
//! ```text
//! 0a LEN  50 SEQUENCE | 68 02 5a L  48 TYPE  18 CATEGORY  50 NAME | 22 .. 22 .. | 40 DELTA
//! thread's prefix     | callsite's message                        | annotations | the only
//! (LEN filled in)     | (L filled in if something follows)        |             | time
//! ```
//!
//! A counter's message is `68 02 5a L  48 04  58 TRACK`, followed by its value (field 30 or 44).
//! Track uuids have 56 bits with the top one set, so that their varint is always 8 bytes and a
//! counter's message is 15.

use hairline_formats::track_event::fields::track_event as event;
use hairline_formats::track_event::{CounterValue, fields};
use hairline_formats::{Value, proto};

use crate::on::base::platform::process;
use crate::on::base::uuid;
use crate::on::callsite::{CallsiteKind, LONGEST_MESSAGE, TRACK_EVENT};

/// `68 02 5a 02 48 02`: the whole message of an end.
pub(crate) const END_MESSAGE: u64 = u64::from_le_bytes([0x68, 0x02, 0x5a, 0x02, 0x48, 0x02, 0, 0]);
/// Bytes of [`END_MESSAGE`].
pub(crate) const END_MESSAGE_LEN: usize = 6;
/// Where `L` stands in a message.
pub(crate) const LENGTH_AT: usize = 3;
/// Where the event's fields begin in a message.
pub(crate) const FIELDS_AT: usize = 4;

/// Bytes of a packet's time: its field's tag and a varint that is padded to three bytes, so that the packet's length is
/// known before the clock is read.
pub(crate) const TIME_LEN: usize = 4;

const _: () = assert!(TRACK_EVENT == 1);

/// The most bytes of a message that the hot path copies.
pub(crate) const LONGEST: usize = LONGEST_MESSAGE;

/// The message of a callsite, which the hot path can take if it has at most [`LONGEST`] bytes.
pub(crate) fn constant(kind: CallsiteKind, categories: &[u32], name: u64, text: &str) -> Vec<u8> {
    let mut fields = Vec::with_capacity(16);
    proto::put_uint(&mut fields, event::TYPE, event_type(kind) as u64);
    if kind == CallsiteKind::Counter {
        proto::put_uint(&mut fields, event::TRACK_UUID, counter_uuid(text));
    } else {
        for iid in categories.iter().filter(|iid| **iid != 0) {
            proto::put_uint(&mut fields, event::CATEGORY_IIDS, u64::from(*iid));
        }
        if name != 0 {
            proto::put_uint(&mut fields, event::NAME_IID, name);
        }
    }
    #[allow(clippy::cast_possible_truncation)] // what is cut here is longer than LONGEST
    let mut message = vec![0x68, 0x02, 0x5a, fields.len() as u8];
    message.extend(fields);
    message
}

pub(crate) fn event_type(kind: CallsiteKind) -> fields::EventType {
    match kind {
        CallsiteKind::Scope => fields::EventType::SliceBegin,
        CallsiteKind::Instant => fields::EventType::Instant,
        CallsiteKind::Counter => fields::EventType::Counter,
        CallsiteKind::End => fields::EventType::SliceEnd,
    }
}

/// What a counter's value is in a packet; None for what is not a number. A u64 above `i64::MAX` becomes a double.
#[inline(always)]
pub(crate) fn counter_value(value: &Value<'_>) -> Option<CounterValue> {
    match *value {
        Value::I64(v) => Some(CounterValue::Int(v)),
        Value::U64(v) => {
            #[allow(clippy::cast_precision_loss)] // 53 bits of it is what a double holds
            let double = CounterValue::Double(v as f64);
            Some(i64::try_from(v).map_or(double, CounterValue::Int))
        }
        Value::Bool(v) => Some(CounterValue::Int(i64::from(v))),
        Value::F64(v) => Some(CounterValue::Double(v)),
        _ => None,
    }
}

/// The track of the counter with this name that belongs to the process.
pub(crate) fn counter_uuid(name: &str) -> u64 {
    counter_uuid_on(process::track_uuid(), name)
}

/// The track of the counter with this name that belongs to another track.
pub(crate) fn counter_uuid_on(track_uuid: u64, name: &str) -> u64 {
    // FNV-1a over the name, mixed with the track's number.
    let hash =
        name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    uuid::track_uuid(hash ^ track_uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_fits_two_words_up_to_the_last_string_number() {
        for kind in [CallsiteKind::Scope, CallsiteKind::Instant, CallsiteKind::Counter] {
            let message = constant(kind, &[32_766], 32_767, "x");
            assert!(message.len() <= LONGEST, "{kind:?}: {}", message.len());
            assert_eq!(usize::from(message[LENGTH_AT]), message.len() - FIELDS_AT);
        }
    }

    #[test]
    fn an_end_is_its_type_alone() {
        let mut fields = Vec::new();
        proto::put_uint(&mut fields, event::TYPE, fields::EventType::SliceEnd as u64);
        assert_eq!(&END_MESSAGE.to_le_bytes()[FIELDS_AT..END_MESSAGE_LEN], fields);
    }
}
