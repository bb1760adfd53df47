//! The second reading of a trace: makes rows.

use std::collections::HashMap;
use std::fs::File;
use std::io;

use hairline_convert::sampled::Samples;
use hairline_convert::slices::{Defect, Key, Keys, Slices};
use hairline_convert::timeline::Timeline;
use hairline_convert::{BriefUse, Context, EventKind, Item, MOST_BRIEF, Scheduling, TraceReader, TrackId};

use crate::content::Content;
use crate::flows::Flows;
use crate::owners::Owners;
use crate::pairs::{DEFECTS, Pairs};
use crate::rows::Rows;
use crate::schema::{TABLES, TableId};
use crate::source::{Choice, Error, Sink, Source};
use crate::summary::Summary;
use crate::survey::Survey;
use crate::to_next::ToNext;
use crate::waiting::{FlowPoint, LateEnd};
use crate::wanted::Wanted;
use crate::{about, states};

/// Makes rows of a trace.
pub(crate) struct Reading<'a> {
    pub(crate) wanted: &'a Wanted,
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) tables: [Rows; TABLES.len()],
    pub(crate) owners: Owners,
    /// Tracks with complete slices, as the first reading has found them.
    intervals: Vec<TrackId>,
    /// Whether the first reading has found what is not in order.
    pub(crate) is_surveyed: bool,
    /// Whether the rows are of no use if the trace has to be read twice.
    at_once: bool,
    pub(crate) timeline: Timeline,
    samples: Samples,
    pub(crate) pairs: Pairs,
    pub(crate) flows: Flows,
    /// Steps of flows and ends that wait in the builder of slices, by number.
    pub(crate) flow_points: HashMap<u32, FlowPoint>,
    pub(crate) late_ends: HashMap<u32, LateEnd>,
    /// The bytes of `late_ends`.
    pub(crate) late_bytes: usize,
    /// Flows that end at the next slice of a track.
    pub(crate) to_next: ToNext,
    /// The number of the latest event, from 1.
    pub(crate) number: u32,
    /// The hash of all items, of a trace without a UUID.
    content: Content,
    pub(crate) summary: Summary,
    /// In a trace that is read once: slices whose thread's states may still come, and descriptions of threads
    /// and processes that rows before them do not have.
    pub(crate) undivided: u64,
    renamed: u64,
    /// Whether the categories pass the filter, by key.
    passes: Vec<bool>,
}

const UNDIVIDED: &str = "slices without `running` and `waiting`, because the trace can be read only once";
/// The limit for the bytes of names and categories.
const MOST_NAMES: usize = 64 << 20;
const NAMES: &str = "names and categories for which there is no memory, shown as (others)";

/// See [`read`](crate::read).
pub(crate) fn read(
    source: &mut dyn Source,
    wanted: &Wanted,
    scratch: fn() -> io::Result<File>,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let survey = source.is_repeatable().then(|| Survey::read(source, wanted)).transpose()?;
    let is_late = survey.as_ref().is_some_and(|survey| survey.is_late);
    let slices = if is_late { Slices::in_order(scratch) } else { Slices::new() };
    Reading::new(wanted, survey, false, sink).whole(source, slices)
}

/// See [`read_at_once`](crate::read_at_once).
pub(crate) fn read_at_once(
    source: &mut dyn Source,
    wanted: &Wanted,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    if !wanted.is_known_at_once() {
        return Err(Error::NotAtOnce);
    }
    Reading::new(wanted, None, true, sink).whole(source, Slices::new())
}

impl<'a> Reading<'a> {
    fn new(wanted: &'a Wanted, survey: Option<Survey>, at_once: bool, sink: &'a mut dyn Sink) -> Self {
        let (is_surveyed, survey) = (survey.is_some(), survey.unwrap_or_default());
        Self {
            wanted,
            sink,
            tables: TableId::ALL.map(|table| Rows::new(table, wanted)),
            owners: survey.owners,
            intervals: survey.intervals,
            is_surveyed,
            at_once,
            timeline: survey.timeline,
            samples: survey.samples,
            pairs: Pairs::default(),
            flows: Flows::default(),
            flow_points: HashMap::new(),
            late_ends: HashMap::new(),
            late_bytes: 0,
            to_next: survey.to_next,
            number: 0,
            content: survey.content,
            summary: Summary::default(),
            undivided: 0,
            renamed: 0,
            passes: Vec::new(),
        }
    }

    /// Reads the whole trace.
    fn whole(mut self, source: &mut dyn Source, mut slices: Slices) -> Result<Summary, Error> {
        slices.keys_mut().limit(MOST_NAMES);
        self.intervals.iter().for_each(|track| slices.expect_intervals(*track));
        let choice = source.choice();
        let mut reader = source.open().map_err(Error::Read)?;
        self.all(&mut *reader, choice, &mut slices)?;
        self.summary.report = reader.report().clone();
        self.summary.bytes = reader.position();
        slices.finish(&mut self.pairs).map_err(Error::Scratch)?;
        self.check()?;
        self.settle(slices.keys_mut()).map_err(Error::Sink)?;
        self.summary.left_out.add_many(NAMES, slices.keys().left_out());
        self.finish().map_err(Error::Sink)?;
        Ok(self.summary)
    }

    /// Whether one reading is still enough.
    fn check(&self) -> Result<(), Error> {
        let changes = |(defect, _): &(Defect, _)| matches!(defect, Defect::Late | Defect::AfterInner);
        let defects = self.pairs.defects.iter().zip(DEFECTS);
        let is_late = defects.filter(|(_, what)| changes(what)).any(|(count, _)| *count > 0);
        if self.at_once && (is_late || self.renamed > 0) { Err(Error::NotAtOnce) } else { Ok(()) }
    }

    fn all(
        &mut self,
        reader: &mut dyn TraceReader,
        mut choice: Option<Box<dyn Choice>>,
        slices: &mut Slices,
    ) -> Result<(), Error> {
        let (mut context, mut briefs) = (Context::new(), Vec::with_capacity(MOST_BRIEF));
        let takes_briefs = self.wanted.takes_briefs();
        let is_hashed = !(self.at_once || self.is_surveyed && takes_briefs);
        loop {
            if takes_briefs && choice.is_none() && (!is_hashed || self.summary.facts.uuid.is_some()) {
                reader.briefs(BriefUse::Counting, &mut context, &mut briefs);
                let first = self.count(briefs.len()).ok_or(Error::TooManyEvents)?;
                for brief in &briefs {
                    self.summary.facts.event(brief.time, brief.time);
                }
                if self.wanted.has_table(TableId::Slice) {
                    if self.wanted.has_numbers() {
                        slices.tagged_briefs(&briefs, first, &context.strings, &mut self.pairs);
                    } else {
                        slices.briefs(&briefs, &context.strings, &mut self.pairs);
                    }
                }
                self.settle_enough(slices)?;
                if briefs.len() == MOST_BRIEF {
                    continue;
                }
            }
            if !takes_briefs && choice.is_none() {
                reader.briefs(BriefUse::Writing, &mut context, &mut briefs);
                for event in briefs.iter().filter_map(|brief| brief.event(&context.strings)) {
                    let item = Item::Event(event);
                    self.hash(&item, is_hashed);
                    self.item(&item, slices)?;
                    self.settle_enough(slices)?;
                }
                if briefs.len() == MOST_BRIEF {
                    continue;
                }
            }
            match reader.next(&mut context) {
                // By reference, because an item is large.
                Ok(Some(ref item)) => {
                    self.hash(item, is_hashed);
                    match &mut choice {
                        None => self.item(item, slices)?,
                        Some(choice) => self.chosen(slices, |pass| choice.item(item, pass))?,
                    }
                }
                Ok(None) => break,
                Err(e) if e.is_truncated() => {
                    self.summary.stopped = Some(e);
                    break;
                }
                Err(e) => return Err(Error::Read(e)),
            }
            self.settle_enough(slices)?;
        }
        if let Some(mut choice) = choice {
            self.chosen(slices, |pass| choice.finish(pass))?;
            self.summary.left_out.add_all(&choice.left_out());
        }
        Ok(())
    }

    #[inline]
    fn hash(&mut self, item: &Item<'_>, is_hashed: bool) {
        if is_hashed && self.summary.facts.uuid.is_none() {
            self.content.item(item);
        }
    }

    /// Takes the items that are passed on.
    fn chosen(
        &mut self,
        slices: &mut Slices,
        choose: impl FnOnce(&mut dyn FnMut(&Item<'_>)),
    ) -> Result<(), Error> {
        let mut taken = Ok(());
        choose(&mut |item| {
            if taken.is_ok() {
                taken = self.item(item, slices);
            }
        });
        taken
    }

    /// Numbers so many events. Returns the number of the first one; `None` if there are too many.
    fn count(&mut self, events: usize) -> Option<u32> {
        let first = self.number.saturating_add(1);
        self.number = u32::try_from(events).ok().and_then(|events| self.number.checked_add(events))?;
        Some(first)
    }

    fn settle_enough(&mut self, slices: &mut Slices) -> Result<(), Error> {
        if !self.pairs.is_enough() {
            return Ok(());
        }
        self.check()?;
        self.settle(slices.keys_mut()).map_err(Error::Sink)
    }

    #[inline]
    fn item(&mut self, item: &Item<'_>, slices: &mut Slices) -> Result<(), Error> {
        match item {
            Item::Event(event) => {
                let is_complete = matches!(event.kind, EventKind::Complete { .. });
                if self.at_once && is_complete && !slices.has_intervals(event.track) {
                    return Err(Error::NotAtOnce); // it may lie around slices that are rows already
                }
                let number = self.count(1).ok_or(Error::TooManyEvents)?;
                return self.event(event, number, slices).map_err(Error::Sink);
            }
            Item::Track(track) => {
                slices.item(item, &mut self.pairs); // as in the first reading: is it a thread's?
                if !self.is_surveyed {
                    self.settle(slices.keys_mut()).map_err(Error::Sink)?; // by the earlier description
                    self.tables.iter_mut().for_each(Rows::end_repeats);
                    self.renamed += u64::from(self.number > 0 && self.owners.is_changed_by(track));
                    self.owners.set(track);
                }
            }
            Item::Scheduling(scheduling) => {
                self.summary.left_out.add_many(Scheduling::OTHERS, scheduling.others);
                if !self.is_surveyed {
                    self.timeline.add(scheduling);
                }
            }
            Item::Sample(_) | Item::Symbols(_) if !self.is_surveyed => self.samples.item(item),
            Item::Foreign { what, .. } => self.summary.left_out.add(what),
            item => self.summary.facts.item(item),
        }
        Ok(())
    }

    /// Makes rows of what is complete.
    fn settle(&mut self, keys: &mut Keys) -> io::Result<()> {
        let mut pairs = std::mem::take(&mut self.pairs);
        let result = self.put(&pairs, keys);
        pairs.slices.clear();
        pairs.points.clear();
        pairs.ends.clear();
        self.pairs = pairs;
        result
    }

    /// Whether categories pass the filter.
    #[inline]
    pub(crate) fn passes(&mut self, category: Key, keys: &Keys) -> bool {
        if !self.wanted.has_filter() {
            return true;
        }
        while self.passes.len() <= category.0 as usize {
            let next = Key(self.passes.len() as u32); // the number of a key
            self.passes.push(self.wanted.passes(keys.text(next)));
        }
        self.passes[category.0 as usize]
    }

    /// Makes the rows of the trace as a whole.
    fn finish(&mut self) -> io::Result<()> {
        if !self.is_surveyed {
            self.timeline.finish();
            self.samples.finish();
            self.owners.finish();
        }
        self.to_next.finish(&mut self.flows);
        let Self { tables, owners, sink, .. } = self;
        let [_, _, _, flow, _, threads, processes, sched, sample, _] = &mut *tables;
        self.flows.finish(flow, *sink)?;
        if threads.is_wanted() {
            about::put_threads(owners, threads, *sink)?;
        }
        if processes.is_wanted() {
            about::put_processes(owners, processes, *sink)?;
        }
        if sched.is_wanted() {
            states::put_states(&self.timeline, owners, sched, *sink)?;
        }
        if sample.is_wanted() {
            states::put_samples(&self.samples, owners, sample, *sink)?;
        }
        let facts = &mut self.summary.facts;
        facts.content = if facts.uuid.is_none() && !self.at_once { self.content.value() } else { 0 };
        (facts.events, facts.executable) = (u64::from(self.number), owners.first_process_name());
        let left_out = &mut self.summary.left_out;
        for (count, (_, what)) in self.pairs.defects.iter().zip(DEFECTS) {
            left_out.add_defects(what, *count);
        }
        let late = self.pairs.defects.iter().zip(DEFECTS).filter(|(_, (defect, _))| *defect == Defect::Late);
        self.summary.late = late.map(|(count, _)| *count).sum();
        left_out.add_many("ends with arguments or flows, but without a begin", self.late_ends.len() as u64);
        left_out.add_many("steps of flows that lead to no arrow", self.flows.loose);
        left_out.add_many("steps of flows for which there is no memory", self.flows.left_out);
        left_out.add_many("changes of thread states for which there is no memory", self.timeline.left_out());
        left_out.add_many("stack samples for which there is no memory", self.samples.left_out);
        left_out
            .add_many("texts longer than 1 MiB, and nested names longer than 1 KiB, cut", tables_cut(tables));
        left_out.add_many("names that came after events, which rows before them do not have", self.renamed);
        if !self.timeline.threads().is_empty() {
            left_out.add_many(UNDIVIDED, self.undivided);
        }
        if tables[TableId::Trace as usize].is_wanted() {
            about::put_trace(&self.summary, &self.samples, &mut tables[TableId::Trace as usize], *sink)?;
        }
        for (rows, all) in tables.iter_mut().zip(&mut self.summary.rows) {
            rows.flush(*sink)?;
            *all = rows.all;
        }
        Ok(())
    }
}

fn tables_cut(tables: &[Rows]) -> u64 {
    tables.iter().map(|rows| rows.cut).sum()
}
