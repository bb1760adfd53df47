//! The tags of the packets that Hairline writes for most events, and their numbers.

use crate::proto::{WireType, tag};
use crate::track_event::fields::{EventType, trace_packet as packet, track_event as event};

/// The tag of a number; one byte.
const fn number(field: u32) -> u8 {
    assert!(tag(field, WireType::Varint) < 0x80);
    tag(field, WireType::Varint) as u8
}

/// The tag of a counter's value; two bytes.
const fn value(field: u32, wire: WireType) -> (u8, u64) {
    let tag = tag(field, wire);
    (tag as u8 & 0x7f | 0x80, tag as u64 >> 7)
}

/// The tag of a message; one byte.
const fn bytes(field: u32) -> u8 {
    assert!(tag(field, WireType::Bytes) < 0x80);
    tag(field, WireType::Bytes) as u8
}

pub(super) const SEQUENCE: u8 = number(packet::TRUSTED_PACKET_SEQUENCE_ID);
pub(super) const FLAGS: u8 = number(packet::SEQUENCE_FLAGS);
pub(super) const TIMESTAMP: u8 = number(packet::TIMESTAMP);
pub(super) const EVENT: u8 = bytes(packet::TRACK_EVENT);

pub(super) const TYPE: u8 = number(event::TYPE);
pub(super) const NAME: u8 = number(event::NAME_IID);
pub(super) const CATEGORY: u8 = number(event::CATEGORY_IIDS);
pub(super) const TRACK: u8 = number(event::TRACK_UUID);
pub(super) const ANNOTATION: u8 = bytes(event::DEBUG_ANNOTATIONS);
/// The first byte, and what follows it.
pub(super) const VALUE: (u8, u64) = value(event::COUNTER_VALUE, WireType::Varint);
pub(super) const DOUBLE: (u8, u64) = value(event::DOUBLE_COUNTER_VALUE, WireType::Fixed64);

/// The beginning of a packet as Hairline writes it: its sequence, flags and the length of its event, each in
/// one byte after its tag.
pub(super) const HEAD: u64 = SEQUENCE as u64 | (FLAGS as u64) << 16 | (EVENT as u64) << 32;
/// The bits of tags, and the bit of each number that has more than one byte.
pub(super) const HEAD_MASK: u64 = 0x0000_80ff_80ff_80ff;
pub(super) const HEAD_LEN: usize = 6;

pub(super) const BEGIN: u64 = EventType::SliceBegin as u64;
pub(super) const END: u64 = EventType::SliceEnd as u64;
pub(super) const INSTANT: u64 = EventType::Instant as u64;
pub(super) const COUNTER: u64 = EventType::Counter as u64;
