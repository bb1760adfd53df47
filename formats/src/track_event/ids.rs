//! The ids of tracks and of sequences: numbers that a packet has beside times, flows and interned ids.

/// The uuid of a track: unique in the trace. 0 is the default track, which needs no descriptor.
///
/// ```
/// use hairline_formats::track_event::{
///     CustomTrack, Event, EventType, SequenceId, TrackUuid, custom_descriptor, event,
/// };
///
/// let (writer, requests) = (SequenceId(1), TrackUuid(71));
/// let track = CustomTrack { uuid: requests, name: "requests", ..CustomTrack::default() };
/// let retry = Event { track_uuid: Some(requests), ..Event::new(writer, EventType::Instant, 1_000) };
/// let mut trace = Vec::new();
/// custom_descriptor(&mut trace, writer, &track);
/// event(&mut trace, &retry);
/// ```
/// A time, a flow or the id of a string in its place does not compile:
///
/// ```compile_fail,E0308
/// # use hairline_formats::track_event::{Event, EventType, SequenceId};
/// let flow = 71_u64;
/// let retry = Event { track_uuid: Some(flow), ..Event::new(SequenceId(1), EventType::Instant, 1_000) };
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TrackUuid(pub u64);

/// The id of a packet sequence, `trusted_packet_sequence_id`: one for each writer of the trace; 0 is none.
///
/// ```
/// # #[cfg(feature = "read")] {
/// use hairline_formats::track_event::{PacketReader, SequenceId, clock_snapshot, fields::clock};
///
/// let mut trace = Vec::new();
/// clock_snapshot(&mut trace, SequenceId(3), &[(clock::BOOTTIME, 1_000)]);
/// let mut reader = PacketReader::new(&trace[..]);
/// let (_, packet) = reader.next()?.unwrap();
/// assert_eq!(packet.sequence, SequenceId(3));
/// # }
/// # Ok::<(), hairline_formats::DecodeError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct SequenceId(pub u32);
