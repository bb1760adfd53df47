//! What the threads share, and what they remember of what they did.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hairline::{AsyncScope, Flow, Track, TrackScope, trace_end};

use super::Plan;

/// The state of the world before and after something was done. Of session `k`, counted from 0:
/// `4k` before it, `4k + 1` while it starts, `4k + 2` while it runs, `4k + 3` while it stops.
pub(super) type Window = (u64, u64);

/// The session that ran all the time, if one did.
pub(super) fn running(window: Window) -> Option<u64> {
    (window.0 == window.1 && window.0 % 4 == 2).then_some(window.0 / 4)
}

/// No session, all the time.
pub(super) fn without_session(window: Window) -> bool {
    window.0 == window.1 && window.0.is_multiple_of(4)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// A scope whose number is an argument of its begin.
    Scope,
    /// A scope without arguments, its number on its end if anywhere.
    Bare,
    /// A guard on a track.
    OnTrack,
    /// By `trace_begin!`.
    ByHand,
    Interval,
    Instant,
    Log,
    Counter,
}

impl What {
    pub(super) fn is_slice(self) -> bool {
        !matches!(self, Self::Instant | Self::Log | Self::Counter)
    }
}

/// An event, as its thread knows it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: i64,
    pub(super) what: What,
    pub(super) begin: Window,
    /// What the guard said.
    pub(super) recorded: Option<bool>,
    /// How many slices are around it in the trace, if that is known.
    pub(super) depth: Option<u32>,
    /// The depth is right only if nothing is lost or left out.
    pub(super) assumes: bool,
    pub(super) end: Option<Window>,
    /// The flow through it, by number, and how many events it went through before.
    pub(super) flow: Option<(i64, u32)>,
}

/// Slices open around a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Around {
    begin: Window,
    recorded: Option<bool>,
}

impl Around {
    pub(super) fn new(entry: &Entry) -> Self {
        Self { begin: entry.begin, recorded: entry.recorded }
    }
}

/// How many of them are in the trace that is recorded now, and whether that assumes that nothing was lost.
pub(super) fn depth(around: &[Around], state: u64) -> (Option<u32>, bool) {
    let (mut depth, mut assumes) = (0, false);
    for slice in around {
        match (running(slice.begin), slice.recorded) {
            _ if without_session(slice.begin) => {}
            (None, _) => return (None, false),
            (Some(session), _) if session != state / 4 => {}
            (Some(_), Some(recorded)) => depth += u32::from(recorded),
            (Some(_), None) => (depth, assumes) = (depth + 1, true),
        }
    }
    (Some(depth), assumes)
}

pub(super) enum OpenOn {
    Guard(TrackScope, Entry),
    ByHand(Entry),
}

/// A track, used by whoever has it.
pub(super) struct Shared {
    pub(super) track: Track,
    pub(super) open: Vec<OpenOn>,
}

impl Shared {
    pub(super) fn around(&self) -> Vec<Around> {
        let entries = self.open.iter().map(|open| match open {
            OpenOn::Guard(_, entry) | OpenOn::ByHand(entry) => entry,
        });
        entries.map(Around::new).collect()
    }
}

pub(super) struct Held {
    pub(super) scope: AsyncScope,
    pub(super) entry: Entry,
}

pub(super) struct World {
    pub(super) plan: Plan,
    state: AtomicU64,
    pub(super) over: AtomicBool,
    pub(super) forks: AtomicU64,
    ids: AtomicI64,
    pub(super) tracks: Mutex<Vec<Shared>>,
    pub(super) intervals: Mutex<Vec<Held>>,
    pub(super) flows: Mutex<Vec<(i64, u32, Flow)>>,
    /// Held while the common counter is recorded.
    pub(super) common: Mutex<()>,
    pub(super) log: Mutex<Vec<Entry>>,
}

impl World {
    pub(super) fn new(plan: Plan) -> Self {
        let root = Track::new("root");
        let tracks = vec![
            Track::process().child("queue"),
            root.child("leaf"),
            root.child("leaf").child("below"),
            root,
        ];
        Self {
            plan,
            state: AtomicU64::new(0),
            over: AtomicBool::new(false),
            forks: AtomicU64::new(3),
            ids: AtomicI64::new(1),
            tracks: Mutex::new(tracks.into_iter().map(|track| Shared { track, open: Vec::new() }).collect()),
            intervals: Mutex::new(Vec::new()),
            flows: Mutex::new(Vec::new()),
            common: Mutex::new(()),
            log: Mutex::new(Vec::new()),
        }
    }

    pub(super) fn id(&self) -> i64 {
        self.ids.fetch_add(1, SeqCst)
    }

    pub(super) fn set(&self, state: u64) {
        self.state.store(state, SeqCst);
        super::outside::NOW.store(state, SeqCst);
    }

    pub(super) fn now(&self) -> u64 {
        self.state.load(SeqCst)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends what was begun last on the track.
pub(super) fn end_on(world: &World, shared: &mut Shared) -> Option<Entry> {
    let open = shared.open.pop()?;
    let before = world.now();
    let mut entry = match open {
        OpenOn::Guard(mut scope, entry) => {
            scope.arg("ended", entry.id);
            drop(scope);
            entry
        }
        OpenOn::ByHand(entry) => {
            trace_end!(&shared.track, ended = entry.id);
            entry
        }
    };
    entry.end = Some((before, world.now()));
    Some(entry)
}

pub(super) fn end_interval(world: &World, held: Held, says: bool) -> Entry {
    let Held { mut scope, mut entry } = held;
    let before = world.now();
    if says {
        scope.arg("ended", entry.id);
    }
    drop(scope);
    entry.end = Some((before, world.now()));
    entry
}
