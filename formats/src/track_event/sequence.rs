//! Writes packets that set a sequence's incremental state: its clock, its default track and its interned
//! strings.
//!
//! Each function writes one packet.

use crate::proto::{Growing, put_message, put_nonempty, put_nonzero, put_str, put_uint};
use crate::track_event::fields::{
    InternedKind, SEQUENCE_CLOCK, clock, clock_reading, clock_snapshot as snapshot_fields, interned_data,
    interned_string, sequence_flags, source_location as location_fields, trace,
    trace_packet as packet_fields, trace_packet_defaults as defaults_fields,
    track_event_defaults as event_defaults_fields,
};
use crate::track_event::ids::{SequenceId, TrackUuid};

/// A string of an event: interned on the sequence, or inline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name<'a> {
    /// The id of an [`Interned`] string, from 1.
    Iid(u64),
    /// The string itself.
    Text(&'a str),
}

/// Writes a packet of `sequence`. `write` appends its fields.
pub(super) fn packet<O: Growing>(out: &mut O, sequence: SequenceId, write: impl FnOnce(&mut O)) {
    put_message(out, trace::PACKET, |p| {
        put_uint(p, packet_fields::TRUSTED_PACKET_SEQUENCE_ID, u64::from(sequence.0));
        write(p);
    });
}

/// The state of a sequence at its begin, or after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceStart<'a> {
    /// The sequence's id, from 1.
    pub sequence: SequenceId,
    /// Whether this is the sequence's first packet.
    pub first: bool,
    /// Whether packets before this one were lost.
    pub dropped: bool,
    /// The default track of events, the thread's own.
    pub track_uuid: TrackUuid,
    /// The tracks of the extra counter values of events.
    pub extra_counters: &'a [TrackUuid],
    /// The start of the incremental clock, on `CLOCK_BOOTTIME`. The first event's timestamp is relative to
    /// it.
    pub timestamp_ns: u64,
}

/// Writes a packet that clears the sequence's state and sets its clock and default track.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{PacketReader, SequenceId, SequenceStart, TrackUuid, sequence_start};
///
/// let mut trace = Vec::new();
/// sequence_start(&mut trace, &SequenceStart {
///     sequence: SequenceId(1),
///     first: true,
///     dropped: false,
///     track_uuid: TrackUuid(71),
///     extra_counters: &[],
///     timestamp_ns: 1_000,
/// });
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// assert!(packet.first && !packet.dropped);
/// assert_eq!(packet.defaults.unwrap().track_uuid, Some(TrackUuid(71)));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn sequence_start(out: &mut impl Growing, start: &SequenceStart<'_>) {
    packet(out, start.sequence, |p| {
        put_uint(
            p,
            packet_fields::SEQUENCE_FLAGS,
            u64::from(sequence_flags::CLEARED | sequence_flags::NEEDS),
        );
        put_nonzero(p, packet_fields::FIRST_PACKET_ON_SEQUENCE, u64::from(start.first));
        put_nonzero(p, packet_fields::PREVIOUS_PACKET_DROPPED, u64::from(start.dropped));
        put_message(p, packet_fields::TRACE_PACKET_DEFAULTS, |d| {
            put_uint(d, defaults_fields::TIMESTAMP_CLOCK_ID, u64::from(SEQUENCE_CLOCK));
            put_message(d, defaults_fields::TRACK_EVENT_DEFAULTS, |e| {
                put_uint(e, event_defaults_fields::TRACK_UUID, start.track_uuid.0);
                for uuid in start.extra_counters {
                    put_uint(e, event_defaults_fields::EXTRA_COUNTER_TRACK_UUIDS, uuid.0);
                }
            });
        });
        put_message(p, packet_fields::CLOCK_SNAPSHOT, |s| {
            put_reading(s, SEQUENCE_CLOCK, start.timestamp_ns, true);
            put_reading(s, clock::BOOTTIME, start.timestamp_ns, false);
        });
    });
}

fn put_reading(snapshot: &mut impl Growing, clock_id: u32, ns: u64, incremental: bool) {
    put_message(snapshot, snapshot_fields::CLOCKS, |c| {
        put_uint(c, clock_reading::CLOCK_ID, u64::from(clock_id));
        put_uint(c, clock_reading::TIMESTAMP, ns);
        put_nonzero(c, clock_reading::IS_INCREMENTAL, u64::from(incremental));
    });
}

/// Writes readings of several clocks at one moment: pairs of a number of [`clock`] and a time in ns.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::fields::clock;
/// use hairline_formats::track_event::{PacketData, PacketReader, SequenceId, clock_snapshot};
///
/// let mut trace = Vec::new();
/// clock_snapshot(&mut trace, SequenceId(1), &[(clock::BOOTTIME, 5_000), (clock::MONOTONIC, 4_000)]);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// let Some(PacketData::Clocks(readings)) = packet.data else { panic!() };
/// let times: Vec<u64> = readings.map(|reading| reading.map(|it| it.timestamp)).collect::<Result<_, _>>()?;
/// assert_eq!(times, [5_000, 4_000]);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn clock_snapshot(out: &mut impl Growing, sequence: SequenceId, clocks: &[(u32, u64)]) {
    packet(out, sequence, |p| {
        put_message(p, packet_fields::CLOCK_SNAPSHOT, |s| {
            for &(clock_id, ns) in clocks {
                put_reading(s, clock_id, ns, false);
            }
        });
    });
}

/// An interned string or source location: its id on the sequence and its content. Each kind has ids of its
/// own, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interned<'a> {
    /// A string.
    Text {
        /// The kind of string.
        kind: InternedKind,
        /// The id.
        iid: u64,
        /// The string.
        name: &'a str,
    },
    /// A source location.
    Location {
        /// The id.
        iid: u64,
        /// The location.
        at: SourceLocation<'a>,
    },
}

/// A location in a program's source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceLocation<'a> {
    /// The file's path.
    pub file: &'a str,
    /// The function's name; "" if it is unknown.
    pub function: &'a str,
    /// The line, from 1; 0 if it is unknown.
    pub line: u32,
}

impl SourceLocation<'_> {
    /// Appends the fields of the message, without the interned id.
    pub fn put(&self, out: &mut impl Growing) {
        put_str(out, location_fields::FILE_NAME, self.file);
        put_nonempty(out, location_fields::FUNCTION_NAME, self.function);
        put_nonzero(out, location_fields::LINE_NUMBER, u64::from(self.line));
    }
}

/// Writes interned strings, for the packets of the sequence that follow.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{
///     Interned, InternedKind, PacketReader, SequenceId, SourceLocation, interned,
/// };
///
/// let strings = [
///     Interned::Text { kind: InternedKind::Category, iid: 1, name: "net" },
///     Interned::Text { kind: InternedKind::EventName, iid: 1, name: "retry" },
///     Interned::Location { iid: 1, at: SourceLocation { file: "net.rs", function: "send", line: 7 } },
/// ];
/// let mut trace = Vec::new();
/// interned(&mut trace, SequenceId(1), &strings);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// assert_eq!(packet.interned().collect::<Result<Vec<_>, _>>()?, strings);
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
pub fn interned(out: &mut impl Growing, sequence: SequenceId, strings: &[Interned<'_>]) {
    packet(out, sequence, |p| {
        put_uint(p, packet_fields::SEQUENCE_FLAGS, u64::from(sequence_flags::NEEDS));
        put_message(p, packet_fields::INTERNED_DATA, |data| {
            for string in strings {
                match *string {
                    Interned::Text { kind, iid, name } => put_message(data, kind as u32, |entry| {
                        put_uint(entry, interned_string::IID, iid);
                        put_str(entry, interned_string::NAME, name);
                    }),
                    Interned::Location { iid, at } => {
                        put_message(data, interned_data::SOURCE_LOCATIONS, |entry| {
                            put_uint(entry, location_fields::IID, iid);
                            at.put(entry);
                        });
                    }
                }
            }
        });
    });
}
