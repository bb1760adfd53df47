//! Events to rows of `slice`, `instant`, `counter`, `arg` and steps of `flow`.

use std::io;
use std::ops::Range;

use hairline_convert::slices::{Keys, Slices};
use hairline_convert::timeline::Timeline;
use hairline_convert::{Event, EventKind, FlowStep, TrackId, TrackKind};
use hairline_formats::track_event::{CounterValue, Unit};

use crate::args::{self, ArgOwner};
use crate::flows::Change;
use crate::owners::{OwnerColumns, Owners, owner_columns};
use crate::pairs::{DoneEnd, DonePoint, DoneSlice, Pairs};
use crate::reading::Reading;
use crate::rows::Rows;
use crate::schema::{TableId, counter, instant, slice};
use crate::waiting::{FlowPoint, LateEnd, MOST_LATE, MOST_POINTS};

impl Reading<'_> {
    /// Adds an event with this number.
    #[inline]
    pub(crate) fn event(&mut self, event: &Event<'_>, number: u32, slices: &mut Slices) -> io::Result<()> {
        let end = match event.kind {
            EventKind::Complete { duration } => event.time.saturating_add(duration.max(0)),
            _ => event.time,
        };
        self.summary.facts.event(event.time, end);
        if self.wanted.takes_briefs() && !self.wanted.has_table(TableId::Slice) {
            return Ok(()); // the builder of slices has not seen the events in brief either
        }
        match event.kind {
            EventKind::Counter(value) => self.counter(event.track, event.time, value)?,
            EventKind::End => self.end(event, number, slices),
            EventKind::Flow { id, step, to_next, lasts } => {
                let change = Change::of(step, lasts);
                let point = FlowPoint { flow: id, time: event.time, event: number, change };
                self.flow_event(event, point, to_next, slices);
            }
            EventKind::Instant => {
                self.summary.facts.losses_by_reason(event);
                self.begin(event, TableId::Instant, number, slices)?;
            }
            _ => self.begin(event, TableId::Slice, number, slices)?,
        }
        for (track, value, passed) in event.counter_values() {
            self.counter(track, event.time.saturating_add(passed), value)?;
        }
        Ok(())
    }

    /// A begin, a complete slice or an instant.
    fn begin(
        &mut self,
        event: &Event<'_>,
        table: TableId,
        number: u32,
        slices: &mut Slices,
    ) -> io::Result<()> {
        if table == TableId::Slice || self.wanted.has_table(TableId::Instant) {
            slices.tagged(event, number, &mut self.pairs);
        }
        let (wants_args, wants_flows) =
            (self.tables[TableId::Arg as usize].is_wanted(), self.tables[TableId::Flow as usize].is_wanted());
        let has_args = wants_args && (event.details.is_some() || !event.args.is_empty());
        let is_next = self.to_next.has(event.track);
        let has_flows = wants_flows && (event.details.is_some() || is_next);
        if !has_args && !has_flows {
            return Ok(());
        }
        let category = slices.keys_mut().categories(&event.categories);
        let is_chosen = self.passes(category, slices.keys());
        if has_args && is_chosen {
            let owner = ArgOwner { time: event.time, table, id: number };
            args::put_all(event, owner, &mut self.tables[TableId::Arg as usize], self.sink)?;
        }
        if has_flows {
            if is_next {
                self.to_next.begins(event.track, (event.time, number), is_chosen);
            }
            for point in flow_points(event, number) {
                self.flows.add(point.at(number, is_chosen));
            }
        }
        Ok(())
    }

    fn end(&mut self, event: &Event<'_>, number: u32, slices: &mut Slices) {
        let mut late = LateEnd::default();
        if self.tables[TableId::Arg as usize].is_wanted() {
            let room = MOST_LATE.saturating_sub(self.late_bytes);
            let Some(leaves) = args::leaves(event, room, &mut self.tables[TableId::Arg as usize].cut) else {
                self.summary.left_out.add("ends whose arguments and flows have no memory");
                return slices.tagged(event, 0, &mut self.pairs);
            };
            late.leaves = leaves;
        }
        if event.details.is_some() && self.tables[TableId::Flow as usize].is_wanted() {
            late.flows = flow_points(event, number);
        }
        if late.leaves.is_empty() && late.flows.is_empty() {
            return slices.tagged(event, 0, &mut self.pairs);
        }
        let bytes = late.bytes();
        if self.late_bytes.saturating_add(bytes) > MOST_LATE {
            self.summary.left_out.add("ends whose arguments and flows have no memory");
            return slices.tagged(event, 0, &mut self.pairs);
        }
        self.late_bytes += bytes;
        self.late_ends.insert(number, late);
        slices.tagged(event, number, &mut self.pairs);
    }

    fn flow_event(&mut self, event: &Event<'_>, point: FlowPoint, to_next: bool, slices: &mut Slices) {
        if !self.tables[TableId::Flow as usize].is_wanted() {
            return;
        }
        if to_next {
            if !self.is_surveyed {
                self.to_next.add(event.track, point);
            }
        } else if self.flow_points.len() >= MOST_POINTS {
            self.flows.left_out += 1;
        } else {
            self.flow_points.insert(point.event, point);
            slices.tagged(event, point.event, &mut self.pairs);
        }
    }

    fn counter(&mut self, track: TrackId, time: i64, value: CounterValue) -> io::Result<()> {
        let rows = &mut self.tables[TableId::Counter as usize];
        if !rows.is_wanted() {
            return Ok(());
        }
        put_counter(track, time, value, rows, &self.owners);
        rows.end_row(self.sink)
    }

    /// Makes rows of what is complete.
    pub(crate) fn put(&mut self, pairs: &Pairs, keys: &Keys) -> io::Result<()> {
        for end in &pairs.ends {
            self.put_end(end, keys)?;
        }
        for point in &pairs.points {
            self.put_point(point, keys)?;
        }
        if !self.wanted.has_table(TableId::Slice) {
            return Ok(());
        }
        for done in &pairs.slices {
            if self.passes(done.slice.category, keys) {
                let rows = &mut self.tables[TableId::Slice as usize];
                // Else states of the thread may still come.
                let timeline = self.is_surveyed.then_some(&self.timeline);
                put_slice(done, rows, keys, &self.owners, timeline);
                let is_divided = rows.has(slice::running) || rows.has(slice::waiting);
                self.undivided += u64::from(is_divided && timeline.is_none());
                rows.end_row(self.sink)?;
            }
        }
        Ok(())
    }

    fn put_end(&mut self, end: &DoneEnd, keys: &Keys) -> io::Result<()> {
        let Some(late) = self.late_ends.remove(&end.end) else { return Ok(()) };
        self.late_bytes -= late.bytes();
        let is_chosen = self.passes(end.category, keys);
        if is_chosen {
            let owner = ArgOwner { time: end.start, table: TableId::Slice, id: end.slice };
            let rows = &mut self.tables[TableId::Arg as usize];
            late.leaves.iter().try_for_each(|leaf| leaf.put(owner, rows, self.sink))?;
        }
        late.flows.iter().for_each(|point| self.flows.add(point.at(end.slice, is_chosen)));
        Ok(())
    }

    fn put_point(&mut self, done: &DonePoint, keys: &Keys) -> io::Result<()> {
        let DonePoint { point, depth, parent, parent_category } = *done;
        if let Some(flow) = self.flow_points.remove(&point.tag) {
            if parent == 0 {
                self.flows.loose += 1;
            } else {
                let is_chosen = self.passes(parent_category, keys);
                self.flows.add(flow.at(parent, is_chosen));
            }
            return Ok(());
        }
        if !self.wanted.has_table(TableId::Instant) || !self.passes(point.category, keys) {
            return Ok(());
        }
        let rows = &mut self.tables[TableId::Instant as usize];
        rows.int(instant::id, i64::from(point.tag));
        rows.int(instant::time, point.time);
        rows.int(instant::depth, i64::from(depth));
        rows.opt_int(instant::parent, (parent != 0).then_some(i64::from(parent)));
        rows.keyed(instant::category, point.category.0, || keys.text(point.category));
        rows.keyed(instant::name, point.name.0, || keys.text(point.name));
        if !rows.repeats(point.track.0, &INSTANT_TRACK) {
            rows.int(instant::track, i64::from(point.track.0));
            let owner = self.owners.of(point.track);
            self.owners.put_track_name(point.track, owner, rows, instant::track_name);
            self.owners.put(owner, rows, &INSTANT_OWNER);
        }
        rows.end_row(self.sink)
    }
}

/// The steps of flows that an event lists.
fn flow_points(event: &Event<'_>, number: u32) -> Vec<FlowPoint> {
    let details = event.details();
    let step = |flow: u64, change| FlowPoint { flow, time: event.time, event: number, change };
    let through = details.flows.iter().map(|flow| step(*flow, Change::Through));
    let ending = details.ending_flows.iter().map(|flow| step(*flow, Change::End));
    let bound = details.bound.map(|(flow, at)| {
        step(flow, if at == FlowStep::Begin { Change::Begin } else { Change::of(at, true) })
    });
    through.chain(ending).chain(bound).collect()
}

const SLICE_OWNER: OwnerColumns = owner_columns!(slice);
const INSTANT_OWNER: OwnerColumns = owner_columns!(instant);
const COUNTER_OWNER: OwnerColumns = owner_columns!(counter);

// The columns that say the same in all rows of a track.
const SLICE_TRACK: Range<usize> = slice::track..slice::process_name + 1;
const INSTANT_TRACK: Range<usize> = instant::track..instant::process_name + 1;
const COUNTER_TRACK: Range<usize> = counter::name..counter::process_name + 1;

fn put_slice(done: &DoneSlice, rows: &mut Rows, keys: &Keys, owners: &Owners, timeline: Option<&Timeline>) {
    let DoneSlice { slice: it, depth, parent, is_open } = *done;
    let known = |value: i64| (!is_open).then_some(value);
    rows.int(slice::id, i64::from(it.tag));
    rows.int(slice::start, it.start);
    rows.opt_int(slice::duration, known(it.duration));
    rows.opt_int(slice::self_time, known(it.self_time));
    rows.int(slice::depth, i64::from(depth));
    rows.opt_int(slice::parent, (parent != 0).then_some(i64::from(parent)));
    rows.keyed(slice::category, it.category.0, || keys.text(it.category));
    rows.keyed(slice::name, it.name.0, || keys.text(it.name));
    if !rows.repeats(it.track.0, &SLICE_TRACK) {
        rows.int(slice::track, i64::from(it.track.0));
        let owner = owners.of(it.track);
        owners.put_track_name(it.track, owner, rows, slice::track_name);
        owners.put(owner, rows, &SLICE_OWNER);
    }
    if rows.has(slice::running) || rows.has(slice::waiting) {
        let tid = owners.own_tid(it.track).filter(|_| !is_open);
        let known = timeline.zip(tid).filter(|(timeline, tid)| timeline.has(*tid));
        let end = it.start.saturating_add(it.duration);
        let split = known.map(|(timeline, tid)| timeline.split(tid, it.start, end));
        let split = split.filter(|split| split.unknown == 0);
        rows.opt_int(slice::running, split.map(|split| split.running));
        rows.opt_int(slice::waiting, split.map(|split| split.waiting));
    }
}

fn put_counter(track: TrackId, time: i64, value: CounterValue, rows: &mut Rows, owners: &Owners) {
    let about = match owners.kind(track.0) {
        Some(TrackKind::Counter(about)) => Some(about),
        _ => None,
    };
    #[allow(clippy::cast_precision_loss)] // as in trace_processor, whose values are all floating point
    let value = match value {
        CounterValue::Int(value) => value as f64,
        CounterValue::Double(value) => value,
    };
    #[allow(clippy::cast_precision_loss)]
    let multiplier = about.map_or(1.0, |about| about.multiplier as f64);
    rows.int(counter::time, time);
    rows.opt_float(counter::value, Some(value * multiplier));
    if rows.repeats(track.0, &COUNTER_TRACK) {
        return;
    }
    rows.keyed(counter::name, track.0, || owners.name(track.0));
    rows.keyed(counter::series, track.0, || about.map_or("", |about| &about.series));
    rows.keyed(counter::unit, track.0, || match about {
        Some(about) if !about.unit_name.is_empty() => &about.unit_name,
        Some(about) => match about.unit {
            Unit::TimeNs => "ns",
            Unit::Count => "count",
            Unit::SizeBytes => "bytes",
            _ => "",
        },
        None => "",
    });
    rows.int(counter::track, i64::from(track.0));
    let owner = owners.of(track);
    owners.put(owner, rows, &COUNTER_OWNER);
}
