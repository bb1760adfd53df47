//! Reads plain events in one pass over the packet. Nearly all events of a trace are plain.
//!
//! [`Packet::decode`](crate::track_event::Packet::decode) reads all packets and reports malformed ones. Here,
//! a packet that is malformed or has any other field is just not plain.

use crate::proto::{Fields, WireType, tag};
use crate::track_event::event::CounterValue;
use crate::track_event::fields::{EventType, trace_packet as packet, track_event as event};
use crate::track_event::ids::{SequenceId, TrackUuid};
use crate::track_event::read::rest::Rest;
use crate::track_event::sequence::Name;

/// A packet with an event that has only these fields.
///
/// ```
/// use hairline_formats::track_event::{
///     Event, EventType, Name, Packet, PacketReader, PlainEvent, SequenceId, event, trace_uuid,
/// };
///
/// let mut trace = Vec::new();
/// let instant = Event::new(SequenceId(1), EventType::Instant, 1_000);
/// event(&mut trace, &Event { name: Some(Name::Iid(3)), ..instant });
/// trace_uuid(&mut trace, SequenceId(1), 0x1234);
///
/// let (mut reader, mut events, mut others) = (PacketReader::new(&trace[..]), 0, 0);
/// while let Some((_, message)) = reader.next_message()? {
///     match PlainEvent::decode(&message) {
///         Some(event) => {
///             assert_eq!(event.name, Some(Name::Iid(3)));
///             events += 1;
///         }
///         None => {
///             Packet::decode(message)?; // everything else
///             others += 1;
///         }
///     }
/// }
/// assert_eq!((events, others), (1, 1));
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct PlainEvent<'a> {
    /// The packet's sequence; 0 if it is missing.
    pub sequence: SequenceId,
    /// Bits of [`sequence_flags`](crate::track_event::fields::sequence_flags).
    pub flags: u32,
    /// The time, on the clock `clock_id`.
    pub timestamp: u64,
    /// The number of the timestamp's [clock](crate::track_event::fields::clock), unless it is the sequence's
    /// default.
    pub clock_id: Option<u32>,
    /// The type of the event.
    pub kind: EventType,
    /// The name.
    pub name: Option<Name<'a>>,
    /// The only category.
    pub category: Option<Name<'a>>,
    /// The track, unless it is the sequence's default.
    pub track_uuid: Option<TrackUuid>,
    /// The sample, of a counter event.
    pub counter: Option<CounterValue>,
    /// The only flow that passes through the event.
    pub flow_id: Option<u64>,
    /// The only flow that ends at the event.
    pub terminating_flow_id: Option<u64>,
    /// The event's bytes from its first argument on, for
    /// [`Annotations::of_event`](crate::track_event::Annotations::of_event); empty if there are no arguments.
    pub annotated: &'a [u8],
}

const fn number(field: u32) -> u64 {
    tag(field, WireType::Varint) as u64
}

const fn fixed(field: u32) -> u64 {
    tag(field, WireType::Fixed64) as u64
}

const fn bytes(field: u32) -> u64 {
    tag(field, WireType::Bytes) as u64
}

const SEQUENCE: u64 = number(packet::TRUSTED_PACKET_SEQUENCE_ID);
const FLAGS: u64 = number(packet::SEQUENCE_FLAGS);
const TIMESTAMP: u64 = number(packet::TIMESTAMP);
const CLOCK: u64 = number(packet::TIMESTAMP_CLOCK_ID);
const EVENT: u64 = bytes(packet::TRACK_EVENT);

const TYPE: u64 = number(event::TYPE);
const NAME_IID: u64 = number(event::NAME_IID);
const NAME: u64 = bytes(event::NAME);
const CATEGORY_IID: u64 = number(event::CATEGORY_IIDS);
const CATEGORY: u64 = bytes(event::CATEGORIES);
const TRACK: u64 = number(event::TRACK_UUID);
const COUNTER: u64 = number(event::COUNTER_VALUE);
const DOUBLE_COUNTER: u64 = fixed(event::DOUBLE_COUNTER_VALUE);
const FLOW: u64 = fixed(event::FLOW_IDS);
const ENDING_FLOW: u64 = fixed(event::TERMINATING_FLOW_IDS);
const ANNOTATION: u64 = bytes(event::DEBUG_ANNOTATIONS);

impl<'a> PlainEvent<'a> {
    /// Reads the event of a packet. Returns `None` if the packet is not a plain event.
    #[inline(always)] // the caller then keeps the fields in registers
    #[must_use]
    pub fn decode(packet: &Fields<'a>) -> Option<Self> {
        let mut plain = Self {
            sequence: SequenceId(0),
            flags: 0,
            timestamp: 0,
            clock_id: None,
            kind: EventType::Unspecified,
            name: None,
            category: None,
            track_uuid: None,
            counter: None,
            flow_id: None,
            terminating_flow_id: None,
            annotated: &[],
        };
        let (mut event, mut timestamp) = (None, None);
        let mut rest = Rest(packet.rest());
        while !rest.0.is_empty() {
            match rest.varint()? {
                SEQUENCE => plain.sequence = SequenceId(rest.varint()? as u32),
                FLAGS => plain.flags |= rest.varint()? as u32,
                TIMESTAMP => timestamp = Some(rest.varint()?),
                CLOCK => plain.clock_id = Some(rest.varint()? as u32),
                EVENT => only(&mut event, rest.bytes()?)?,
                _ => return None,
            }
        }
        plain.timestamp = timestamp?;
        plain.add_event(event?)?;
        Some(plain)
    }

    #[inline(always)] // as `decode`
    fn add_event(&mut self, event: &'a [u8]) -> Option<()> {
        let mut rest = Rest(event);
        while !rest.0.is_empty() {
            let field = rest.0;
            match rest.varint()? {
                TYPE => self.kind = EventType::from_number(rest.varint()?)?,
                NAME_IID => only(&mut self.name, Name::Iid(rest.varint()?))?,
                NAME => only(&mut self.name, Name::Text(std::str::from_utf8(rest.bytes()?).ok()?))?,
                CATEGORY_IID => only(&mut self.category, Name::Iid(rest.varint()?))?,
                CATEGORY => only(&mut self.category, Name::Text(std::str::from_utf8(rest.bytes()?).ok()?))?,
                TRACK => self.track_uuid = Some(TrackUuid(rest.varint()?)),
                COUNTER => self.counter = Some(CounterValue::Int(rest.varint()?.cast_signed())),
                DOUBLE_COUNTER => {
                    self.counter = Some(CounterValue::Double(f64::from_bits(rest.fixed64()?)));
                }
                FLOW => only(&mut self.flow_id, rest.fixed64()?)?,
                ENDING_FLOW => only(&mut self.terminating_flow_id, rest.fixed64()?)?,
                ANNOTATION => {
                    rest.bytes()?;
                    if self.annotated.is_empty() {
                        self.annotated = field;
                    }
                }
                _ => return None,
            }
        }
        Some(())
    }
}

/// Sets a field that can occur once. Returns `None` if it is set already.
#[inline]
fn only<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    if slot.is_some() {
        return None;
    }
    *slot = Some(value);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::track_event::{
        Annotations, Event, LogMessage, Numbers, Packet, PacketData, PacketReader, Priority, event,
    };
    use crate::{DecodeError, Value};

    /// The event's fields, read once as a plain event and once as any packet. `None` if the event is not
    /// plain.
    fn both_ways(written: &Event<'_>) -> Option<[String; 2]> {
        let mut trace = Vec::new();
        event(&mut trace, written);
        let mut reader = PacketReader::new(&trace[..]);
        let (_, message) = reader.next_message().unwrap().unwrap();
        let plain = PlainEvent::decode(&message)?;
        let packet = Packet::decode(message).unwrap();
        let Some(PacketData::Event(any)) = packet.data else { panic!("no event") };
        let iids: Result<Vec<_>, DecodeError> = any.category_iids().collect();
        let texts: Result<Vec<_>, DecodeError> = any.categories().collect();
        let category = iids.unwrap().into_iter().map(Name::Iid);
        let category = category.chain(texts.unwrap().into_iter().map(Name::Text)).next();
        let name = any.name_iid.map(Name::Iid).or(any.name.map(Name::Text));
        let arguments = [plain.annotated, any.bytes()].map(|bytes| {
            Annotations::of_event(bytes).map(|a| format!("{:?}", a.unwrap())).collect::<Vec<_>>()
        });
        let flows = |ids: Numbers<'_>| ids.map(Result::unwrap).next();
        Some([
            format!(
                "{:?} {:?} {:?} {:?} {:?}",
                (plain.sequence, plain.flags, plain.timestamp, plain.clock_id),
                (Some(plain.kind), plain.name, plain.category, plain.track_uuid, plain.counter),
                plain.flow_id,
                plain.terminating_flow_id,
                arguments[0],
            ),
            format!(
                "{:?} {:?} {:?} {:?} {:?}",
                (packet.sequence, packet.flags, packet.timestamp.unwrap(), packet.clock_id),
                (any.kind, name, category, any.track_uuid, any.counter),
                flows(any.flow_ids()),
                flows(any.terminating_flow_ids()),
                arguments[1],
            ),
        ])
    }

    #[test]
    fn a_plain_event_has_the_fields_of_its_packet() {
        let bare = Event::new(SequenceId(7), EventType::SliceBegin, 300);
        let (iid, text) = ([Name::Iid(3)], [Name::Text("net")]);
        let arguments = [(Name::Iid(1), Value::I64(-1)), (Name::Text("b"), Value::Str("c"))];
        for written in [
            bare,
            Event { categories: &iid, name: Some(Name::Iid(200)), annotations: &arguments, ..bare },
            Event {
                categories: &text,
                name: Some(Name::Text("read")),
                track_uuid: Some(TrackUuid(u64::MAX)),
                ..bare
            },
            Event {
                counter: Some(CounterValue::Int(-5)),
                kind: EventType::Counter,
                clock_id: Some(6),
                ..bare
            },
            Event { counter: Some(CounterValue::Double(0.5)), needs_state: false, ..bare },
            Event { flow_ids: &[1], terminating_flow_ids: &[u64::MAX], annotations: &arguments[..1], ..bare },
        ] {
            let [plain, any] = both_ways(&written).expect("it is plain");
            assert_eq!(plain, any);
        }
    }

    #[test]
    fn an_event_with_other_fields_is_not_plain() {
        let bare = Event::new(SequenceId(7), EventType::Instant, 300);
        let log = LogMessage { body_iid: 1, priority: Priority::Unspecified, source_location_iid: 0 };
        for written in [
            Event { log: Some(log), ..bare },
            Event { categories: &[Name::Iid(1), Name::Iid(2)], ..bare },
            Event { flow_ids: &[1, 2], ..bare },
            Event { extra_counters: &[1], ..bare },
        ] {
            assert_eq!(both_ways(&written), None, "{written:?}");
        }
    }
}
