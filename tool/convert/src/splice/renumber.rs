//! Changes the sequence and track ids of a packet.
//!
//! A sequence id is a field of the packet itself, so its length may change. Track ids are in nested messages,
//! whose lengths must not change, so a new track id is as long as the old one.

use std::ops::Range;

use hairline_formats::DecodeError;
use hairline_formats::proto::{
    Field, FieldValue, Fields, MAX_VARINT, WireType, put_uint, put_varint, tag, varint_len,
};
use hairline_formats::track_event::SequenceId;
use hairline_formats::track_event::fields::{
    trace, trace_packet, trace_packet_defaults, track_descriptor, track_event, track_event_defaults,
};

use crate::splice::salt::Salt;

/// The fields with track ids, for each message.
const EVENT: &[u32] = &[
    track_event::TRACK_UUID,
    track_event::EXTRA_COUNTER_TRACK_UUIDS,
    track_event::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS,
];
const DESCRIPTOR: &[u32] = &[track_descriptor::UUID, track_descriptor::PARENT_UUID];
const DEFAULTS: &[u32] = &[
    track_event_defaults::TRACK_UUID,
    track_event_defaults::EXTRA_COUNTER_TRACK_UUIDS,
    track_event_defaults::EXTRA_DOUBLE_COUNTER_TRACK_UUIDS,
];

/// Changes ids in packets. Reuses its buffers.
#[derive(Debug, Default)]
pub(super) struct Renumber {
    packet: Vec<u8>,
    /// The positions of the track ids in the packet.
    tracks: Vec<Range<usize>>,
}

impl Renumber {
    /// Appends the packet with tag and length. `sequence` maps the old sequence id to the new one.
    ///
    /// # Errors
    /// Fails and appends nothing if a message in the packet is malformed.
    pub(super) fn put(
        &mut self,
        out: &mut Vec<u8>,
        packet: &[u8],
        salt: Salt,
        mut sequence: impl FnMut(SequenceId) -> SequenceId,
    ) -> Result<(), DecodeError> {
        let Self { packet: copy, tracks } = self;
        tracks.clear();
        copy.clear();
        copy.extend_from_slice(packet);
        // If the field is repeated, the last one counts.
        let mut own: Option<(Range<usize>, SequenceId)> = None;
        for field in Fields::new(packet, 0) {
            let field = field?;
            match (field.number, field.value) {
                (trace_packet::TRUSTED_PACKET_SEQUENCE_ID, FieldValue::Varint(id)) => {
                    own = Some((field.offset as usize..value_of(packet, &field).end, SequenceId(id as u32)));
                }
                _ if salt.0 == 0 => {}
                (number, FieldValue::Bytes { bytes, offset }) => {
                    find_tracks(packet, number, Fields::new(bytes, offset), tracks)?;
                }
                _ => {}
            }
        }
        for number in tracks.drain(..) {
            salted(&mut copy[number], salt);
        }
        let own = own.filter(|(_, id)| *id != SequenceId(0)).map(|(place, id)| (place, sequence(id)));
        put_with(out, copy, own);
        Ok(())
    }
}

/// Writes the packet with another sequence id. The range includes the tag of the field.
fn put_with(out: &mut Vec<u8>, packet: &[u8], own: Option<(Range<usize>, SequenceId)>) {
    const SEQUENCE: u32 = trace_packet::TRUSTED_PACKET_SEQUENCE_ID;
    put_varint(out, u64::from(tag(trace::PACKET, WireType::Bytes)));
    let Some((place, id)) = own else {
        put_varint(out, packet.len() as u64);
        return out.extend_from_slice(packet);
    };
    let tag_len = varint_len(u64::from(tag(SEQUENCE, WireType::Varint)));
    let len = packet.len() - place.len() + tag_len + varint_len(u64::from(id.0));
    put_varint(out, len as u64);
    out.extend_from_slice(&packet[..place.start]);
    put_uint(out, SEQUENCE, u64::from(id.0));
    out.extend_from_slice(&packet[place.end..]);
}

/// Collects the positions of the track ids in a message of a packet.
fn find_tracks(
    packet: &[u8],
    number: u32,
    message: Fields<'_>,
    tracks: &mut Vec<Range<usize>>,
) -> Result<(), DecodeError> {
    let fields = match number {
        trace_packet::TRACK_EVENT => EVENT,
        trace_packet::TRACK_DESCRIPTOR => DESCRIPTOR,
        trace_packet::TRACE_PACKET_DEFAULTS => {
            for field in message {
                let field = field?;
                if let (trace_packet_defaults::TRACK_EVENT_DEFAULTS, FieldValue::Bytes { bytes, offset }) =
                    (field.number, field.value)
                {
                    collect(packet, Fields::new(bytes, offset), DEFAULTS, tracks)?;
                }
            }
            return Ok(());
        }
        _ => return Ok(()),
    };
    collect(packet, message, fields, tracks)
}

/// Collects the positions of track ids, packed or not.
fn collect(
    packet: &[u8],
    message: Fields<'_>,
    fields: &[u32],
    tracks: &mut Vec<Range<usize>>,
) -> Result<(), DecodeError> {
    for field in message {
        let field = field?;
        if !fields.contains(&field.number) {
            continue;
        }
        match field.value {
            FieldValue::Varint(_) => tracks.push(value_of(packet, &field)),
            FieldValue::Bytes { bytes, offset } => {
                let (mut at, end) = (offset as usize, offset as usize + bytes.len());
                while at < end {
                    let next = varint_end(packet, at).min(end);
                    tracks.push(at..next);
                    at = next;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The position of a field's varint.
fn value_of(packet: &[u8], field: &Field<'_>) -> Range<usize> {
    let start = varint_end(packet, field.offset as usize);
    start..varint_end(packet, start)
}

fn varint_end(packet: &[u8], at: usize) -> usize {
    let rest = packet.get(at..).unwrap_or_default();
    at + rest.iter().take(MAX_VARINT).position(|byte| byte & 0x80 == 0).map_or(rest.len(), |last| last + 1)
}

/// Maps a varint to another one of the same length, one to one. Changes all digits of seven bits except the
/// last.
fn salted(varint: &mut [u8], salt: Salt) {
    let digits = varint.len().saturating_sub(1);
    for (n, byte) in varint[..digits].iter_mut().enumerate() {
        *byte ^= (salt.0 >> (7 * n).min(63)) as u8 & 0x7f;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hairline_formats::track_event as te;

    fn renumbered(packet: &[u8], part: u64, sequence: SequenceId) -> Vec<u8> {
        let mut out = Vec::new();
        Renumber::default().put(&mut out, packet, Salt::of(part), |_| sequence).expect("a packet");
        out
    }

    #[test]
    fn a_sequence_gets_its_number_whatever_its_length_and_the_rest_stays() {
        for (old, new) in [(1, 1), (1, 300), (300, 1), (1, u32::MAX)] {
            let (old, new) = (SequenceId(old), SequenceId(new));
            let (mut before, mut after) = (Vec::new(), Vec::new());
            // Long enough that the packet's length changes its own length.
            let text = "x".repeat(115);
            for (out, sequence) in [(&mut before, old), (&mut after, new)] {
                let event = te::Event {
                    name: Some(te::Name::Text(&text)),
                    ..te::Event::new(sequence, te::EventType::Instant, 7)
                };
                te::event(out, &event);
            }
            let body = &before[varint_end(&before, 1)..];
            assert_eq!(renumbered(body, 0, new), after, "{old:?} {new:?}");
        }
    }

    #[test]
    fn a_track_gets_another_number_of_the_same_length_everywhere() {
        let (track, sequence) = (te::TrackUuid(0x80_1234_5678_9abc), SequenceId(2));
        let mut all = Vec::new();
        let start = te::SequenceStart {
            sequence,
            first: true,
            dropped: false,
            track_uuid: track,
            extra_counters: &[track],
            timestamp_ns: 1,
        };
        te::sequence_start(&mut all, &start);
        te::event(
            &mut all,
            &te::Event { track_uuid: Some(track), ..te::Event::new(sequence, te::EventType::SliceBegin, 7) },
        );
        let mut reader = te::PacketReader::new(&all[..]);
        let mut whole = Vec::new();
        while let Some((_, packet)) = reader.next().expect("packets") {
            whole.extend(renumbered(packet.bytes(), 1, sequence));
        }
        assert_eq!(whole.len(), all.len());
        let mut reader = te::PacketReader::new(&whole[..]);
        let mut seen = Vec::new();
        while let Some((_, packet)) = reader.next().expect("packets") {
            if let Some(defaults) = &packet.defaults {
                seen.extend(defaults.track_uuid);
                seen.extend(defaults.extra_counter_track_uuids().flatten());
            }
            if let Some(te::PacketData::Event(event)) = &packet.data {
                seen.extend(event.track_uuid);
            }
        }
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|uuid| *uuid == seen[0] && *uuid != track), "{seen:x?}");
    }

    #[test]
    fn bytes_that_are_no_packet_are_refused() {
        let mut out = Vec::new();
        for bytes in [&[0x52][..], &[0x0a, 0xff], &[0x5a, 2, 0x58, 0x80], &[0xff; 20]] {
            assert!(Renumber::default().put(&mut out, bytes, Salt::of(1), |n| n).is_err(), "{bytes:x?}");
            assert!(out.is_empty());
        }
    }
}
