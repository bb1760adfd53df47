//! `LegacyEvent`: an event of the Trace Event Format inside a TrackEvent, written and read.
//!
//! Chrome writes it for events that TrackEvent has no better form for.

use crate::DecodeError;
use crate::proto::{FieldValue, Fields, put_nonzero, put_some, put_str, put_uint};
use crate::track_event::fields::legacy_event as fields;

/// `LegacyEvent`. If it has a phase, the phase replaces the event's type.
///
/// ```
/// use hairline_formats::proto::put_message;
/// use hairline_formats::track_event::fields::track_event;
/// use hairline_formats::track_event::{
///     Event, EventType, LegacyEvent, LegacyId, PacketData, PacketReader, SequenceId, event_with,
/// };
///
/// let begin = LegacyEvent { phase: b'b', id: Some(LegacyId::Global(7)), ..LegacyEvent::default() };
/// let mut trace = Vec::new();
/// event_with(&mut trace, &Event::new(SequenceId(1), EventType::Unspecified, 1_000), |event| {
///     put_message(event, track_event::LEGACY_EVENT, |legacy| begin.put(legacy));
/// });
///
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Event(event)) = packet.data else { panic!() };
/// let mut unknown_fields = 0;
/// assert_eq!(event.legacy(&mut unknown_fields)?, Some(begin));
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegacyEvent<'a> {
    /// The phase, an ASCII letter; 0 is none.
    pub phase: u8,
    /// The interned id of the name, if the event has no name.
    pub name_iid: Option<u64>,
    /// The duration in microseconds, for phase `X`.
    pub duration_us: Option<i64>,
    /// The event's id.
    pub id: Option<LegacyId>,
    /// The scope of the id: equal ids of different scopes are different.
    pub id_scope: Option<&'a str>,
    /// The flow of the slice, and its direction.
    pub bind: Option<(u64, FlowDirection)>,
    /// Whether a flow ends at the enclosing slice instead of the next one.
    pub bind_to_enclosing: bool,
    /// The scope of an instant: 1 is the trace, 2 the process, and 3 the thread. 0 is unspecified.
    pub instant_scope: u8,
    /// The process of an event without a track.
    pub pid_override: Option<i32>,
    /// The thread of an event without a track.
    pub tid_override: Option<i32>,
}

/// The id of a legacy event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyId {
    /// Unique in the process or in the trace, depending on the phase.
    Unscoped(u64),
    /// Unique in the process.
    Local(u64),
    /// Unique in the trace.
    Global(u64),
}

/// `LegacyEvent.FlowDirection`: two bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowDirection {
    /// The flow enters the slice.
    pub comes: bool,
    /// The flow leaves the slice.
    pub goes: bool,
}

impl<'a> LegacyEvent<'a> {
    pub(super) fn decode(message: Fields<'a>, skipped: &mut u32) -> Result<Self, DecodeError> {
        use FieldValue::Varint;
        let (mut event, mut bind_id, mut direction) = (Self::default(), None, FlowDirection::default());
        for field in message {
            let field = field?;
            match (field.number, field.value) {
                (fields::PHASE, Varint(v)) => event.phase = u8::try_from(v).unwrap_or(b'?'),
                (fields::NAME_IID, Varint(v)) => event.name_iid = Some(v),
                (fields::DURATION_US, Varint(v)) => event.duration_us = Some(v.cast_signed()),
                (fields::UNSCOPED_ID, Varint(v)) => event.id = Some(LegacyId::Unscoped(v)),
                (fields::LOCAL_ID, Varint(v)) => event.id = Some(LegacyId::Local(v)),
                (fields::GLOBAL_ID, Varint(v)) => event.id = Some(LegacyId::Global(v)),
                (fields::ID_SCOPE, value) => event.id_scope = value.text(),
                (fields::BIND_ID, Varint(v)) => bind_id = Some(v),
                (fields::FLOW_DIRECTION, Varint(v)) => {
                    direction = FlowDirection { comes: v & 1 != 0, goes: v & 2 != 0 };
                }
                (fields::BIND_TO_ENCLOSING, Varint(v)) => event.bind_to_enclosing = v != 0,
                (fields::INSTANT_EVENT_SCOPE, Varint(v @ 0..=3)) => event.instant_scope = v as u8,
                (fields::PID_OVERRIDE, Varint(v)) => event.pid_override = Some(v as i32),
                (fields::TID_OVERRIDE, Varint(v)) => event.tid_override = Some(v as i32),
                _ => *skipped += 1,
            }
        }
        event.bind = bind_id.map(|id| (id, direction));
        Ok(event)
    }

    /// Appends the fields of the message.
    pub fn put(&self, out: &mut Vec<u8>) {
        put_some(out, fields::NAME_IID, self.name_iid);
        put_nonzero(out, fields::PHASE, u64::from(self.phase));
        put_some(out, fields::DURATION_US, self.duration_us.map(i64::cast_unsigned));
        match self.id {
            Some(LegacyId::Unscoped(id)) => put_uint(out, fields::UNSCOPED_ID, id),
            Some(LegacyId::Local(id)) => put_uint(out, fields::LOCAL_ID, id),
            Some(LegacyId::Global(id)) => put_uint(out, fields::GLOBAL_ID, id),
            None => {}
        }
        if let Some(scope) = self.id_scope {
            put_str(out, fields::ID_SCOPE, scope);
        }
        if let Some((id, FlowDirection { comes, goes })) = self.bind {
            put_uint(out, fields::BIND_ID, id);
            put_uint(out, fields::FLOW_DIRECTION, u64::from(comes) | u64::from(goes) << 1);
        }
        put_nonzero(out, fields::BIND_TO_ENCLOSING, u64::from(self.bind_to_enclosing));
        put_nonzero(out, fields::INSTANT_EVENT_SCOPE, u64::from(self.instant_scope));
        let signed = |id: i32| i64::from(id).cast_unsigned();
        put_some(out, fields::PID_OVERRIDE, self.pid_override.map(signed));
        put_some(out, fields::TID_OVERRIDE, self.tid_override.map(signed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_event_is_read_back() {
        let events = [
            LegacyEvent::default(),
            LegacyEvent { phase: b'X', duration_us: Some(7), name_iid: Some(3), ..LegacyEvent::default() },
            LegacyEvent {
                phase: b'f',
                id: Some(LegacyId::Unscoped(9)),
                bind_to_enclosing: true,
                ..LegacyEvent::default()
            },
            LegacyEvent {
                phase: b'b',
                id: Some(LegacyId::Local(u64::MAX)),
                id_scope: Some("scope"),
                instant_scope: 2,
                pid_override: Some(7),
                tid_override: Some(-1),
                bind: Some((5, FlowDirection { comes: true, goes: false })),
                ..LegacyEvent::default()
            },
        ];
        for event in events {
            let mut out = Vec::new();
            event.put(&mut out);
            let mut skipped = 0;
            assert_eq!(LegacyEvent::decode(Fields::new(&out, 0), &mut skipped).unwrap(), event);
            assert_eq!(skipped, 0);
        }
    }
}
