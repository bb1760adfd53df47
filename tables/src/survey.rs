//! The first reading of a trace: what must be known before the first row.

use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::timeline::Timeline;
use hairline_convert::{BriefUse, Context, EventKind, Item, MOST_BRIEF, TrackId};

use crate::owners::Owners;
use crate::{Error, Source};

/// What the first reading finds.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) owners: Owners,
    pub(crate) timeline: Timeline,
    /// Tracks with complete slices.
    pub(crate) intervals: Vec<TrackId>,
    /// Whether events are so far from the order of time that all have to be sorted.
    pub(crate) is_late: bool,
}

struct Lateness(bool);

impl SliceSink for Lateness {
    fn slice(&mut self, _: &Slice, _: &mut [Frame]) {}

    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.0 |= what == Defect::Late;
    }
}

impl Survey {
    /// Reads the whole trace.
    pub(crate) fn read(source: &mut dyn Source) -> Result<Self, Error> {
        let (mut survey, mut slices, mut late) = (Self::default(), Slices::new(), Lateness(false));
        let (mut context, mut briefs) = (Context::new(), Vec::with_capacity(MOST_BRIEF));
        let mut reader = source.open().map_err(Error::Read)?;
        loop {
            reader.briefs(BriefUse::Counting, &mut context, &mut briefs);
            slices.briefs(&briefs, &context.strings, &mut late);
            if briefs.len() == MOST_BRIEF {
                continue;
            }
            match reader.next(&mut context) {
                Ok(Some(ref item)) => {
                    survey.item(item, &slices);
                    slices.item(item, &mut late);
                }
                Ok(None) => break,
                Err(e) if e.is_truncated() => break,
                Err(e) => return Err(Error::Read(e)),
            }
        }
        survey.is_late = late.0;
        survey.owners.finish();
        survey.timeline.finish();
        Ok(survey)
    }

    fn item(&mut self, item: &Item<'_>, slices: &Slices) {
        match item {
            Item::Track(track) => self.owners.set(track),
            Item::Scheduling(scheduling) => self.timeline.add(scheduling),
            Item::Event(event) if matches!(event.kind, EventKind::Complete { .. }) => {
                if !slices.has_intervals(event.track) {
                    self.intervals.push(event.track);
                }
            }
            _ => {}
        }
    }
}
