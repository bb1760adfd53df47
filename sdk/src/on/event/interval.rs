//! The facts of an async interval that a trace needs.
//!
//! An interval has a lane. A child interval that is sure to end before its parent goes on the parent's lane,
//! if no other child is open there: the slices of a lane nest.
//!
//! ```text
//! lane 0   [ request ......................... ]
//!             [ handler ................... ]
//!               [ query ]   [ query ....]
//! lane 1                       [ query ...]        overlaps another child of the same parent
//! ```

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hairline_formats::track_event::TrackUuid;

use crate::on::base::platform::process;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::track::Track;
use crate::options::Format;

/// A track that no interval is using, and the time at which the last one ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) uuid: TrackUuid,
    pub(crate) used_until: u64,
}

/// An interval that ends when its last owner drops it.
pub(crate) trait Lasting: fmt::Debug + Send + Sync + UnwindSafe + RefUnwindSafe {
    fn interval(&self) -> &Interval;
}

/// An owner of a parent interval. A child that owns its parent too ends before the parent.
pub(crate) trait Owner {
    #[cfg(feature = "subscriber")]
    fn interval(&self) -> &Interval;

    fn share(&self) -> Arc<dyn Lasting>;
}

impl<T: Lasting + 'static> Owner for Arc<T> {
    #[cfg(feature = "subscriber")]
    fn interval(&self) -> &Interval {
        (**self).interval()
    }

    fn share(&self) -> Arc<dyn Lasting> {
        Self::clone(self)
    }
}

/// The children of an interval on its own lane: at most one is open at a time.
#[derive(Debug, Default)]
pub(crate) struct Nested {
    is_open: AtomicBool,
    /// The time of the last event on the lane: the last child's end, or an instant; 0 before that.
    used_until: AtomicU64,
}

impl Nested {
    /// Begins a child. Returns the time that it must come after; `None` if a child is open.
    fn open(&self) -> Option<u64> {
        // Acquire pairs with the Release in `close`: the last child's end is known.
        (!self.is_open.swap(true, Ordering::Acquire)).then(|| self.used_until.load(Ordering::Relaxed))
    }

    /// Ends the child. The lane was used until that time.
    pub(crate) fn close(&self, used_until: u64) {
        self.set_used_until(used_until);
        self.is_open.store(false, Ordering::Release); // pairs with the Acquire in `open`
    }

    /// Notes that an event on the lane has this time. The interval's end, perhaps on another thread, and the
    /// next child must be later: two threads' counters may have the same tick.
    pub(crate) fn set_used_until(&self, time: u64) {
        self.used_until.fetch_max(time, Ordering::Relaxed);
    }

    /// Whether a child is open. With the parent's last owner: whether the slice of a child stayed open.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }
}

/// The facts of an async interval that its child intervals need: its lane and the description of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParentInterval {
    pub(crate) uuid: TrackUuid,
    pub(crate) epoch: Epoch,
    /// The parent of the lane.
    pub(crate) parent_uuid: TrackUuid,
    /// The callsite of the lane's name.
    pub(crate) callsite: &'static Callsite,
    pub(crate) shares_lane: bool,
    /// Whether FXT has records for the interval, so that it needs no track until it has a child.
    pub(crate) is_plain: bool,
}

/// An async interval: its callsite, its track and its parent.
#[derive(Debug)]
pub(crate) struct Interval {
    pub(crate) callsite: &'static Callsite,
    /// The epoch in which its begin was recorded.
    pub(crate) recorded_in: Option<Epoch>,
    /// The epoch in which it began, whether that was recorded or not.
    pub(crate) epoch: Option<Epoch>,
    /// The time of its begin, if that is recorded. Events in the interval come after that time, on all
    /// threads.
    pub(crate) begun_at: u64,
    /// Its track; uuid 0 without a track.
    pub(crate) lane: Lane,
    /// Whether later intervals may use the track.
    pub(crate) is_lane_shared: bool,
    /// The parent, if it is a track that the program created.
    pub(crate) parent_track: Option<Track>,
    /// The parent, if it is an async interval in the trace.
    pub(crate) parent_interval: Option<ParentInterval>,
    /// Whether it is on the lane of its parent interval.
    pub(crate) is_nested: bool,
    /// Whether it is a track in FXT too, although FXT has records for it: on such records no child can nest.
    pub(crate) is_always_track: bool,
    /// Its children on its lane.
    pub(crate) nested: Nested,
}

impl Interval {
    /// Creates an interval that is not recorded.
    #[inline(always)]
    pub(crate) fn unrecorded(callsite: &'static Callsite) -> Self {
        Self {
            callsite,
            recorded_in: None,
            epoch: None,
            begun_at: 0,
            lane: Lane { uuid: TrackUuid(0), used_until: 0 },
            is_lane_shared: false,
            parent_track: None,
            parent_interval: None,
            is_nested: false,
            is_always_track: false,
            nested: Nested::default(),
        }
    }

    /// Tries to place a new interval on the lane of its parent, which ends after it. It begins at `past`, or
    /// else now. Returns whether it is there, and the time of its begin if that is in the past.
    pub(crate) fn nest_on(&mut self, parent: &Self, past: Option<u64>) -> (bool, Option<u64>) {
        let can_nest = self.epoch.is_some_and(|epoch| {
            // FXT's own records for intervals do not nest.
            parent.is_recorded_in(epoch) && !(parent.is_plain() && epoch.format() == Format::Fxt)
        });
        if !can_nest {
            return (false, past);
        }
        let Some(used_until) = parent.nested.open() else { return (false, past) };
        let used_until = used_until.max(parent.begun_at);
        if past.is_some_and(|past| past < used_until) {
            parent.nested.close(used_until);
            return (false, past);
        }
        self.lane = Lane { uuid: parent.uuid(), used_until };
        self.is_lane_shared = parent.is_lane_shared;
        self.is_nested = true;
        (true, past.map(|past| past.max(used_until + 1)))
    }

    pub(crate) fn uuid(&self) -> TrackUuid {
        self.lane.uuid
    }

    /// Whether later intervals use the same track, so that the track is described once.
    pub(crate) fn shares_lane(&self) -> bool {
        self.is_lane_shared
    }

    /// Returns the time after which its events come: that of its begin, or of the last child's end or the
    /// last instant on its lane; 0 if there is none in the trace.
    pub(crate) fn last_time(&self) -> u64 {
        self.begun_at.max(self.nested.used_until.load(Ordering::Relaxed))
    }

    pub(crate) fn callsite(&self) -> &'static Callsite {
        self.callsite
    }

    /// Whether it began in the session with this epoch. In another session it has no track: its lane belongs
    /// to other intervals there.
    pub(crate) fn is_of(&self, epoch: Epoch) -> bool {
        self.epoch == Some(epoch)
    }

    /// Whether it is in the trace of the session with this epoch.
    pub(crate) fn is_recorded_in(&self, epoch: Epoch) -> bool {
        self.recorded_in == Some(epoch)
    }

    /// Returns the facts that its child intervals need, if it is in the trace of the session with this epoch.
    pub(crate) fn as_parent_in(&self, epoch: Epoch) -> Option<ParentInterval> {
        let lane = self.parent_interval.filter(|_| self.is_nested);
        self.is_recorded_in(epoch).then(|| ParentInterval {
            uuid: self.lane.uuid,
            epoch,
            parent_uuid: lane.map_or_else(|| self.parent_uuid(), |lane| lane.parent_uuid),
            callsite: lane.map_or(self.callsite, |lane| lane.callsite),
            shares_lane: self.is_lane_shared,
            is_plain: self.is_plain(),
        })
    }

    /// Returns the parent interval, if that is in the trace of the session with this epoch.
    pub(crate) fn parent_interval_in(&self, epoch: Epoch) -> Option<ParentInterval> {
        self.parent_interval.filter(|parent| parent.epoch == epoch)
    }

    pub(crate) fn parent_track(&self) -> Option<&Track> {
        self.parent_track.as_ref()
    }

    /// Returns the uuid of the parent track in the session with this epoch. A parent interval that is not in
    /// that session's trace is ignored.
    pub(crate) fn parent_uuid_in(&self, epoch: Epoch) -> TrackUuid {
        self.uuid_above(self.parent_interval_in(epoch))
    }

    /// Returns the uuid of the parent track, in the session of the parent interval if there is one.
    pub(crate) fn parent_uuid(&self) -> TrackUuid {
        self.uuid_above(self.parent_interval)
    }

    /// Returns the uuid of the parent track, which is that of the parent interval if there is one.
    fn uuid_above(&self, parent_interval: Option<ParentInterval>) -> TrackUuid {
        parent_interval
            .map(|parent| parent.uuid)
            .or_else(|| self.parent_track.as_ref().map(Track::track_uuid))
            .unwrap_or_else(process::track_uuid)
    }

    /// Whether FXT has records for it: its parent is the process, its name is that of its callsite, and its
    /// children need not nest on its lane.
    pub(crate) fn is_plain(&self) -> bool {
        self.parent_track.is_none()
            && self.parent_interval.is_none()
            && self.is_lane_shared
            && !self.is_always_track
    }
}
