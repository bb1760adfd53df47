//! The first reading of a trace: what must be known before the first row.

use hairline_convert::sampled::Samples;
use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::timeline::Timeline;
use hairline_convert::{BriefUse, Context, EventKind, Item, MOST_BRIEF, TrackId};

use crate::content::Content;
use crate::flows::Change;
use crate::owners::Owners;
use crate::schema::{TableId, slice};
use crate::source::{Error, Source};
use crate::to_next::ToNext;
use crate::waiting::FlowPoint;
use crate::wanted::Wanted;

/// What the first reading finds.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub(crate) owners: Owners,
    pub(crate) timeline: Timeline,
    pub(crate) samples: Samples,
    /// Tracks with complete slices.
    pub(crate) intervals: Vec<TrackId>,
    /// Whether events are so far from the order of time that all have to be sorted.
    pub(crate) is_late: bool,
    /// Flows that end at the next slice of a track.
    pub(crate) to_next: ToNext,
    /// The number of the latest event, from 1.
    number: u32,
    has_uuid: bool,
    /// The hash of all items, unless the trace has a UUID, or the second reading sees all of them.
    pub(crate) content: Content,
}

struct Lateness(bool);

impl SliceSink for Lateness {
    fn slice(&mut self, _: &Slice, _: &mut [Frame]) {}

    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.0 |= matches!(what, Defect::Late | Defect::AfterInner);
    }
}

impl Survey {
    /// Reads the whole trace.
    pub(crate) fn read(source: &mut dyn Source, wanted: &Wanted) -> Result<Self, Error> {
        let (mut survey, mut slices, mut late) = (Self::default(), Slices::new(), Lateness(false));
        let (mut context, mut briefs) = (Context::new(), Vec::with_capacity(MOST_BRIEF));
        let mut choice = source.choice();
        let mut reader = source.open().map_err(Error::Read)?;
        // As in the second reading: points, too, fill the window in which events are put in order.
        let shows_points = wanted.has_table(TableId::Instant);
        loop {
            // Of a trace without a UUID, all is read in one of the readings: it becomes a part of the hash.
            if choice.is_none() && (survey.has_uuid || !wanted.takes_briefs()) {
                reader.briefs(BriefUse::Counting, &mut context, &mut briefs);
            }
            if shows_points {
                slices.briefs_and_points(&briefs, &context.strings, &mut late);
            } else {
                slices.briefs(&briefs, &context.strings, &mut late);
            }
            survey.number = survey.number.saturating_add(briefs.len() as u32); // at most MOST_BRIEF
            if briefs.len() == MOST_BRIEF {
                continue;
            }
            match reader.next(&mut context) {
                Ok(Some(ref item)) => {
                    if let Item::Trace(trace) = item {
                        survey.has_uuid |= trace.uuid.is_some();
                    }
                    if !survey.has_uuid && wanted.takes_briefs() {
                        survey.content.item(item);
                    }
                    match &mut choice {
                        None => survey.item(item, &mut slices, &mut late, wanted),
                        Some(choice) => {
                            choice.item(item, &mut |item| survey.item(item, &mut slices, &mut late, wanted));
                        }
                    }
                }
                Ok(None) => break,
                Err(e) if e.is_truncated() => break,
                Err(e) => return Err(Error::Read(e)),
            }
        }
        if let Some(mut choice) = choice {
            choice.finish(&mut |item| survey.item(item, &mut slices, &mut late, wanted));
        }
        slices.finish(&mut late).map_err(Error::Scratch)?;
        survey.is_late = late.0;
        survey.owners.finish();
        survey.timeline.finish();
        survey.samples.finish();
        survey.intervals.sort_unstable();
        survey.intervals.dedup();
        Ok(survey)
    }

    fn item(&mut self, item: &Item<'_>, slices: &mut Slices, late: &mut Lateness, wanted: &Wanted) {
        if let Item::Event(event) = item {
            self.number = self.number.saturating_add(1);
            if let EventKind::Flow { id, step, to_next: true, lasts } = event.kind
                && wanted.has_table(TableId::Flow)
            {
                let change = Change::of(step, lasts);
                let point = FlowPoint { flow: id, time: event.time, event: self.number, change };
                self.to_next.add(event.track, point);
            }
        }
        match item {
            Item::Track(track) => self.owners.set(track),
            Item::Scheduling(scheduling) if wants_states(wanted) => self.timeline.add(scheduling),
            Item::Sample(_) | Item::Symbols(_) if wants_samples(wanted) => self.samples.item(item),
            Item::Event(event)
                if matches!(event.kind, EventKind::Complete { .. }) && !slices.has_intervals(event.track) =>
            {
                self.intervals.push(event.track);
            }
            _ => {}
        }
        match item {
            // Also instants and flows: their places are asked for later.
            Item::Event(event) if !matches!(event.kind, EventKind::Counter(_)) => {
                slices.tagged(event, 0, late);
            }
            item => slices.item(item, late),
        }
    }
}

fn wants_states(wanted: &Wanted) -> bool {
    let of_slice = wanted.has(TableId::Slice, slice::running) || wanted.has(TableId::Slice, slice::waiting);
    of_slice || wanted.has_table(TableId::Sched)
}

/// The row of `trace` has the build id, which is in the samples.
fn wants_samples(wanted: &Wanted) -> bool {
    wanted.has_table(TableId::Sample) || wanted.has_table(TableId::Trace)
}
