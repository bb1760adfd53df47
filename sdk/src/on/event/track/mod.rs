//! Tracks: places for events besides the threads that record them.
//!
//! ```text
//! process ── thread "main"              Track::process(), Track::thread()
//!         └─ "queue"                    Track::process().child("queue")
//! "gpu" ──── "engine 0"                 Track::new("gpu").child("engine 0"): a tree of its own
//! ```
//!
//! The sequence of each thread describes a track and all its ancestors before the first event on the track.
//! An importer rejects the events of a track whose parent is never described.

mod few_slices;
mod open_slices;

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU64};

use hairline_formats::proto;
use hairline_formats::track_event::TrackUuid;

use crate::on::base::platform::process;
use crate::on::base::{forever, this_thread, uuid};
use crate::on::event::track;
use crate::on::event::track::open_slices::OpenSlices;
use crate::vocabulary::Ordering;

/// A track for slices, instants and counters. Clones refer to the same track.
///
/// Slices on a track nest like brackets: an end closes the slice that began last, on any thread. Slices that
/// overlap without nesting belong on several tracks. The UI shows siblings with the same name as one track.
///
/// ```
/// use hairline::{Ordering, Track, trace_begin, trace_end};
///
/// let gpu = Track::new("gpu").ordering(Ordering::Explicit).description("as the driver reports it");
/// let engine = gpu.child("engine 0").rank(3);
/// trace_begin!("gpu", "frame", number = 17, track: &engine);
/// trace_end!(&engine);
/// ```
#[derive(Clone, Debug)]
pub struct Track(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    uuid: TrackUuid,
    /// The varint of the uuid, which always has 8 bytes.
    varint: u64,
    depth: u32,
    kind: TrackKind,
    open_slices: OpenSlices,
}

/// The kind of a track.
#[derive(Clone, Debug)]
pub(crate) enum TrackKind {
    Process,
    Thread(process::Thread),
    Named(Named),
}

/// A track that the program created.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) parent: Option<Track>,
    pub(crate) name: Cow<'static, str>,
    pub(crate) description: Cow<'static, str>,
    pub(crate) ordering: Ordering,
    pub(crate) rank: i32,
}

/// Limit of the depth of a tree, which is walked from the leaf to the root. Deeper tracks become siblings of
/// their parents.
const MAX_DEPTH: u32 = 64;

impl Track {
    /// Creates the root of a new tree, beside the processes. Each call creates another track.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self::named(None, name.into())
    }

    /// Returns the track of the process.
    ///
    /// ```
    /// use hairline::{Track, trace_instant};
    ///
    /// trace_instant!("app", "configuration loaded", track: &Track::process());
    /// assert_eq!(Track::process().uuid(), Track::process().uuid()); // the same track each time
    /// ```
    #[must_use]
    pub fn process() -> Self {
        static PROCESS: AtomicPtr<Track> = AtomicPtr::new(std::ptr::null_mut());
        let make = || Self::make(process::track_uuid(), 0, TrackKind::Process);
        forever::get_or_leak(&PROCESS, make).clone()
    }

    /// Returns the track of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        let make = || Self::make(track::own_uuid(), 1, TrackKind::Thread(process::Thread::current()));
        if this_thread::is_barred() {
            return make(); // `OWN` may be about to be set
        }
        let _busy = this_thread::busy();
        Self::kept_of_this_thread().unwrap_or_else(|| {
            let made = make();
            let _ = OWN.try_with(|own| own.set(Some((this_thread::forks(), made.clone()))));
            made
        })
    }

    /// As [`of_this_thread`](Self::of_this_thread), if that was called before in this process. Allocates
    /// nothing. For a thread that is busy.
    pub(crate) fn kept_of_this_thread() -> Option<Self> {
        let kept = OWN.try_with(|own| own.take().inspect(|kept| own.set(Some(kept.clone())))).ok()??;
        (kept.0 == this_thread::forks()).then_some(kept.1)
    }

    /// Creates a child of this track. Each call creates another track. Below 64 levels the new track becomes
    /// a sibling of this one.
    #[must_use]
    pub fn child(&self, name: impl Into<Cow<'static, str>>) -> Self {
        let parent = match &self.0.kind {
            TrackKind::Named(named) if self.0.depth >= MAX_DEPTH => named.parent.clone(),
            _ => Some(self.clone()),
        };
        Self::named(parent, name.into())
    }

    /// Sets the order of the children of this track.
    #[must_use]
    pub fn ordering(self, ordering: Ordering) -> Self {
        self.change(|named| named.ordering = ordering)
    }

    /// Sets the rank of the track among its siblings, the smallest first. It counts if the order of the
    /// parent is [`Ordering::Explicit`].
    #[must_use]
    pub fn rank(self, rank: i32) -> Self {
        self.change(|named| named.rank = rank)
    }

    /// Sets the description, a sentence or two.
    #[must_use]
    pub fn description(self, description: impl Into<Cow<'static, str>>) -> Self {
        self.change(|named| named.description = description.into())
    }

    /// Returns the uuid of the track in the trace.
    #[must_use]
    pub fn uuid(&self) -> u64 {
        self.0.uuid.0
    }

    #[inline]
    pub(crate) fn track_uuid(&self) -> TrackUuid {
        self.0.uuid
    }

    /// Returns the varint of the uuid.
    #[inline]
    pub(crate) fn uuid_varint(&self) -> u64 {
        self.0.varint
    }

    pub(crate) fn kind(&self) -> &TrackKind {
        &self.0.kind
    }

    #[inline]
    pub(crate) fn open_slices(&self) -> &OpenSlices {
        &self.0.open_slices
    }

    /// Returns the parent.
    pub(crate) fn parent(&self) -> Option<Track> {
        match &self.0.kind {
            TrackKind::Process => None,
            TrackKind::Thread(_) => Some(Self::process()),
            TrackKind::Named(named) => named.parent.clone(),
        }
    }

    fn named(parent: Option<Self>, name: Cow<'static, str>) -> Self {
        let depth = parent.as_ref().map_or(0, |p| p.0.depth + 1);
        let named =
            Named { parent, name, description: Cow::Borrowed(""), ordering: Ordering::Unspecified, rank: 0 };
        Self::make(new_uuid(), depth, TrackKind::Named(named))
    }

    fn make(uuid: TrackUuid, depth: u32, kind: TrackKind) -> Self {
        let varint = proto::varint_of_8(uuid.0);
        Self(Arc::new(Inner { uuid, varint, depth, kind, open_slices: OpenSlices::new() }))
    }

    /// Returns the track with other properties. A track that has clones or children may be in a trace
    /// already; it stays unchanged, and the change creates a new track. Threads and the process have no
    /// properties.
    fn change(mut self, change: impl FnOnce(&mut Named)) -> Self {
        if let Some(Inner { kind: TrackKind::Named(named), .. }) = Arc::get_mut(&mut self.0) {
            change(named);
        } else if let TrackKind::Named(named) = &self.0.kind {
            let mut named = named.clone();
            change(&mut named);
            return Self::make(new_uuid(), self.0.depth, TrackKind::Named(named));
        }
        self
    }
}

/// Creates a track uuid that does not derive from a process or thread.
pub(crate) fn new_uuid() -> TrackUuid {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    uuid::track_uuid(process::random_id() ^ NEXT.fetch_add(1, Relaxed).rotate_left(32))
}

thread_local! {
    /// One track for all handles: one handle ends the slices that another one begins. Beside it the number of
    /// forks: in a forked child, the thread has another id.
    static OWN: Cell<Option<(u32, Track)>> = const { Cell::new(None) };
    static OWN_UUID: Cell<TrackUuid> = const { Cell::new(TrackUuid(0)) };
}

/// Returns the uuid of this thread's track, the same in all sessions.
#[inline]
pub(crate) fn own_uuid() -> TrackUuid {
    match OWN_UUID.get() {
        TrackUuid(0) => assign_own_uuid(),
        uuid => uuid,
    }
}

#[cold]
fn assign_own_uuid() -> TrackUuid {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let serial = NEXT.fetch_add(1, Relaxed);
    OWN_UUID.set(uuid::track_uuid(process::random_id() ^ serial.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    OWN_UUID.get()
}

impl AsRef<Track> for Track {
    fn as_ref(&self) -> &Track {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_track_has_its_own_uuid() {
        let parent = Track::new("a");
        let child = parent.child("a");
        assert!(parent.uuid() != child.uuid() && parent.uuid() == parent.clone().uuid());
        assert!(child.parent().is_some_and(|p| p.uuid() == parent.uuid()));
        // A change after a clone creates another track; a change before keeps the track.
        let clone = child.clone();
        assert!(child.rank(3).uuid() != clone.uuid());
        let uuid = clone.uuid();
        assert_eq!(clone.rank(3).uuid(), uuid);
    }

    #[test]
    fn the_depth_of_a_tree_is_limited() {
        let mut track = Track::new("0");
        for _ in 0..1000 {
            track = track.child("n");
        }
        assert_eq!(std::iter::successors(Some(track), Track::parent).count(), MAX_DEPTH as usize + 1);
    }
}
