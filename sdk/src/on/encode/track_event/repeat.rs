//! The begins of open slices as TrackEvent packets, repeated at the start of a chunk. They need no
//! incremental state: their strings are not interned, and their time is on the trace's own clock.

use hairline_formats::proto;
use hairline_formats::proto::{FieldValue, Fields};
use hairline_formats::track_event::fields::{clock, debug_annotation, trace, trace_packet, track_event};

use crate::on::base::memory::Bytes;
use crate::on::callsite::{StringId, registry};
use crate::on::encode::begin::{Begin, Note, Repeated};
use crate::on::encode::cut;
use crate::on::encode::sequence::State;
use crate::on::encode::track_event::location::location_with;
use crate::on::encode::track_event::tracks::put_thread;

/// The time of a begin, in ns. The note of a begin.
#[derive(Clone, Copy)]
pub(crate) struct BeginTime(pub(crate) u64);

impl From<BeginTime> for Note {
    fn from(time: BeginTime) -> Self {
        Self { id: time.0 as u32, more: time.0 >> 32 }
    }
}

impl From<Note> for BeginTime {
    fn from(note: Note) -> Self {
        Self(u64::from(note.id) | note.more << 32)
    }
}

/// Begins that are repeated.
#[derive(Debug, Default)]
pub(crate) struct RepeatedPackets(Repeated);

impl RepeatedPackets {
    /// See [`Sequence::repeat_begins`](crate::on::encode::sequence::Sequence::repeat_begins). The track of
    /// the thread precedes the begins.
    pub(crate) fn repeat(
        &mut self,
        out: &mut Bytes,
        state: &State,
        chunk: &[u8],
        begins: &mut [Begin],
        room: usize,
    ) {
        let Self(repeated) = self;
        repeated.clear();
        for begin in &mut *begins {
            let packets = begin.at.map(|at| chunk.get(at as usize..).unwrap_or(&[]));
            begin.at = packets.and_then(|packets| {
                put_packet(&mut repeated.begins, state, packets, BeginTime::from(begin.note))
            });
        }
        if !repeated.begins.is_empty() {
            put_thread(&mut repeated.preceding, state.number, state.track_uuid, &state.thread);
        }
        repeated.keep_innermost(begins, room, |_, _| {});
        repeated.copy_to(out);
    }
}

/// Writes the first packet of `packets` without references to interned data. Returns its offset.
fn put_packet(out: &mut Bytes, state: &State, packets: &[u8], time: BeginTime) -> Option<u32> {
    let packet = message(packets, trace::PACKET)?;
    let event = message(packet, trace_packet::TRACK_EVENT)?;
    let at = u32::try_from(out.len()).ok()?;
    proto::put_message(out, trace::PACKET, |out| {
        proto::put_uint(out, trace_packet::TIMESTAMP, time.0);
        proto::put_uint(out, trace_packet::TIMESTAMP_CLOCK_ID, u64::from(clock::BOOTTIME));
        proto::put_uint(out, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, u64::from(state.number.0));
        proto::put_message(out, trace_packet::TRACK_EVENT, |out| {
            proto::put_uint(out, track_event::TRACK_UUID, state.track_uuid.0);
            fields(event).for_each(|field| put_event_field(out, field));
        });
    });
    Some(at)
}

type Field<'a> = (u32, FieldValue<'a>);

/// The fields of a message that this SDK wrote.
fn fields(message: &[u8]) -> impl Iterator<Item = Field<'_>> {
    Fields::new(message, 0).map_while(Result::ok).map(|field| (field.number, field.value))
}

/// The first field `number` of a message.
fn message(bytes: &[u8], number: u32) -> Option<&[u8]> {
    fields(bytes).find_map(|field| match field {
        (n, FieldValue::Bytes { bytes, .. }) if n == number => Some(bytes),
        _ => None,
    })
}

fn put_event_field(out: &mut Bytes, field: Field<'_>) {
    match field {
        (track_event::CATEGORY_IIDS, FieldValue::Varint(iid)) => put_text(out, track_event::CATEGORIES, iid),
        (track_event::NAME_IID, FieldValue::Varint(iid)) => put_text(out, track_event::NAME, iid),
        (track_event::SOURCE_LOCATION_IID, FieldValue::Varint(iid)) => {
            if let Some(at) = location_with(iid) {
                proto::put_message(out, track_event::SOURCE_LOCATION, |out| at.put(out));
            }
        }
        (track_event::DEBUG_ANNOTATIONS, FieldValue::Bytes { bytes, .. }) => {
            put_annotation(out, track_event::DEBUG_ANNOTATIONS, bytes);
        }
        // The tracks of extra counters are part of the incremental state.
        (track_event::EXTRA_COUNTER_VALUES, _) => {}
        // A begin that was repeated before has its track. `put_packet` writes it.
        (track_event::TRACK_UUID, _) => {}
        (number, value) => put_unchanged(out, number, value),
    }
}

/// Writes an annotation, nested as deeply as this SDK writes annotations.
fn put_annotation(out: &mut Bytes, number: u32, annotation: &[u8]) {
    proto::put_message(out, number, |out| {
        for field in fields(annotation) {
            match field {
                (debug_annotation::NAME_IID, FieldValue::Varint(iid)) => {
                    put_text(out, debug_annotation::NAME, iid);
                }
                (debug_annotation::STRING_VALUE_IID, FieldValue::Varint(iid)) => {
                    put_text(out, debug_annotation::STRING_VALUE, iid);
                }
                (
                    number @ (debug_annotation::DICT_ENTRIES | debug_annotation::ARRAY_VALUES),
                    FieldValue::Bytes { bytes, .. },
                ) => put_annotation(out, number, bytes),
                (number, value) => put_unchanged(out, number, value),
            }
        }
    });
}

/// Writes the text of an interned string.
fn put_text(out: &mut Bytes, number: u32, iid: u64) {
    let id = u32::try_from(iid).ok().map(StringId);
    if let Some(text) = id.and_then(registry::string_with) {
        proto::put_str(out, number, cut(text));
    }
}

fn put_unchanged(out: &mut Bytes, number: u32, value: FieldValue<'_>) {
    match value {
        FieldValue::Varint(value) => proto::put_uint(out, number, value),
        FieldValue::Fixed64(value) => proto::put_fixed64(out, number, value),
        FieldValue::Bytes { bytes, .. } => proto::put_bytes(out, number, bytes),
        FieldValue::Fixed32(_) => {} // this SDK writes none
    }
}
