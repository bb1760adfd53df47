//! The second reading of a trace: makes rows.

use std::fs::File;
use std::io;

use hairline_convert::slices::{Key, Keys, Slices};
use hairline_convert::timeline::Timeline;
use hairline_convert::{BriefUse, Context, Event, EventKind, Item, MOST_BRIEF, TraceReader};

use crate::owners::{OwnerColumns, Owners, owner_columns};
use crate::pairs::{DEFECTS, DoneSlice, Pairs};
use crate::rows::Rows;
use crate::schema::{TABLES, TableId, slice};
use crate::survey::Survey;
use crate::wanted::Wanted;
use crate::{Error, Facts, Sink, Source, Summary};

/// Makes rows of a trace.
pub(crate) struct Reading<'a> {
    pub(crate) wanted: &'a Wanted,
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) tables: [Rows; TABLES.len()],
    pub(crate) owners: Owners,
    /// Whether the descriptions of all tracks are known from the first reading.
    is_surveyed: bool,
    pub(crate) timeline: Timeline,
    pairs: Pairs,
    /// The number of the latest event, from 1.
    number: u32,
    pub(crate) summary: Summary,
    /// Whether the categories pass the filter, by key.
    passes: Vec<bool>,
}

/// See [`read`](crate::read).
pub(crate) fn read(
    source: &mut dyn Source,
    wanted: &Wanted,
    scratch: fn() -> io::Result<File>,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let survey = source.is_repeatable().then(|| Survey::read(source)).transpose()?;
    let (is_surveyed, survey) = (survey.is_some(), survey.unwrap_or_default());
    let mut slices = if survey.is_late { Slices::in_order(scratch) } else { Slices::new() };
    survey.intervals.iter().for_each(|track| slices.expect_intervals(*track));
    let mut reading = Reading {
        wanted,
        sink,
        tables: TableId::ALL.map(|table| Rows::new(table, wanted)),
        owners: survey.owners,
        is_surveyed,
        timeline: survey.timeline,
        pairs: Pairs::default(),
        number: 0,
        summary: Summary::default(),
        passes: Vec::new(),
    };
    let mut reader = source.open().map_err(Error::Read)?;
    reading.all(&mut *reader, &mut slices)?;
    reading.summary.report = reader.report().clone();
    reading.summary.bytes = reader.position();
    slices.finish(&mut reading.pairs).map_err(Error::Scratch)?;
    reading.settle(slices.keys_mut()).and_then(|()| reading.finish()).map_err(Error::Sink)?;
    Ok(reading.summary)
}

impl Reading<'_> {
    fn all(&mut self, reader: &mut dyn TraceReader, slices: &mut Slices) -> Result<(), Error> {
        let (mut context, mut briefs) = (Context::new(), Vec::with_capacity(MOST_BRIEF));
        let takes_briefs = self.takes_briefs();
        loop {
            if takes_briefs {
                reader.briefs(BriefUse::Counting, &mut context, &mut briefs);
                slices.tagged_briefs(&briefs, self.number.saturating_add(1), &context.strings, &mut self.pairs);
                self.number = self.number.saturating_add(briefs.len() as u32);
                self.settle_enough(slices)?;
                if briefs.len() == MOST_BRIEF {
                    continue;
                }
            }
            match reader.next(&mut context) {
                // By reference, because an item is large.
                Ok(Some(ref item)) => self.item(item, slices).map_err(Error::Sink)?,
                Ok(None) => return Ok(()),
                Err(e) if e.is_truncated() => {
                    self.summary.stopped = Some(e);
                    return Ok(());
                }
                Err(e) => return Err(Error::Read(e)),
            }
            self.settle_enough(slices)?;
        }
    }

    /// Whether nothing is wanted that events in brief do not say.
    fn takes_briefs(&self) -> bool {
        let others = [TableId::Instant, TableId::Counter, TableId::Flow, TableId::Arg, TableId::Trace];
        others.iter().all(|table| !self.wanted.has_table(*table))
    }

    fn settle_enough(&mut self, slices: &mut Slices) -> Result<(), Error> {
        if self.pairs.is_enough() { self.settle(slices.keys_mut()).map_err(Error::Sink) } else { Ok(()) }
    }

    fn item(&mut self, item: &Item<'_>, slices: &mut Slices) -> io::Result<()> {
        match item {
            Item::Event(event) => self.event(event, slices)?,
            Item::Track(track) if !self.is_surveyed => {
                self.settle(slices.keys_mut())?; // by the earlier description
                self.owners.set(track);
            }
            _ => {}
        }
        Ok(())
    }

    fn event(&mut self, event: &Event<'_>, slices: &mut Slices) -> io::Result<()> {
        self.number = self.number.checked_add(1).ok_or_else(too_many)?;
        match event.kind {
            EventKind::Counter(_) => {}
            _ => slices.tagged(event, self.number, &mut self.pairs),
        }
        Ok(())
    }

    /// Makes rows of what is complete.
    fn settle(&mut self, keys: &mut Keys) -> io::Result<()> {
        if self.wanted.has_filter() {
            while self.passes.len() < keys.len() {
                let categories = keys.text(Key(self.passes.len() as u32)); // the number of a key
                self.passes.push(self.wanted.passes(categories));
            }
        }
        let mut pairs = std::mem::take(&mut self.pairs);
        if self.wanted.has_table(TableId::Slice) {
            let chosen = pairs.slices.iter().filter(|done| passes(&self.passes, done.slice.category));
            let rows = &mut self.tables[TableId::Slice as usize];
            for done in chosen {
                put_slice(done, rows, keys, &self.owners, &self.timeline);
                rows.end_row(self.sink)?;
            }
        }
        pairs.slices.clear();
        pairs.points.clear();
        pairs.ends.clear();
        self.pairs = pairs;
        Ok(())
    }

    /// Makes the rows of the trace as a whole.
    fn finish(&mut self) -> io::Result<()> {
        for (count, (_, what)) in self.pairs.defects.iter().zip(DEFECTS) {
            self.summary.left_out.add_defects(what, *count);
        }
        for (rows, all) in self.tables.iter_mut().zip(&mut self.summary.rows) {
            rows.flush(self.sink)?;
            *all = rows.all;
        }
        self.summary.facts = Facts { events: u64::from(self.number), ..self.summary.facts.clone() };
        Ok(())
    }
}

fn too_many() -> io::Error {
    io::Error::other("the trace has more than 4,294,967,295 events: cut it into parts")
}

/// Whether a category passes the filter.
fn passes(passes: &[bool], category: Key) -> bool {
    passes.get(category.0 as usize).is_none_or(|passes| *passes)
}

const SLICE_OWNER: OwnerColumns = owner_columns!(slice);

fn put_slice(done: &DoneSlice, rows: &mut Rows, keys: &Keys, owners: &Owners, timeline: &Timeline) {
    let DoneSlice { slice: it, depth, parent, is_open } = done;
    let known = |value: i64| (!is_open).then_some(value);
    rows.int(slice::id, i64::from(it.tag));
    rows.int(slice::start, it.start);
    rows.opt_int(slice::duration, known(it.duration));
    rows.opt_int(slice::self_time, known(it.self_time));
    rows.int(slice::depth, i64::from(*depth));
    rows.opt_int(slice::parent, (*parent != 0).then_some(i64::from(*parent)));
    rows.keyed(slice::category, it.category.0, || keys.text(it.category));
    rows.keyed(slice::name, it.name.0, || keys.text(it.name));
    rows.int(slice::track, i64::from(it.track.0));
    let owner = owners.of(it.track);
    owners.put_track_name(it.track, owner, rows, slice::track_name);
    owners.put(owner, rows, &SLICE_OWNER);
    if rows.has(slice::running) || rows.has(slice::waiting) {
        let tid = owners.own_tid(it.track).filter(|tid| !is_open && timeline.has(*tid));
        let split = tid.map(|tid| timeline.split(tid, it.start, it.start.saturating_add(it.duration)));
        let split = split.filter(|split| split.unknown == 0);
        rows.opt_int(slice::running, split.map(|split| split.running));
        rows.opt_int(slice::waiting, split.map(|split| split.waiting));
    }
}
