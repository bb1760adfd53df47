//! What a trace needs to know of an async interval.

use crate::on::base::platform::process;
use crate::on::callsite::Callsite;
use crate::on::event::track::Track;

/// A track on which nothing happens, and the last time that something did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) uuid: u64,
    pub(crate) used_until: u64,
}

/// An async interval that another one lies below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Above {
    pub(crate) uuid: u64,
    pub(crate) epoch: u32,
    pub(crate) parent_uuid: u64,
    pub(crate) name: &'static str,
    pub(crate) shares_lane: bool,
    /// Whether FXT has records for it, so that it is no track until something lies below it.
    pub(crate) is_plain: bool,
}

/// An async interval: its callsite, its track and what lies above it.
#[derive(Debug)]
pub(crate) struct Interval {
    pub(crate) callsite: &'static Callsite,
    /// The epoch in which its begin was recorded; 0 if it was not.
    pub(crate) recorded_in: u32,
    /// The epoch in which it began, recorded or not.
    pub(crate) epoch: u32,
    /// When it began, if it is recorded: what happens in it comes after that, on whichever thread.
    pub(crate) begun_at: u64,
    /// Its track; 0: there is none.
    pub(crate) lane: Lane,
    /// Whether the track may be used again.
    pub(crate) shared_lane: bool,
    /// The track above, as far as it is one that the program made.
    pub(crate) parent: Option<Track>,
    /// The async interval above, if it is in the trace.
    pub(crate) above: Option<Above>,
}

impl Interval {
    /// An interval of which nothing is recorded.
    pub(crate) fn none(callsite: &'static Callsite) -> Self {
        Self {
            callsite,
            recorded_in: 0,
            epoch: 0,
            begun_at: 0,
            lane: Lane { uuid: 0, used_until: 0 },
            shared_lane: false,
            parent: None,
            above: None,
        }
    }

    pub(crate) fn uuid(&self) -> u64 {
        self.lane.uuid
    }

    /// Whether its track is one that later intervals use too, so that it is to be described once.
    pub(crate) fn shares_lane(&self) -> bool {
        self.shared_lane
    }

    /// When it began; 0 if that is not in the trace.
    pub(crate) fn begun_at(&self) -> u64 {
        self.begun_at
    }

    pub(crate) fn callsite(&self) -> &'static Callsite {
        self.callsite
    }

    /// Whether it began in the session with this epoch. In another one it is no track: its lane is somebody else's there.
    pub(crate) fn is_of(&self, epoch: u32) -> bool {
        self.epoch == epoch
    }

    /// Whether it is in the trace of the session with this epoch.
    pub(crate) fn is_recorded_in(&self, epoch: u32) -> bool {
        self.recorded_in == epoch
    }

    /// What lies below it needs to know of it.
    pub(crate) fn as_above(&self) -> Above {
        Above {
            uuid: self.lane.uuid,
            epoch: self.recorded_in,
            parent_uuid: self.parent_uuid(),
            name: self.callsite.name(),
            shares_lane: self.shared_lane,
            is_plain: self.is_plain(),
        }
    }

    /// The interval above, if it is in the trace of the session with this epoch.
    pub(crate) fn above_in(&self, epoch: u32) -> Option<Above> {
        self.above.filter(|above| above.epoch == epoch)
    }

    pub(crate) fn parent(&self) -> Option<&Track> {
        self.parent.as_ref()
    }

    /// The track above. In a session that it did not begin in, what lies above it there counts for nothing.
    pub(crate) fn parent_uuid_in(&self, epoch: u32) -> u64 {
        let above = self.above_in(epoch).map(|above| above.uuid);
        above.or_else(|| self.parent.as_ref().map(Track::uuid)).unwrap_or_else(process::track_uuid)
    }

    pub(crate) fn parent_uuid(&self) -> u64 {
        self.parent_uuid_in(self.above.map_or(0, |above| above.epoch))
    }

    /// Whether it belongs to the process and nothing else, and has its callsite's name.
    pub(crate) fn is_plain(&self) -> bool {
        self.parent.is_none() && self.above.is_none() && self.shared_lane
    }
}
