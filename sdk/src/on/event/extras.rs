//! The options of an event, besides its callsite and its arguments.

use crate::on::base::few::Few;
use crate::on::callsite::Epoch;
use crate::on::event::flow::Flow;
use crate::on::event::interval::Owner;
use crate::on::event::on_track::{OnTrack, Sealed, TrackRef};
use crate::on::event::track::Track;
use crate::vocabulary::Correlation;

/// Number of flows of an event that need no allocation.
const FLOWS: usize = 4;

/// The options of one event.
#[derive(Default)]
pub struct Extras<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) track: Option<TrackRef<'a>>,
    /// The owner of the interval in `track`, if a child may become another one.
    pub(crate) owner: Option<&'a dyn Owner>,
    /// The flows, each with whether it ends at this event.
    pub(crate) flows: Few<(Option<&'a Flow>, bool), FLOWS>,
    pub(crate) correlation: Option<Correlation<'a>>,
}

impl<'a> Extras<'a> {
    /// Creates options that are all absent.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets `name:`, which replaces the name of the callsite.
    #[inline]
    #[must_use]
    pub fn name(mut self, name: &'a (impl AsRef<str> + ?Sized)) -> Self {
        self.name = Some(name.as_ref());
        self
    }

    /// Sets `track:`.
    #[inline]
    #[must_use]
    pub fn track(mut self, track: &'a impl OnTrack) -> Self {
        self.track = Sealed::track_ref(track);
        self.owner = Sealed::owner(track);
        self
    }

    /// Sets `track:`, for a child of the interval that becomes another owner of it.
    #[cfg(feature = "subscriber")]
    pub(crate) fn below(mut self, parent: &'a impl Owner) -> Self {
        self.track = Some(TrackRef::Async(parent.interval()));
        self.owner = Some(parent);
        self
    }

    /// Sets `track:`, for a slice that nests on the track.
    #[inline]
    #[must_use]
    pub fn own_track(mut self, track: &'a impl AsRef<Track>) -> Self {
        self.track = Some(TrackRef::Track(track.as_ref()));
        self
    }

    /// Adds `flow:`.
    #[inline]
    #[must_use]
    pub fn flow(mut self, flow: &'a impl AsRef<Flow>) -> Self {
        self.flows.push((Some(flow.as_ref()), false));
        self
    }

    /// Adds `end_flow:`.
    #[inline]
    #[must_use]
    pub fn end_flow(mut self, flow: &'a impl AsRef<Flow>) -> Self {
        self.flows.push((Some(flow.as_ref()), true));
        self
    }

    /// Sets `correlation:`.
    #[inline]
    #[must_use]
    pub fn correlation(mut self, correlation: impl Into<Correlation<'a>>) -> Self {
        self.correlation = Some(correlation.into());
        self
    }

    /// Whether all options but the track are absent.
    #[inline]
    pub(crate) fn has_only_track(&self) -> bool {
        self.name.is_none() && self.flows.as_slice().is_empty() && self.correlation.is_none()
    }

    /// Returns the flows that have not begun in the trace of this epoch, and a time that the event must
    /// exceed because of the others. Call it before the event's time is read.
    pub(crate) fn new_flows(&self, epoch: Epoch) -> (NewFlows, u64) {
        let (mut new, mut after) = (NewFlows::default(), 0);
        for (n, (flow, _)) in self.last_uses() {
            match flow.state().time_in(epoch.get()) {
                None => new.0 |= bit(n),
                Some(time) => after = time.max(after),
            }
        }
        (new, after)
    }

    /// Begins the flows of `new` that do not end here, at the time `now`. If an event of another thread has
    /// begun one meanwhile, removes it from `new` and returns false: the event needs a later time. `own` are
    /// those that this event has begun in an earlier call. The caller writes the event's record next: nothing
    /// may prevent that.
    pub(crate) fn begin_flows(&self, epoch: Epoch, now: u64, new: &mut NewFlows, own: &mut NewFlows) -> bool {
        let mut are_all_begun = true;
        for (n, (flow, _)) in self.last_uses().filter(|(_, (_, ends))| !ends) {
            let is_own = own.0 & bit(n) != 0 && n < LAST_BIT;
            if new.0 & bit(n) == 0 || is_own {
                flow.state().set_known(epoch.get(), now);
            } else if flow.state().begin(epoch.get(), now) {
                own.0 |= bit(n);
            } else {
                new.0 &= !bit(n);
                are_all_begun = false;
            }
        }
        are_all_begun
    }

    /// Iterates over the flows that the event takes part in, each once. An end of a flow that has not begun
    /// is omitted.
    pub(crate) fn flows(&self, new: NewFlows) -> impl Iterator<Item = (&'a Flow, FlowUse)> {
        self.last_uses().filter_map(move |(n, (flow, ends))| match (new.0 & bit(n) != 0, ends) {
            (true, true) => None,
            (true, false) => Some((flow, FlowUse::Begin)),
            (false, false) => Some((flow, FlowUse::Step)),
            (false, true) => Some((flow, FlowUse::End)),
        })
    }

    /// Iterates over the flows and whether they end here. If a flow is given several times, the last time
    /// counts.
    fn last_uses(&self) -> impl Iterator<Item = (usize, (&'a Flow, bool))> {
        let all = move || {
            let all = self.flows.as_slice().iter().enumerate();
            all.filter_map(|(n, (flow, ends))| flow.map(|flow| (n, (flow, *ends))))
        };
        all().filter(move |(n, (flow, _))| !all().any(|(later, (f, _))| later > *n && f.id() == flow.id()))
    }
}

/// What an event does with a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlowUse {
    Begin,
    Step,
    End,
}

/// Flows of one event that begin with it: bit `n` is the `n`-th. The flows from [`LAST_BIT`] on share it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NewFlows(u64);

const LAST_BIT: usize = 63;

fn bit(n: usize) -> u64 {
    1 << n.min(LAST_BIT)
}
