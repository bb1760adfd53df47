//! The options of an event, besides its callsite and its arguments.

use crate::on::base::few::Few;
use crate::on::callsite::Epoch;
use crate::on::event::flow::Flow;
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

    /// Iterates over the flows that the event takes part in, each once, in the trace of this epoch. An end of
    /// a flow that never began in that trace is omitted.
    pub(crate) fn flows(&self, epoch: Epoch) -> impl Iterator<Item = (&'a Flow, bool)> {
        let all = move || {
            let all = self.flows.as_slice().iter();
            all.filter_map(|(flow, ends)| flow.map(|flow| (flow, *ends)))
                .filter(move |(flow, ends)| !ends || flow.has_begun(epoch))
        };
        // If a flow is given several times, the last time counts.
        all()
            .enumerate()
            .filter(move |(n, (flow, _))| !all().skip(n + 1).any(|(f, _)| f.id() == flow.id()))
            .map(|(_, flow)| flow)
    }
}
