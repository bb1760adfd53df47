//! The facts of an async interval that a trace needs.

use crate::on::base::platform::process;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::track::Track;

/// A track that no interval is using, and the time at which the last one ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) uuid: u64,
    pub(crate) used_until: u64,
}

/// The facts of an async interval that its child intervals need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParentInterval {
    pub(crate) uuid: u64,
    pub(crate) epoch: Epoch,
    pub(crate) parent_uuid: u64,
    pub(crate) name: &'static str,
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
}

impl Interval {
    /// Creates an interval that is not recorded.
    pub(crate) fn unrecorded(callsite: &'static Callsite) -> Self {
        Self {
            callsite,
            recorded_in: None,
            epoch: None,
            begun_at: 0,
            lane: Lane { uuid: 0, used_until: 0 },
            is_lane_shared: false,
            parent_track: None,
            parent_interval: None,
        }
    }

    pub(crate) fn uuid(&self) -> u64 {
        self.lane.uuid
    }

    /// Whether later intervals use the same track, so that the track is described once.
    pub(crate) fn shares_lane(&self) -> bool {
        self.is_lane_shared
    }

    /// Returns the time of its begin; 0 if the begin is not in the trace.
    pub(crate) fn begun_at(&self) -> u64 {
        self.begun_at
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
        self.is_recorded_in(epoch).then(|| ParentInterval {
            uuid: self.lane.uuid,
            epoch,
            parent_uuid: self.parent_uuid(),
            name: self.callsite.name(),
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
    pub(crate) fn parent_uuid_in(&self, epoch: Epoch) -> u64 {
        self.uuid_above(self.parent_interval_in(epoch))
    }

    /// Returns the uuid of the parent track, in the session of the parent interval if there is one.
    pub(crate) fn parent_uuid(&self) -> u64 {
        self.uuid_above(self.parent_interval)
    }

    /// Returns the uuid of the parent track, which is that of the parent interval if there is one.
    fn uuid_above(&self, parent_interval: Option<ParentInterval>) -> u64 {
        parent_interval
            .map(|parent| parent.uuid)
            .or_else(|| self.parent_track.as_ref().map(Track::uuid))
            .unwrap_or_else(process::track_uuid)
    }

    /// Whether its parent is the process, and its name is that of its callsite.
    pub(crate) fn is_plain(&self) -> bool {
        self.parent_track.is_none() && self.parent_interval.is_none() && self.is_lane_shared
    }
}
