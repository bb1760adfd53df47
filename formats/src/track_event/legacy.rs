//! An event as Trace Event JSON has it, inside a TrackEvent: `LegacyEvent`. Chrome writes what has no better form so.

use crate::DecodeError;
use crate::proto::{FieldValue, Fields, put_sint64, put_str, put_uint};
use crate::track_event::fields::legacy_event as fields;

/// `LegacyEvent`. Where there is a phase, it says what happened, and the event's type nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LegacyEvent<'a> {
    /// The phase, a letter; 0 is none.
    pub phase: u8,
    /// The number of its name, where the event has none.
    pub name_iid: Option<u64>,
    /// How long it takes, with phase `X`, in microseconds.
    pub duration_us: Option<i64>,
    /// Its number.
    pub id: Option<LegacyId>,
    /// What tells equal numbers apart.
    pub id_scope: Option<&'a str>,
    /// The flow through the slice, and the way it goes.
    pub bind: Option<(u64, FlowDirection)>,
    /// Whether a flow ends at the slice that is open, not at the next one.
    pub bind_to_enclosing: bool,
}

/// The number of a legacy event, in one of three ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LegacyId {
    /// Of its process or of the trace, as the phase has it.
    Unscoped(u64),
    /// Of its process.
    Local(u64),
    /// Of the trace.
    Global(u64),
}

/// `LegacyEvent.FlowDirection`, as bits: into the slice, out of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowDirection {
    /// It comes to the slice.
    pub comes: bool,
    /// It goes on from the slice.
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
                _ => *skipped += 1,
            }
        }
        event.bind = bind_id.map(|id| (id, direction));
        Ok(event)
    }

    /// The fields.
    pub fn put(&self, out: &mut Vec<u8>) {
        let number = |out: &mut Vec<u8>, field, value: Option<u64>| {
            if let Some(value) = value {
                put_uint(out, field, value);
            }
        };
        number(out, fields::NAME_IID, self.name_iid);
        number(out, fields::PHASE, (self.phase != 0).then_some(u64::from(self.phase)));
        if let Some(us) = self.duration_us {
            put_sint64(out, fields::DURATION_US, us);
        }
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
        if self.bind_to_enclosing {
            put_uint(out, fields::BIND_TO_ENCLOSING, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
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
