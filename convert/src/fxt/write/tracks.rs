//! The tracks of the output, and whether FXT has records for their events.

use std::collections::HashMap;

use hairline_formats::track_event::{ChildOrdering, CounterType, SiblingMerge, Unit};

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
    pub(super) kind: OutputTrackKind,
    pub(super) parent: Option<TrackId>,
    pub(super) name: Box<str>,
    /// The properties that only a Perfetto blob can express.
    pub(super) more: Option<Box<TrackExtras>>,
    /// Whether a blob describes the track.
    pub(super) is_described: bool,
}

#[derive(Debug)]
pub(super) enum OutputTrackKind {
    Process { pid: u64, any_thread: Option<TrackId> },
    Thread { pid: u64, tid: u64, index: u8 },
    Slices,
    Async { id: u64, open: OpenNames },
    Counter { is_plain: bool, number: u64, series: Box<str> },
}

/// The names of the open slices on an async interval. An end needs the name of its begin.
#[derive(Debug, Default)]
pub(super) struct OpenNames {
    names: Vec<String>,
    count: usize,
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

    /// Removes the innermost slice, and returns its name if it is known.
    pub(super) fn end(&mut self) -> Option<&str> {
        self.count = self.count.checked_sub(1)?;
        self.names.get(self.count).map(String::as_str)
    }
}

#[derive(Debug, PartialEq)]
pub(super) struct TrackExtras {
    pub(super) description: Box<str>,
    pub(super) child_ordering: ChildOrdering,
    pub(super) rank: i32,
    pub(super) merge: SiblingMerge,
    pub(super) merge_key: Box<str>,
    pub(super) unit: Unit,
    pub(super) unit_name: Box<str>,
    pub(super) multiplier: i64,
    pub(super) builtin: CounterType,
    pub(super) y_axis_share_key: Box<str>,
}

impl TrackExtras {
    fn of(track: &Track<'_>) -> Option<Box<Self>> {
        let plain = CounterTrack::default();
        let counter = if let TrackKind::Counter(counter) = track.kind { counter } else { plain };
        let more = |track: &Track<'_>, counter: CounterTrack<'_>| Self {
            description: track.description.into(),
            child_ordering: track.child_ordering,
            rank: track.rank.unwrap_or(0),
            merge: track.merge,
            merge_key: track.merge_key.into(),
            unit: counter.unit,
            unit_name: counter.unit_name.into(),
            multiplier: counter.multiplier,
            builtin: counter.builtin,
            y_axis_share_key: counter.y_axis_share_key.into(),
        };
        let own = more(track, counter);
        (own != more(&Track::new(track.id, track.kind), plain)).then(|| Box::new(own))
    }
}

impl Tracks {
    #[inline]
    pub(super) fn get(&self, id: TrackId) -> Option<&OutputTrack> {
        self.all.get(id.0 as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: TrackId) -> Option<&mut OutputTrack> {
        self.all.get_mut(id.0 as usize)?.as_mut()
    }

    /// Sets the description of a track.
    pub(super) fn set(&mut self, track: &Track<'_>) {
        let index = track.id.0 as usize;
        if index >= self.all.len() {
            self.all.resize_with(index + 1, || None);
        }
        let before = self.all[index].take().map(|kept| kept.kind);
        let more = TrackExtras::of(track);
        let kind = match (track.kind, before) {
            (TrackKind::Process { pid, .. }, before) => {
                self.any_process.get_or_insert(track.id);
                let any_thread = match before {
                    Some(OutputTrackKind::Process { any_thread, .. }) => any_thread,
                    _ => None,
                };
                OutputTrackKind::Process { pid, any_thread }
            }
            (TrackKind::Thread { pid, tid }, Some(OutputTrackKind::Thread { index, .. })) => {
                OutputTrackKind::Thread { pid, tid, index }
            }
            (TrackKind::Thread { pid, tid }, _) => OutputTrackKind::Thread { pid, tid, index: 0 },
            (TrackKind::Slices, _) => OutputTrackKind::Slices,
            (TrackKind::Async { id, scope }, before) => {
                let open = if let Some(OutputTrackKind::Async { open, .. }) = before {
                    open
                } else {
                    OpenNames::default()
                };
                OutputTrackKind::Async { id: self.unique_id(id, scope, track), open }
            }
            (TrackKind::Counter(counter), _) => {
                // A record has only a process, so a counter of a thread or of the trace needs a blob.
                let of_process = track
                    .parent
                    .and_then(|id| self.get(id))
                    .is_some_and(|parent| matches!(parent.kind, OutputTrackKind::Process { .. }));
                let series = if counter.series.is_empty() { "value" } else { counter.series }.into();
                OutputTrackKind::Counter {
                    is_plain: of_process && more.is_none(),
                    number: counter.number,
                    series,
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
        self.all[index] = Some(OutputTrack {
            kind,
            parent: track.parent,
            name: track.name.into(),
            more,
            is_described: false,
        });
    }

    /// An id that no other interval has. FXT distinguishes intervals by name and id only. The first of
    /// several equal intervals keeps its id.
    fn unique_id(&mut self, id: u64, scope: &str, track: &Track<'_>) -> u64 {
        let is_as_it_was = track.parent.is_none() && scope == track.name;
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
