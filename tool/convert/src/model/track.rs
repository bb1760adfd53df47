//! The descriptions of tracks.

use std::sync::Arc;

use hairline_formats::track_event::{ChildOrdering, CounterType, SiblingMerge, Unit};

/// The number of a track in one conversion: from 0, without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrackId(pub u32);

/// The description of a track. An unknown property is `None`, "" or its default. A copy shares the texts.
///
/// ```
/// use hairline_convert::{Track, TrackId, TrackKind};
///
/// let process = Track::new(TrackId(0), TrackKind::process(7));
/// let requests = Track {
///     parent: Some(process.id),
///     name: "requests".into(),
///     ..Track::new(TrackId(1), TrackKind::Slices)
/// };
/// assert_eq!((requests.parent, &*requests.name, requests.rank), (Some(TrackId(0)), "requests", None));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// The track's number.
    pub id: TrackId,
    /// The kind of track.
    pub kind: TrackKind,
    /// The parent track. For a thread it is the process. The parent is always described first.
    pub parent: Option<TrackId>,
    /// The name of the process, thread, counter or track.
    pub name: Arc<str>,
    /// A description in one or two sentences.
    pub description: Arc<str>,
    /// The order in which child tracks are shown.
    pub child_ordering: ChildOrdering,
    /// The position among the siblings, smallest first, if the parent's child ordering is explicit.
    pub rank: Option<i32>,
    /// Which siblings share a row with this track.
    pub merge: SiblingMerge,
    /// The key that siblings in one row have in common, for [`SiblingMerge::ByKey`].
    pub merge_key: Arc<str>,
    /// The track's id in its input (the UUID of a TrackEvent track), or 0. It distinguishes tracks of equal
    /// name.
    pub source_id: u64,
}

impl Track {
    /// Creates a track with no further properties.
    #[must_use]
    pub fn new(id: TrackId, kind: TrackKind) -> Self {
        Self {
            id,
            kind,
            parent: None,
            name: Arc::default(),
            description: Arc::default(),
            child_ordering: ChildOrdering::Unspecified,
            rank: None,
            merge: SiblingMerge::Unspecified,
            merge_key: Arc::default(),
            source_id: 0,
        }
    }
}

/// The kind of a track.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TrackKind {
    /// A process. Events on it belong to no particular thread.
    Process {
        /// The process id.
        pid: u64,
        /// The program and its arguments.
        command_line: Arc<[String]>,
        /// The id of its parent process, or 0 if that is not known. `None` if no process tree tells of the
        /// process: TrackEvent's importers show a command line only of a tree.
        parent: Option<u64>,
    },
    /// A thread. Its slices nest.
    Thread {
        /// The process id.
        pid: u64,
        /// The thread id.
        tid: u64,
    },
    /// A track for nested slices. Without a parent, it is a root of its own.
    Slices,
    /// A track whose slices are states, one after the other: each lasts up to the next one, or to an end.
    States,
    /// An async interval, identified by its id in FXT or JSON ("async events"). All events with one id are on
    /// one such track.
    Async {
        /// The id: unique in its process if there is a parent, otherwise in the trace.
        id: u64,
        /// Distinguishes equal ids: the category, or a scope.
        scope: Arc<str>,
    },
    /// A counter.
    Counter(Box<CounterTrack>),
}

impl TrackKind {
    /// A process without a command line.
    #[must_use]
    pub fn process(pid: u64) -> Self {
        Self::Process { pid, command_line: Arc::default(), parent: None }
    }
}

/// The properties of a counter track.
///
/// ```
/// use hairline_convert::{CounterTrack, Track, TrackId, TrackKind};
/// use hairline_formats::track_event::Unit;
///
/// let counter = CounterTrack { unit: Unit::SizeBytes, multiplier: 1024, ..CounterTrack::default() };
/// let kind = TrackKind::Counter(Box::new(counter));
/// let track = Track { name: "in flight".into(), ..Track::new(TrackId(2), kind) };
/// assert!(matches!(track.kind, TrackKind::Counter(counter) if counter.multiplier == 1024));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CounterTrack {
    /// The unit of the values.
    pub unit: Unit,
    /// The name of the unit, if [`Unit`] has no variant for it.
    pub unit_name: Arc<str>,
    /// The factor that converts a value to the unit.
    pub multiplier: i64,
    /// The type, if it is one that importers know.
    pub builtin: CounterType,
    /// Counters with the same key share one scale.
    pub y_axis_share_key: Arc<str>,
    /// Distinguishes counters of one name (FXT's counter id, JSON's id), or 0.
    pub number: u64,
    /// The series: FXT's argument name or JSON's key. "" or "value" means that the counter has one series
    /// only.
    pub series: Arc<str>,
}

impl Default for CounterTrack {
    /// A counter without a unit.
    fn default() -> Self {
        Self {
            unit: Unit::Unspecified,
            unit_name: Arc::default(),
            multiplier: 1,
            builtin: CounterType::Unspecified,
            y_axis_share_key: Arc::default(),
            number: 0,
            series: Arc::default(),
        }
    }
}
