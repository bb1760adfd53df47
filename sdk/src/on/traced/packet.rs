//! A packet of the stream, as far as the output must know it, and as a producer writes it.

use std::ops::Range;

use hairline_formats::proto::{FieldValue, Fields, put_field, put_uint};
use hairline_formats::track_event::SequenceId;
use hairline_formats::track_event::fields::{process_tree, sequence_flags, trace, trace_packet};

use crate::on::encode::OWN_SEQUENCE;
use crate::on::traced::wanted::fields;

/// Fields that only the service writes. A packet with one of them stays here; the number of its sequence is
/// left out.
const OF_SERVICE: [u32; 6] = [
    trace_packet::TRACE_STATS,
    trace_packet::SYNCHRONIZATION_MARKER,
    trace_packet::COMPRESSED_PACKETS,
    trace_packet::SERVICE_EVENT,
    trace_packet::SYSTEM_INFO,
    trace_packet::TRACE_UUID,
];

/// A packet, as far as the output must know it.
#[derive(Debug)]
pub(super) struct About<'p> {
    packet: &'p [u8],
    pub(super) sequence: SequenceId,
    /// The place of the field with the sequence's number.
    place: Range<usize>,
    pub(super) event: Option<&'p [u8]>,
    pub(super) interned: Option<&'p [u8]>,
    /// The description of a track.
    pub(super) track: Option<&'p [u8]>,
    /// The defaults of the sequence.
    pub(super) defaults: Option<&'p [u8]>,
    /// The time since the packet before it, if it has no clock of its own.
    pub(super) delta: Option<u64>,
    pub(super) is_cleared: bool,
    /// Whether it relies on earlier packets of its sequence.
    pub(super) needs_state: bool,
    /// Whether later packets rely on it.
    pub(super) has_state: bool,
    /// Whether only the service writes such packets.
    pub(super) is_of_service: bool,
}

impl<'p> About<'p> {
    pub(super) fn of(packet: &'p [u8]) -> Self {
        use FieldValue::{Bytes, Varint};
        let mut about = Self {
            packet,
            sequence: SequenceId(0),
            place: 0..0,
            event: None,
            interned: None,
            track: None,
            defaults: None,
            delta: None,
            is_cleared: false,
            needs_state: false,
            has_state: false,
            is_of_service: false,
        };
        let (mut time, mut has_clock, mut has_clocks) = (None, false, false);
        let mut is_after = false;
        for field in Fields::new(packet, 0).map_while(Result::ok) {
            if std::mem::take(&mut is_after) {
                about.place.end = field.offset as usize;
            }
            match (field.number, field.value) {
                (trace_packet::TRUSTED_PACKET_SEQUENCE_ID, Varint(v)) => {
                    about.sequence = SequenceId(v as u32);
                    about.place = field.offset as usize..packet.len();
                    is_after = true;
                }
                (trace_packet::TIMESTAMP, Varint(v)) => time = Some(v),
                (trace_packet::TIMESTAMP_CLOCK_ID, _) => has_clock = true,
                (trace_packet::SEQUENCE_FLAGS, Varint(v)) => {
                    about.is_cleared = v & u64::from(sequence_flags::CLEARED) != 0;
                    about.needs_state = v & u64::from(sequence_flags::NEEDS) != 0 && !about.is_cleared;
                }
                (trace_packet::TRACK_EVENT, Bytes { bytes, .. }) => about.event = Some(bytes),
                (trace_packet::INTERNED_DATA, Bytes { bytes, .. }) => {
                    about.interned = Some(bytes);
                    about.has_state = true;
                }
                (trace_packet::CLOCK_SNAPSHOT, _) => has_clocks = true,
                (number, _) if OF_SERVICE.contains(&number) => about.is_of_service = true,
                (trace_packet::TRACK_DESCRIPTOR, Bytes { bytes, .. }) => {
                    about.track = Some(bytes);
                    about.has_state = true;
                }
                (trace_packet::TRACE_PACKET_DEFAULTS, Bytes { bytes, .. }) => {
                    about.defaults = Some(bytes);
                    about.has_state = true;
                }
                // The service's own source of processes names the parent. An importer takes one without a
                // parent for another process, whose number was used again.
                (trace_packet::PROCESS_TREE, Bytes { bytes, .. }) => {
                    let mut parts = fields(bytes);
                    about.is_of_service |= parts.any(|(number, _)| number == process_tree::PROCESSES);
                }
                _ => {}
            }
        }
        // The drain thread's own times are absolute.
        about.delta = time.filter(|_| !has_clock && about.sequence != OWN_SEQUENCE);
        about.has_state |= about.is_cleared || about.event.is_none();
        // The clocks of the machine are in the service's own packets.
        about.is_of_service |= has_clocks && about.sequence == OWN_SEQUENCE;
        about
    }

    /// Writes the packet as a producer does: without the number of its sequence, and `behind` ns later.
    pub(super) fn put(&self, out: &mut Vec<u8>, behind: u64, with_event: bool) {
        if with_event && (behind == 0 || self.delta.is_none()) {
            out.extend_from_slice(self.packet.get(..self.place.start).unwrap_or_default());
            out.extend_from_slice(self.packet.get(self.place.end..).unwrap_or_default());
            return;
        }
        for field in Fields::new(self.packet, 0).map_while(Result::ok) {
            match (field.number, field.value) {
                (trace_packet::TRUSTED_PACKET_SEQUENCE_ID, _) => {}
                (trace_packet::TRACK_EVENT, _) if !with_event => {}
                (trace_packet::TIMESTAMP, FieldValue::Varint(delta))
                    if behind > 0 && self.delta.is_some() =>
                {
                    put_uint(out, trace_packet::TIMESTAMP, delta.wrapping_add(behind));
                }
                _ => put_field(out, &field),
            }
        }
    }
}

/// The contents of whole packets.
pub(super) fn packets(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    fields(bytes).filter_map(|field| match field {
        (trace::PACKET, FieldValue::Bytes { bytes, .. }) => Some(bytes),
        _ => None,
    })
}

/// The content of one packet.
pub(super) fn whole(packet: &[u8]) -> &[u8] {
    packets(packet).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_is_left_out_leaves_its_time_and_its_state() {
        let mut packet = Vec::new();
        put_uint(&mut packet, trace_packet::TRUSTED_PACKET_SEQUENCE_ID, 7);
        put_uint(&mut packet, trace_packet::TIMESTAMP, 100);
        put_uint(&mut packet, trace_packet::SEQUENCE_FLAGS, 2);
        hairline_formats::proto::put_bytes(&mut packet, trace_packet::TRACK_EVENT, &[72, 1]);
        let about = About::of(&packet);
        assert_eq!((about.sequence, about.delta, about.needs_state), (SequenceId(7), Some(100), true));
        let (mut whole, mut later) = (Vec::new(), Vec::new());
        about.put(&mut whole, 0, true);
        assert_eq!(whole, packet[2..], "without the number of its sequence");
        about.put(&mut later, 28, false);
        assert_eq!(later, [64, 128, 1, 104, 2]);
    }
}
