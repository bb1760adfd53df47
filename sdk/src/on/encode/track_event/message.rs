//! The bytes of a TrackEvent packet, and the parts that vary.
//!
//! ```text
//! 0a LEN  50 SEQUENCE | 68 02 5a L  48 TYPE  18 CATEGORY  50 NAME | 22 .. 22 .. | 40 DELTA
//! the thread's prefix | the callsite's message                    | annotations | time
//! (LEN filled in)     | (L filled in if annotations follow)       |             |
//! ```
//!
//! In a short packet with annotations, the time comes before the message:
//! `0a LEN  50 SEQUENCE  40 DELTA  68 02 5a L ..`.
//!
//! A counter's message is `68 02 5a L  48 04  58 TRACK`, followed by its value (field 30 or 44). Track uuids
//! have 56 bits with the top bit set. So their varint always has 8 bytes, and a counter's message has 15.

use hairline_formats::track_event::fields::track_event as event;
use hairline_formats::track_event::{CounterValue, SequenceId, TrackUuid, fields};
use hairline_formats::{Value, proto};

use crate::on::base::buffer::Buffer;
use crate::on::base::platform::process;
use crate::on::base::this_thread::Hot;
use crate::on::base::uuid;
use crate::on::callsite::{Callsite, LONGEST_MESSAGE, StringId};
use crate::site::CallsiteKind;

/// `68 02 5a 02 48 02`: the whole message of an end.
pub(crate) const END_MESSAGE: u64 = u64::from_le_bytes([0x68, 0x02, 0x5a, 0x02, 0x48, 0x02, 0, 0]);
/// Bytes of [`END_MESSAGE`].
pub(crate) const END_MESSAGE_LEN: usize = 6;
/// The offset of `L` in a message.
pub(crate) const LENGTH_AT: usize = 3;
/// The offset of the event's fields in a message.
pub(crate) const FIELDS_AT: usize = 4;

/// Bytes of a packet's time: the tag of its field, and a varint padded to three bytes. So the length of a
/// packet is known before the clock is read.
pub(crate) const TIME_LEN: usize = 4;

/// The most bytes of a message that the hot path copies.
pub(crate) const LONGEST: usize = LONGEST_MESSAGE;

/// A message that is whole, or was longer than [`LONGEST`] bytes.
struct Message {
    bytes: Buffer<LONGEST>,
    is_whole: bool,
}

impl proto::PutBytes for Message {
    fn bytes(&mut self, bytes: &[u8]) {
        self.is_whole &= self.bytes.push(bytes);
    }
}

/// The constant part of a callsite's TrackEvent message. The hot path copies messages of up to [`LONGEST`]
/// bytes. Returns `None` if it is longer: the events take the cold path.
pub(crate) fn constant(
    kind: CallsiteKind,
    categories: &[StringId],
    name: StringId,
    text: &str,
) -> Option<Buffer<LONGEST>> {
    let mut fields = Message { bytes: Buffer::new(), is_whole: true };
    fields.bytes.push(&[0x68, 0x02, 0x5a, 0]);
    proto::put_uint(&mut fields, event::TYPE, event_type(kind) as u64);
    if kind == CallsiteKind::Counter {
        proto::put_uint(&mut fields, event::TRACK_UUID, counter_uuid(text).0);
    } else {
        for id in categories.iter().filter(|id| !id.is_none()) {
            proto::put_uint(&mut fields, event::CATEGORY_IIDS, id.iid());
        }
        if !name.is_none() {
            proto::put_uint(&mut fields, event::NAME_IID, name.iid());
        }
    }
    let Message { mut bytes, is_whole } = fields;
    bytes.as_mut_slice()[LENGTH_AT] = (bytes.len() - FIELDS_AT) as u8;
    is_whole.then_some(bytes)
}

/// Returns the bytes of the name in the callsite's message, where it is the last field.
#[inline(always)]
pub(crate) fn own_name_len(callsite: &'static Callsite) -> usize {
    match callsite.name_id() {
        StringId::NONE => 0,
        id => 1 + proto::varint_len(id.iid()),
    }
}

pub(crate) fn event_type(kind: CallsiteKind) -> fields::EventType {
    match kind {
        CallsiteKind::Scope => fields::EventType::SliceBegin,
        CallsiteKind::Instant => fields::EventType::Instant,
        CallsiteKind::Counter => fields::EventType::Counter,
        CallsiteKind::End => fields::EventType::SliceEnd,
    }
}

/// Returns a counter's value as packets have it, or `None` if the value is no number. A u64 above `i64::MAX`
/// becomes a double.
#[inline(always)]
pub(crate) fn counter_value(value: &Value<'_>) -> Option<CounterValue> {
    match *value {
        Value::I64(v) => Some(CounterValue::Int(v)),
        Value::U64(v) => {
            #[allow(clippy::cast_precision_loss)] // a double holds 53 bits
            let double = CounterValue::Double(v as f64);
            Some(i64::try_from(v).map_or(double, CounterValue::Int))
        }
        Value::Bool(v) => Some(CounterValue::Int(i64::from(v))),
        Value::F64(v) => Some(CounterValue::Double(v)),
        _ => None,
    }
}

/// Returns the track of the process's counter with this name.
pub(crate) fn counter_uuid(name: &str) -> TrackUuid {
    counter_uuid_on(process::track_uuid(), name)
}

/// Returns the track of the counter with this name on another track.
pub(crate) fn counter_uuid_on(track_uuid: TrackUuid, name: &str) -> TrackUuid {
    counter_uuid_of(track_uuid, name_hash(name))
}

/// Returns the track of the counter whose name has this hash, on another track.
#[inline]
pub(crate) fn counter_uuid_of(track_uuid: TrackUuid, name_hash: u64) -> TrackUuid {
    uuid::track_uuid(name_hash ^ track_uuid.0)
}

/// Returns the hash of a counter's name: FNV-1a.
pub(crate) fn name_hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3))
}

/// Publishes the constant bytes of the packets of a sequence to the hot path: their prefix, and the whole
/// packet of an end but its time.
pub(crate) fn set_packet_constants(hot: &Hot, sequence: SequenceId) {
    let (number, number_len) = proto::varint_up_to_8(u64::from(sequence.0));
    let len = 3 + number_len; // at most 8
    let packet_base = len + TIME_LEN;
    let field = proto::tag(fields::trace_packet::TRUSTED_PACKET_SEQUENCE_ID, proto::WireType::Varint);
    let prefix = 0x0a | (packet_base as u64 - 2) << 8 | u64::from(field) << 16 | number << 24;
    hot.prefix.set(prefix);
    hot.prefix_len.set(len);
    hot.packet_base.set(packet_base as u32);
    let end = u128::from(prefix + ((END_MESSAGE_LEN as u64) << 8)) | u128::from(END_MESSAGE) << (8 * len);
    hot.end_packet.set([end as u64, (end >> 64) as u64]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_with_the_largest_string_ids_fit_two_words() {
        for kind in [CallsiteKind::Scope, CallsiteKind::Instant, CallsiteKind::Counter] {
            let message = constant(kind, &[StringId(32_766)], StringId(32_767), "x").expect("it fits");
            let message = message.as_slice();
            assert_eq!(usize::from(message[LENGTH_AT]), message.len() - FIELDS_AT);
        }
    }

    #[test]
    fn the_message_of_an_end_has_its_type_and_no_other_field() {
        let mut fields = Vec::new();
        proto::put_uint(&mut fields, event::TYPE, fields::EventType::SliceEnd as u64);
        assert_eq!(&END_MESSAGE.to_le_bytes()[FIELDS_AT..END_MESSAGE_LEN], fields);
    }
}
