//! Tracks: where events lie besides the threads that record them.
//!
//! ```text
//! process ── thread "main"              Track::process(), Track::thread()
//!         └─ "queue"                    Track::process().child("queue")
//! "gpu" ──── "engine 0"                 Track::new("gpu").child("engine 0"): a tree of its own
//! ```
//!
//! A track is described in the trace before its first event on each thread's sequence, and all tracks above it: an
//! importer refuses the events of a track with a parent that it never hears of.

mod open;

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicPtr, AtomicU64};

use crate::on::base::platform::process;
use crate::on::base::{forever, this_thread, uuid};
use crate::on::event::track;
use crate::on::event::track::open::Open;
use crate::vocabulary::Ordering;

/// A place for slices, instants and counters. Clones are the same track.
///
/// Slices on a track are begun and ended like brackets: an end closes the slice begun last, on whichever thread. What
/// overlaps without nesting belongs on several tracks; siblings with the same name are shown as one.
///
/// ```
/// use hairline::{Ordering, Track, trace_begin, trace_end};
///
/// let gpu = Track::new("gpu").ordering(Ordering::Explicit).description("as the driver tells it");
/// let engine = gpu.child("engine 0").rank(3);
/// trace_begin!("gpu", "frame", number = 17, track: &engine);
/// trace_end!(&engine);
/// ```
#[derive(Clone, Debug)]
pub struct Track(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    uuid: u64,
    depth: u32,
    place: TrackKind,
    open: Open,
}

/// What a track is.
#[derive(Clone, Debug)]
pub(crate) enum TrackKind {
    Process,
    Thread(process::Thread),
    Named(Named),
}

/// A track that is nothing but its name.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) parent: Option<Track>,
    pub(crate) name: Cow<'static, str>,
    pub(crate) description: Cow<'static, str>,
    pub(crate) ordering: Ordering,
    pub(crate) rank: i32,
}

/// Tracks below this depth are put beside their parents: a tree is walked from the leaf to the root.
const MAX_DEPTH: u32 = 64;

impl Track {
    /// The root of a tree of its own, beside the processes. Each call makes another track.
    pub fn new(name: impl Into<Cow<'static, str>>) -> Self {
        Self::named(None, name.into())
    }

    /// The process's own track.
    pub fn process() -> Self {
        static PROCESS: AtomicPtr<Track> = AtomicPtr::new(std::ptr::null_mut());
        let make = || Box::new(Self::make(process::track_uuid(), 0, TrackKind::Process));
        forever::keep(&PROCESS, make).clone()
    }

    /// The calling thread's track. The handle stays that thread's wherever it is used.
    pub fn thread() -> Self {
        thread_local! {
            // One for all handles: what one of them begins another one ends.
            static OWN: OnceCell<Track> = const { OnceCell::new() };
        }
        let make = || Self::make(track::own_uuid(), 1, TrackKind::Thread(process::Thread::current()));
        if this_thread::is_barred() {
            return make(); // perhaps while the one is being made
        }
        let _busy = this_thread::busy();
        OWN.try_with(|own| own.get_or_init(make).clone()).unwrap_or_else(|_| make())
    }

    /// A track below this one. Each call makes another track. Below 64 levels it is put beside its parent.
    #[must_use]
    pub fn child(&self, name: impl Into<Cow<'static, str>>) -> Self {
        let parent = match &self.0.place {
            TrackKind::Named(named) if self.0.depth >= MAX_DEPTH => named.parent.clone(),
            _ => Some(self.clone()),
        };
        Self::named(parent, name.into())
    }

    /// How the tracks below this one are shown.
    #[must_use]
    pub fn ordering(self, ordering: Ordering) -> Self {
        self.change(|named| named.ordering = ordering)
    }

    /// Its place among its siblings, the smallest first, where their parent's order is [`Ordering::Explicit`].
    #[must_use]
    pub fn rank(self, rank: i32) -> Self {
        self.change(|named| named.rank = rank)
    }

    /// What it is about, in a sentence or two.
    #[must_use]
    pub fn description(self, description: impl Into<Cow<'static, str>>) -> Self {
        self.change(|named| named.description = description.into())
    }

    /// The track's number in the trace.
    #[must_use]
    pub fn uuid(&self) -> u64 {
        self.0.uuid
    }

    pub(crate) fn place(&self) -> &TrackKind {
        &self.0.place
    }

    pub(crate) fn open(&self) -> &Open {
        &self.0.open
    }

    /// The track above.
    pub(crate) fn parent(&self) -> Option<Track> {
        match &self.0.place {
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

    fn make(uuid: u64, depth: u32, place: TrackKind) -> Self {
        Self(Arc::new(Inner { uuid, depth, place, open: Open::default() }))
    }

    /// The track with other properties. One that has clones or children by now, which may be in a trace already, stays
    /// as it is, and the change makes a track of its own. Threads and the process have no properties.
    fn change(mut self, change: impl FnOnce(&mut Named)) -> Self {
        if let Some(Inner { place: TrackKind::Named(named), .. }) = Arc::get_mut(&mut self.0) {
            change(named);
        } else if let TrackKind::Named(named) = &self.0.place {
            let mut named = named.clone();
            change(&mut named);
            return Self::make(new_uuid(), self.0.depth, TrackKind::Named(named));
        }
        self
    }
}

/// The number of a track that is not derived from what it is.
pub(crate) fn new_uuid() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    uuid::uuid(process::uuid() ^ NEXT.fetch_add(1, Relaxed).rotate_left(32))
}

thread_local! {
    static OWN_UUID: Cell<u64> = const { Cell::new(0) };
}

/// The number of this thread's track, the same in all sessions.
#[inline]
pub(crate) fn own_uuid() -> u64 {
    match OWN_UUID.get() {
        0 => number_this_thread(),
        uuid => uuid,
    }
}

#[cold]
fn number_this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let serial = NEXT.fetch_add(1, Relaxed);
    OWN_UUID.set(uuid::uuid(process::uuid() ^ serial.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
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
    fn every_track_has_a_number_of_its_own() {
        let parent = Track::new("a");
        let child = parent.child("a");
        assert!(parent.uuid() != child.uuid() && parent.uuid() == parent.clone().uuid());
        assert!(child.parent().is_some_and(|p| p.uuid() == parent.uuid()));
        // A change after a clone is another track; before, the same.
        let clone = child.clone();
        assert!(child.rank(3).uuid() != clone.uuid());
        let uuid = clone.uuid();
        assert_eq!(clone.rank(3).uuid(), uuid);
    }

    #[test]
    fn a_tree_does_not_grow_without_bounds() {
        let mut track = Track::new("0");
        for _ in 0..1000 {
            track = track.child("n");
        }
        assert_eq!(std::iter::successors(Some(track), Track::parent).count(), MAX_DEPTH as usize + 1);
    }
}
