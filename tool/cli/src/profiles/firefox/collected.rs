//! What a profile has of a trace.

use std::io;

use hairline_convert::sampled::Samples;
use hairline_convert::slices::Slices;
use hairline_convert::{Item, Report};

use crate::aligned::zero;
use crate::paired::PairingVisitor;
use crate::profiles::firefox::markers::Markers;
use crate::trace::ItemVisitor;
use crate::track_names::TrackNames;

/// What the profile has of a trace.
pub(super) struct Collected {
    pub(super) samples: Samples,
    pub(super) slices: Slices,
    pub(super) markers: Markers,
    pub(super) names: TrackNames,
    pub(super) since_1970: Option<i64>,
    pub(super) report: Report,
}

impl Collected {
    pub(super) fn new(slices: Slices) -> Self {
        Self {
            samples: Samples::default(),
            slices,
            markers: Markers::default(),
            names: TrackNames::default(),
            since_1970: None,
            report: Report::default(),
        }
    }
}

impl ItemVisitor for Collected {
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Track(track) => {
                self.names.set(track);
                self.slices.item(item, &mut self.markers);
            }
            Item::Event(event) => self.markers.event(event, &mut self.slices, &mut self.report),
            Item::Trace(trace) => self.since_1970 = self.since_1970.or_else(|| zero(trace)),
            Item::Scheduling(_) => self.report.add("records of the scheduler left out"),
            Item::Heap(_) => self.report.add("sums of the heap profile left out"),
            Item::Loss(_) => self.report.add("places where events are missing"),
            _ => self.samples.item(item),
        }
    }
}

impl PairingVisitor for Collected {
    fn finish(&mut self) -> io::Result<bool> {
        self.slices.finish(&mut self.markers)?;
        Ok(self.markers.is_late)
    }
}
