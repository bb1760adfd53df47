//! Descriptions of tracks that follow the first event of their track, and snapshots of clocks that follow the
//! first event on their clock, as in a trace that was kept in a ring. Importers read all descriptions before
//! the first event. So at the first event of a track without a description or on a clock without a snapshot,
//! the input is read a second time, for all that is still to come.

use std::collections::HashMap;
use std::io::{self, Read};

use hairline_formats::proto::{Fields, put_message};
use hairline_formats::track_event::{self, Packet, PacketData, PacketReader, TrackUuid, fields::trace};
use hairline_formats::{DecodeError, DecodeErrorKind};

use crate::Report;
use crate::track_event::inflated::{Inflated, has_lost_content};
use crate::track_event::read::clocks::{self, ClockKey};

/// Opens the input once more, from its first byte.
pub(crate) type Again = Box<dyn FnOnce() -> io::Result<Box<dyn Read>> + Send>;

/// The limit for the bytes of descriptions.
const MOST_BYTES: usize = 16 << 20;

const TOO_MANY: &str = "descriptions of tracks and clocks after their first event that were not looked up";
const FAILED: &str = "inputs that could not be read a second time, for descriptions of tracks and clocks";

/// The descriptions that are still to come.
#[derive(Default)]
pub(super) struct LookAhead {
    /// `None` if the input cannot be read again, or was.
    again: Option<Again>,
    /// The packet of each description, in a trace of its own, by the UUID of the track.
    packets: HashMap<TrackUuid, Vec<u8>>,
    /// The packet of each clock's first snapshot.
    snapshots: HashMap<ClockKey, Vec<u8>>,
    bytes: usize,
}

impl LookAhead {
    pub(super) fn new(again: Again) -> Self {
        Self { again: Some(again), ..Self::default() }
    }

    /// Removes the description of a track. `is_known` says which tracks need none.
    pub(super) fn take(
        &mut self,
        uuid: TrackUuid,
        is_known: impl Fn(TrackUuid) -> bool,
        report: &mut Report,
    ) -> Option<Vec<u8>> {
        self.read_again(&is_known, report);
        self.packets.remove(&uuid)
    }

    /// Removes the packet with the first snapshot of a clock.
    pub(super) fn take_snapshot(
        &mut self,
        clock: ClockKey,
        is_known: impl Fn(TrackUuid) -> bool,
        report: &mut Report,
    ) -> Option<Vec<u8>> {
        self.read_again(&is_known, report);
        self.snapshots.remove(&clock)
    }

    /// Reads the input a second time, if that has not been done.
    fn read_again(&mut self, is_known: &dyn Fn(TrackUuid) -> bool, report: &mut Report) {
        if let Some(again) = self.again.take() {
            match again() {
                Ok(input) => self.read(PacketReader::new(input), is_known, report),
                Err(_) => report.add(FAILED),
            }
        }
    }

    /// Reads to the end, or to the first error, which the first reading meets too.
    fn read<R: Read>(
        &mut self,
        packets: PacketReader<R>,
        is_known: &dyn Fn(TrackUuid) -> bool,
        report: &mut Report,
    ) {
        each(packets, |packet| match packet.data {
            Some(PacketData::Compressed { by, bytes, .. }) if !has_lost_content(by, bytes) => {
                each(PacketReader::new(Inflated::new(by, bytes)), |packet| {
                    self.packet(packet, is_known, report);
                });
            }
            _ => self.packet(packet, is_known, report),
        });
    }

    fn packet(&mut self, packet: &Packet<'_>, is_known: &dyn Fn(TrackUuid) -> bool, report: &mut Report) {
        match &packet.data {
            Some(PacketData::Track(track)) => {
                let uuid = track.uuid.filter(|uuid| !is_known(*uuid) && !self.packets.contains_key(uuid));
                if let Some((uuid, kept)) = uuid.and_then(|uuid| Some((uuid, self.keep(packet, report)?))) {
                    self.packets.insert(uuid, kept);
                }
            }
            Some(PacketData::Clocks(readings)) => {
                for reading in readings.clone().map_while(Result::ok) {
                    let clock = clocks::key(packet.sequence, reading.clock_id);
                    // The increments before the first snapshot have no base.
                    if !reading.is_incremental
                        && !self.snapshots.contains_key(&clock)
                        && let Some(kept) = self.keep(packet, report)
                    {
                        self.snapshots.insert(clock, kept);
                    }
                }
            }
            _ => {}
        }
    }

    /// Copies a packet, in a trace of its own.
    fn keep(&mut self, packet: &Packet<'_>, report: &mut Report) -> Option<Vec<u8>> {
        if self.bytes > MOST_BYTES {
            report.add(TOO_MANY);
            return None;
        }
        let mut kept = Vec::new();
        put_message(&mut kept, trace::PACKET, |out| out.extend_from_slice(packet.bytes()));
        self.bytes += kept.len() + 64;
        Some(kept)
    }
}

/// Shows each packet, up to an error of the input. As in the first reading, a packet with a hole or one that
/// is too large is passed over, and texts that are not UTF-8 are mended.
fn each<R: Read>(mut packets: PacketReader<R>, mut show: impl FnMut(&Packet<'_>)) {
    loop {
        match packets.next_message() {
            Ok(Some((offset, message))) => {
                let valid = track_event::valid_texts(&message);
                let fields = valid.as_ref().map_or(message, |(valid, _)| Fields::new(valid, offset));
                if let Ok(packet) = Packet::decode(fields) {
                    show(&packet);
                }
            }
            Err(DecodeError { kind: DecodeErrorKind::TooLarge { .. }, .. }) => {}
            _ => return,
        }
    }
}

/// Decodes the packet of a description.
pub(super) fn with_description<T>(
    packet: &[u8],
    decode: impl FnOnce(&hairline_formats::track_event::TrackDescriptor<'_>) -> Result<T, DecodeError>,
) -> Result<T, DecodeError> {
    let mut reader = PacketReader::new(packet);
    match reader.next()? {
        Some((_, Packet { data: Some(PacketData::Track(track)), .. })) => decode(&track),
        _ => Err(DecodeError { offset: 0, kind: DecodeErrorKind::Unexpected("the description of a track") }),
    }
}

impl std::fmt::Debug for LookAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LookAhead").field("packets", &self.packets.len()).finish_non_exhaustive()
    }
}
