//! Perfetto blobs, which hold what FXT cannot express. The bytes of all blobs form one stream of packets; a
//! packet may be split over blobs. The processes and threads in the packets are those of the FXT records.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::rc::Rc;

use hairline_formats::proto::{Field, FieldValue, Fields};
use hairline_formats::track_event::{CounterValue, fields::trace};
use hairline_formats::{DecodeError, DecodeErrorKind};

use crate::fxt::read::tracks::Tracks;
use crate::track_event::TrackEventReader;
use crate::{Context, Event, Item, Report, Trace, TraceReader as _, Track, TrackId};

/// The limit for the bytes of an incomplete packet.
const MAX_PACKET: usize = 16 << 20;

#[derive(Debug, Default)]
pub(super) struct Blobs {
    /// The beginning of an incomplete packet.
    rest: Vec<u8>,
    packets: Pipe,
    reader: Option<TrackEventReader<Pipe>>,
    /// Whether the reader may return more items for the packets it has.
    reads: bool,
    is_broken: bool,
    /// Tracks of the packets that equal a track of the records.
    same: HashMap<TrackId, TrackId>,
    extra_counters: Vec<(TrackId, CounterValue)>,
}

/// Complete packets that the reader has not read yet.
#[derive(Clone, Debug, Default)]
struct Pipe(Rc<RefCell<VecDeque<u8>>>);

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.borrow_mut().read(buffer)
    }
}

impl Blobs {
    /// Adds the bytes of a blob. Returns whether they continue the stream of packets.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        self.rest.extend_from_slice(bytes);
        let Some(whole) = whole_packets(&self.rest).filter(|whole| self.rest.len() - whole <= MAX_PACKET)
        else {
            self.rest.clear();
            return false;
        };
        self.packets.0.borrow_mut().extend(self.rest.drain(..whole));
        self.reads |= whole > 0;
        true
    }

    #[inline]
    pub(super) fn has_packets(&self) -> bool {
        self.reads
    }

    /// Returns the next item of the packets. After the last one, returns an empty item, because the end is
    /// known only then.
    pub(super) fn next<'s>(
        &'s mut self,
        tracks: &mut Tracks,
        context: &'s mut Context,
        report: &mut Report,
    ) -> Item<'s> {
        if std::mem::take(&mut self.is_broken) {
            self.close(report);
        }
        let reader = self.reader.get_or_insert_with(|| TrackEventReader::new(self.packets.clone()));
        let same = |track: TrackId| self.same.get(&track).copied().unwrap_or(track);
        match reader.next(context) {
            Ok(Some(Item::Track(track))) => {
                let track = Track { parent: track.parent.map(same), ..track };
                let known = tracks.adopt(&track);
                if known != track.id {
                    self.same.insert(track.id, known);
                    return NOTHING; // the track's own queue returns it
                }
                Item::Track(track)
            }
            Ok(Some(Item::Event(event))) => {
                self.extra_counters.clear();
                self.extra_counters
                    .extend(event.extra_counters.iter().map(|(track, value)| (same(*track), *value)));
                Item::Event(Event { track: same(event.track), extra_counters: &self.extra_counters, ..event })
            }
            Ok(Some(item)) => item,
            Ok(None) => {
                self.reads = false;
                NOTHING
            }
            Err(_) => {
                report.add_defects("damaged Perfetto packets left out", 1);
                self.is_broken = true; // this reader is done, but the next packets may be valid
                NOTHING
            }
        }
    }

    /// Drops the reader, and adds its report.
    pub(super) fn close(&mut self, report: &mut Report) {
        if let Some(reader) = self.reader.take() {
            report.add_all(reader.report());
        }
    }
}

const NOTHING: Item<'static> = Item::Trace(Trace { uuid: None, writer: None, system: None, clocks: &[] });

/// The length of the complete packets in `bytes`. Returns `None` if `bytes` are no packets.
fn whole_packets(bytes: &[u8]) -> Option<usize> {
    let mut whole = 0;
    for field in Fields::new(bytes, 0) {
        match field {
            Ok(Field { number: trace::PACKET, value: FieldValue::Bytes { bytes, offset }, .. }) => {
                whole = offset as usize + bytes.len();
            }
            Err(DecodeError { kind: DecodeErrorKind::PastEnd { .. }, .. }) => break,
            _ => return None,
        }
    }
    Some(whole)
}
