//! The tracks of the output, and whether FXT has records for their events.

use std::collections::HashMap;
use std::sync::Arc;

use crate::fxt::write::open::OpenSlices;
use crate::{CounterTrack, Track, TrackId, TrackKind};

/// The limit for stored names of open slices on one async interval.
const MAX_OPEN: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<Option<OutputTrack>>,
    /// The first track with each id of an interval.
    ids: HashMap<(u64, Box<str>), TrackId>,
    /// A process and a thread for records that need one.
    pub(super) any_process: Option<TrackId>,
    pub(super) any_thread: Option<TrackId>,
}

#[derive(Debug)]
pub(super) struct OutputTrack {
    /// The description, without a command line.
    pub(super) track: Track,
    pub(super) kind: OutputTrackKind,
    /// Whether a blob describes the track.
    pub(super) is_described: bool,
}

#[derive(Debug)]
pub(super) enum OutputTrackKind {
    Process { pid: u64, any_thread: Option<TrackId> },
    Thread { pid: u64, tid: u64, index: u8, open: OpenSlices },
    Slices,
    Async { id: u64, open: OpenNames },
    Counter { is_plain: bool, number: u64, series: Arc<str> },
}

/// The names of the open slices on an async interval. An end needs the name of its begin.
#[derive(Debug, Default)]
pub(super) struct OpenNames {
    names: Vec<String>,
    count: usize,
    /// The times of ends that precede their begin in the file, and so have no name yet.
    early: Vec<u64>,
}

impl OpenNames {
    pub(super) fn begin(&mut self, name: &str) {
        match self.names.get_mut(self.count) {
            Some(kept) => name.clone_into(kept),
            None if self.count < MAX_OPEN => self.names.push(name.to_owned()),
            None => {}
        }
        self.count += 1;
    }

    /// Keeps an end until the next begin. Returns whether it can: if no slice is open.
    pub(super) fn wait(&mut self, time: u64) -> bool {
        let can = self.count == 0 && self.early.len() < MAX_OPEN;
        if can {
            self.early.push(time);
        }
        can
    }

    /// The ends that waited for a begin at this time. A later end is that of its slice.
    pub(super) fn waited(&mut self, begin: u64) -> Vec<u64> {
        let early = std::mem::take(&mut self.early);
        if early.iter().any(|end| *end >= begin) {
            self.end();
        }
        early
    }

    /// The number of ends that wait.
    pub(super) fn waiting(&self) -> usize {
        self.early.len()
    }

    /// Removes the innermost slice, and returns its name if it is known.
    pub(super) fn end(&mut self) -> Option<&str> {
        self.count = self.count.checked_sub(1)?;
        self.names.get(self.count).map(String::as_str)
    }
}

/// Whether a counter has only the properties that its record can express.
fn is_plain(track: &Track, counter: &CounterTrack) -> bool {
    let CounterTrack { number, series, .. } = counter.clone();
    let kind = TrackKind::Counter(Box::new(CounterTrack { number, series, ..CounterTrack::default() }));
    let (name, rank) = (Arc::clone(&track.name), track.rank.filter(|rank| *rank == 0));
    let Track { parent, source_id, .. } = *track;
    *track == Track { name, rank, parent, source_id, ..Track::new(track.id, kind) }
}

impl Tracks {
    #[inline]
    pub(super) fn get(&self, id: TrackId) -> Option<&OutputTrack> {
        self.all.get(id.0 as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: TrackId) -> Option<&mut OutputTrack> {
        self.all.get_mut(id.0 as usize)?.as_mut()
    }

    /// The number of slices on threads that a complete slice around them has closed last of all.
    pub(super) fn closed_around(&self) -> u64 {
        let of = |track: &OutputTrack| match &track.kind {
            OutputTrackKind::Thread { open, .. } => open.closed_around(),
            _ => 0,
        };
        self.all.iter().flatten().map(of).sum()
    }

    /// The number of ends of intervals whose begin did not come.
    pub(super) fn ends_without_begin(&self) -> usize {
        let of = |track: &OutputTrack| match &track.kind {
            OutputTrackKind::Async { open, .. } => open.waiting(),
            _ => 0,
        };
        self.all.iter().flatten().map(of).sum()
    }

    /// Sets the description of a track.
    pub(super) fn set(&mut self, track: &Track) {
        let index = track.id.0 as usize;
        if index >= self.all.len() {
            self.all.resize_with(index + 1, || None);
        }
        let before = self.all[index].take().map(|kept| kept.kind);
        let mut described = track.clone();
        let kind = match (&track.kind, before) {
            (&TrackKind::Process { pid, .. }, before) => {
                described.kind = TrackKind::process(pid);
                self.any_process.get_or_insert(track.id);
                let any_thread = match before {
                    Some(OutputTrackKind::Process { any_thread, .. }) => any_thread,
                    _ => None,
                };
                OutputTrackKind::Process { pid, any_thread }
            }
            (&TrackKind::Thread { pid, tid }, Some(OutputTrackKind::Thread { index, open, .. })) => {
                OutputTrackKind::Thread { pid, tid, index, open }
            }
            (&TrackKind::Thread { pid, tid }, _) => {
                OutputTrackKind::Thread { pid, tid, index: 0, open: OpenSlices::default() }
            }
            (TrackKind::Slices, _) => OutputTrackKind::Slices,
            (TrackKind::States, _) => {
                described.kind = TrackKind::Slices;
                OutputTrackKind::Slices
            }
            (TrackKind::Async { id, scope }, before) => {
                let open = if let Some(OutputTrackKind::Async { open, .. }) = before {
                    open
                } else {
                    OpenNames::default()
                };
                OutputTrackKind::Async { id: self.unique_id(*id, scope, track), open }
            }
            (TrackKind::Counter(counter), _) => {
                // A record has only a process, so a counter of a thread or of the trace needs a blob.
                let of_process = track
                    .parent
                    .and_then(|id| self.get(id))
                    .is_some_and(|parent| matches!(parent.kind, OutputTrackKind::Process { .. }));
                let series = Some(&counter.series).filter(|series| !series.is_empty());
                OutputTrackKind::Counter {
                    is_plain: of_process && is_plain(track, counter),
                    number: counter.number,
                    series: series.map_or_else(|| "value".into(), Arc::clone),
                }
            }
        };
        if let OutputTrackKind::Thread { .. } = kind {
            self.any_thread.get_or_insert(track.id);
            if let Some(OutputTrack { kind: OutputTrackKind::Process { any_thread, .. }, .. }) =
                track.parent.and_then(|id| self.get_mut(id))
            {
                any_thread.get_or_insert(track.id);
            }
        }
        self.all[index] = Some(OutputTrack { track: described, kind, is_described: false });
    }

    /// An id that no other interval has. FXT distinguishes intervals by name and id only. The first of
    /// several equal intervals keeps its id.
    fn unique_id(&mut self, id: u64, scope: &str, track: &Track) -> u64 {
        let is_as_it_was = track.parent.is_none() && *scope == *track.name;
        if is_as_it_was && *self.ids.entry((id, scope.into())).or_insert(track.id) == track.id {
            return id;
        }
        let bytes = scope.bytes().fold(0, |hash, byte| mix(hash ^ u64::from(byte)));
        mix(id ^ mix(bytes ^ u64::from(track.parent.unwrap_or(track.id).0)))
    }
}

/// Maps close numbers to distant ones: the last step of SplitMix64.
pub(super) fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
