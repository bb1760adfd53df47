//! Counts all items in one pass.

use std::collections::HashSet;
use std::io;

use hairline::Filter;
use hairline_convert::slices::{Defect, Frame, Key, Keys, Slice, SliceSink, Slices};
use hairline_convert::timeline::{Split, Timeline};
use hairline_convert::{
    BriefEvent, BriefKind, ByTrack, Detailed, Event, EventKind, Item, MOST_BRIEF, Strings, Track, TrackId,
};

use crate::inside::Inside;
use crate::remark::is_remark;
use crate::stats::counters::Counters;
use crate::stats::far_apart::FarApart;
use crate::stats::groups::Groups;
use crate::stats::named::Named;
use crate::stats::rows::Rows;
use crate::thread_times::ThreadTimes;
use crate::trace::ItemVisitor;
use crate::track_names::TrackNames;

/// Totals of the trace.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) events: u64,
    pub(crate) slices: u64,
    pub(crate) open_slices: u64,
    /// Slices that began while too many were open.
    pub(crate) left_out: u64,
    /// Slices without duration that only carry the flow of an instant or an interval, as FXT needs them. They
    /// are no part of the tables.
    pub(crate) carriers: u64,
    pub(crate) instants: u64,
    pub(crate) counter_values: u64,
    pub(crate) flow_points: u64,
    /// Records that no other format can express.
    pub(crate) foreign: u64,
    /// The number of places with missing events, and the known number of these events.
    pub(crate) losses: u64,
    pub(crate) lost_events: u64,
    pub(crate) first: Option<i64>,
    pub(crate) last: Option<i64>,
    pub(crate) far_apart: FarApart,
}

impl Totals {
    /// The time from the first event to the last.
    pub(crate) fn span(&self) -> i64 {
        self.last.unwrap_or_default().saturating_sub(self.first.unwrap_or_default())
    }
}

/// All counts.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) totals: Totals,
    /// Slices on threads, by name and by category.
    pub(crate) names: Rows,
    pub(crate) categories: Rows,
    /// Slices on other tracks, by name. Apart from those on threads: the life of a task has its polls in it.
    pub(crate) intervals: Rows,
    pub(crate) threads: Rows,
    /// Other tracks, those of one name and process together.
    pub(crate) tracks: Rows,
    pub(crate) groups: Groups,
    pub(crate) counters: Counters,
    /// The states and samples of all threads, with and without slices.
    pub(crate) states: Vec<ThreadTimes>,
    /// Whether the rows have the time in which threads ran and waited.
    pub(crate) has_scheduling: bool,
    /// Whether events came too late to be put in order, so that the numbers are not true.
    pub(crate) is_untrue: bool,
}

impl Gathered {
    /// Adds the threads. The trace of a program without slices lasts as long as its threads have states:
    /// `span`.
    pub(super) fn add_states(&mut self, states: Vec<ThreadTimes>, span: Option<(i64, i64)>) {
        self.states = states;
        if let (None, Some((first, last))) = (self.totals.first, span) {
            (self.totals.first, self.totals.last) = (Some(first), Some(last));
        }
    }
}

/// Counts items.
#[derive(Default)]
pub(crate) struct Gather {
    slices: Slices,
    counting: Counting,
    counters: Counters,
}

#[derive(Default)]
struct Counting {
    gathered: Gathered,
    /// The slices on threads, by name and by category.
    named: Named,
    filter: Option<Filter>,
    /// Whether a category passes the filter, by key.
    wanted: Vec<bool>,
    since: Option<i64>,
    track_names: TrackNames,
    groups: Groups,
    /// What is inside of slices on other tracks.
    inside: Inside,
    /// What the scheduler did, from an earlier reading, and the thread of each track.
    timeline: Option<Timeline>,
    tids: ByTrack<Option<u64>>,
    /// Slices whose thread's changes are still to come, if the timeline grows with the trace.
    unsplit: Option<Vec<Slice>>,
    /// Whether an event came too late to be put in order.
    is_late: bool,
    /// Slices that are not in the tables yet.
    pending: Vec<Slice>,
    /// The outermost slices of threads that have no end.
    open: Vec<Slice>,
    /// The thread and the time of the latest flow point; and those of all, if the events are sorted first.
    flow: Option<(TrackId, i64)>,
    flows: Option<HashSet<(TrackId, i64)>>,
}

/// The number of slices counted together. Each slice updates cells that the previous one did not touch. In a
/// batch the processor fetches several of them at once, which is three times as fast.
const BATCH: usize = 256;

/// The limit for slices that wait for the changes of their threads, 64 bytes each. Further ones have no times
/// running and waiting.
const MOST_UNSPLIT: usize = 1 << 20;

/// The limit for places of flow points, if the events are sorted first; 32 MiB.
const MOST_FLOWS: usize = 1 << 20;

/// How long a growing trace's changes are kept, in nanoseconds: longer than most slices.
const REMEMBERED: i64 = 60_000_000_000;

impl Gather {
    /// Counts only slices whose category passes the filter.
    pub(crate) fn new(filter: Option<Filter>) -> Self {
        Self { counting: Counting { filter, ..Counting::default() }, ..Self::default() }
    }

    /// Sorts all events first, for a trace whose counts are not [true](Gathered::is_untrue).
    pub(crate) fn in_order(filter: Option<Filter>) -> Self {
        let mut gather = Self { slices: Slices::in_order(tempfile::tempfile), ..Self::new(filter) };
        gather.counting.flows = Some(HashSet::new());
        gather
    }

    /// Counts only slices that end after `time`.
    pub(crate) fn since(&mut self, time: Option<i64>) {
        self.counting.since = time;
    }

    /// Adds up the time in which the threads of slices ran and waited. `earlier`: the tracks, from the same
    /// reading as the timeline.
    #[must_use]
    pub(crate) fn with_timeline(mut self, timeline: Timeline, earlier: &TrackNames) -> Self {
        self.counting.timeline = Some(timeline);
        self.counting.track_names.know_shared(earlier);
        self
    }

    /// As `with_timeline`, for a trace whose scheduling is not known before.
    #[must_use]
    pub(crate) fn with_live_timeline(mut self) -> Self {
        self.counting.timeline = Some(Timeline::default());
        self.counting.unsplit = Some(Vec::new());
        self
    }

    /// Returns and clears the counts, with a copy of the keys.
    pub(crate) fn take(&mut self) -> (Gathered, Keys) {
        self.counting.settle();
        self.counting.split_live();
        self.counting.name();
        (std::mem::take(&mut self.counting.gathered), self.slices.keys().clone())
    }

    /// Ends the trace, and returns the counts.
    ///
    /// # Errors
    /// Fails only if it sorts, and the temporary file cannot be written or read.
    pub(crate) fn finish(mut self) -> io::Result<(Gathered, Keys, TrackNames)> {
        self.slices.finish(&mut self.counting)?;
        self.counting.settle();
        self.counting.add_open();
        let is_empty = self.counting.timeline.as_ref().is_none_or(Timeline::is_empty);
        self.counting.split_live();
        self.counting.name();
        self.counting.gathered.groups = self.counting.groups;
        self.counting.gathered.counters = self.counters;
        self.counting.gathered.is_untrue = self.counting.is_late;
        self.counting.gathered.has_scheduling = !is_empty;
        Ok((self.counting.gathered, self.slices.into_keys(), self.counting.track_names))
    }
}

impl Gather {
    /// Decides about categories that are new.
    fn sift(&mut self) {
        if let Some(filter) = &self.counting.filter {
            let (keys, wanted) = (self.slices.keys(), &mut self.counting.wanted);
            while wanted.len() < keys.len() {
                let categories = keys.text(Key(wanted.len() as u32)); // the number of a key
                wanted.push(categories.split(',').any(|category| filter.matches(category)));
            }
        }
    }
}

impl ItemVisitor for Gather {
    const TAKES_BRIEFS: bool = true;

    fn briefs(&mut self, briefs: &[BriefEvent], strings: &Strings) {
        // A filter decides about a category before the end of its first slice.
        let at_once = if self.counting.filter.is_some() { 1 } else { MOST_BRIEF };
        for briefs in briefs.chunks(at_once) {
            self.slices.briefs(briefs, strings, &mut self.counting);
            self.sift();
        }
        let totals = &mut self.counting.gathered.totals;
        let before = totals.counter_values;
        totals.briefs(briefs, strings);
        if totals.counter_values > before {
            for brief in briefs {
                if let Some(value) = brief.value() {
                    self.counters.add(brief.track, brief.time, value);
                }
            }
        }
    }

    fn spans(&mut self, first: i64, last: i64) {
        let totals = &mut self.counting.gathered.totals;
        (totals.first, totals.last) = (Some(first), Some(last));
        self.slices.lasts_to(last);
    }

    fn item(&mut self, item: &Item<'_>) {
        self.slices.item(item, &mut self.counting);
        self.sift();
        let gathered = &mut self.counting.gathered;
        match item {
            Item::Event(event) => {
                gathered.totals.event(event);
                self.counters.event(event);
                if matches!(event.kind, EventKind::Flow { .. }) {
                    self.counting.add_flow((event.track, event.time));
                }
            }
            Item::Track(track) => {
                self.counters.set(track);
                self.counting.set_track(track);
            }
            Item::Loss(loss) => {
                gathered.totals.losses += 1;
                gathered.totals.lost_events = gathered.totals.lost_events.saturating_add(loss.events);
            }
            Item::Foreign { .. } => gathered.totals.foreign += 1,
            Item::Scheduling(scheduling) => {
                if let (Some(timeline), Some(_)) = (&mut self.counting.timeline, &self.counting.unsplit) {
                    timeline.add(scheduling);
                }
            }
            _ => {}
        }
    }
}

/// Adds the time in which the threads of slices ran and waited.
fn split(
    (named, threads): (&mut Named, &mut Rows),
    slices: &[Slice],
    timeline: &Timeline,
    tids: &ByTrack<Option<u64>>,
) {
    for slice in slices {
        let Some(tid) = tids.get(slice.track).copied().flatten() else { continue };
        let split = timeline.split(tid, slice.start, slice.start.saturating_add(slice.duration));
        named.add_split(slice, &split);
        // A thread is busy in its outermost slices only, and once where they overlap.
        if slice.busy == slice.duration && slice.busy > 0 {
            threads.add_split(slice.track.0, &split);
        } else if slice.busy > 0 {
            threads.add_split(slice.track.0, &busy_split(slice, tid, timeline));
        }
    }
}

/// The split of the end of a slice, in which its thread is busy and was not in the slices before it.
fn busy_split(slice: &Slice, tid: u64, timeline: &Timeline) -> Split {
    let end = slice.start.saturating_add(slice.duration);
    timeline.split(tid, end.saturating_sub(slice.busy), end)
}

impl Totals {
    fn briefs(&mut self, briefs: &[BriefEvent], strings: &Strings) {
        self.events += briefs.len() as u64;
        for brief in briefs {
            self.instants += u64::from(brief.kind == BriefKind::Instant);
            self.counter_values += u64::from(brief.kind == BriefKind::Counter);
        }
        if briefs.is_empty() {
            return;
        }
        let (mut from, mut to) = (i64::MAX, i64::MIN);
        briefs.iter().for_each(|brief| (from, to) = (from.min(brief.time), to.max(brief.time)));
        if !self.far_apart.add_many(from, to, briefs.len() as u64) {
            let name = |brief: &BriefEvent| brief.event(strings).map(|event| event.name.text.to_owned());
            for brief in briefs {
                self.far_apart.add(brief.time, brief.time, || name(brief).unwrap_or_default());
            }
        }
        self.first = Some(self.first.map_or(from, |first| first.min(from)));
        self.last = self.last.max(Some(to));
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        self.events += 1;
        if let Some(details) = event.details.map(Detailed::details) {
            let flows = details.flows.len() + details.ending_flows.len() + details.bound.iter().len();
            self.flow_points += flows as u64;
        }
        self.counter_values += event.extra_counters.len() as u64;
        let mut end = event.time;
        match event.kind {
            EventKind::Instant => self.instants += 1,
            EventKind::Counter(_) => self.counter_values += 1,
            EventKind::Flow { .. } => self.flow_points += 1,
            EventKind::Complete { duration } => end = end.saturating_add(duration.max(0)),
            _ => {}
        }
        if is_remark(event) {
            return;
        }
        self.far_apart.add(event.time, end, || event.name.text.to_owned());
        self.first = Some(self.first.map_or(event.time, |first| first.min(event.time)));
        self.last = self.last.max(Some(end));
    }
}

impl Counting {
    /// Counts the pending slices.
    fn settle(&mut self) {
        let Gathered { totals, intervals, threads, tracks, .. } = &mut self.gathered;
        totals.slices += self.pending.len() as u64;
        // A thread's slices follow each other.
        for of_track in self.pending.chunk_by_mut(|a, b| a.track == b.track) {
            let track = of_track[0].track;
            if let Some(group) = self.groups.of(track) {
                for slice in of_track.iter_mut() {
                    slice.self_time = self.inside.take(slice, &self.track_names);
                    intervals.add(slice.name.0, std::slice::from_ref(slice));
                }
                tracks.add(group, of_track);
                continue;
            }
            of_track.iter().for_each(|slice| self.named.add(slice));
            threads.add(track.0, of_track);
        }
        if self.unsplit.is_some() || self.timeline.is_some() {
            self.pending.retain(|slice| self.groups.of(slice.track).is_none());
        }
        match &mut self.unsplit {
            Some(unsplit) if unsplit.len() < MOST_UNSPLIT => unsplit.append(&mut self.pending),
            Some(_) => {}
            None => {
                if let Some(timeline) = &self.timeline {
                    let rows = (&mut self.named, &mut self.gathered.threads);
                    split(rows, &self.pending, timeline, &self.tids);
                }
            }
        }
        self.pending.clear();
    }

    /// Adds the time of outermost slices without an end to their threads, which are busy up to the end of the
    /// trace.
    fn add_open(&mut self) {
        let (threads, timeline) = (&mut self.gathered.threads, &self.timeline);
        for slice in self.open.drain(..) {
            threads.add_busy(slice.track.0, slice.busy);
            let tid = self.tids.get(slice.track).copied().flatten();
            if let (Some(timeline), Some(tid)) = (timeline, tid) {
                threads.add_split(slice.track.0, &busy_split(&slice, tid, timeline));
            }
        }
    }

    /// The time of a slice that is not counted is no part of the own time of the interval around it.
    #[cold]
    fn unwanted(&mut self, slice: &Slice) {
        if self.groups.of(slice.track).is_some() {
            self.settle(); // those before it
            self.inside.take(slice, &self.track_names);
        }
    }

    fn add_flow(&mut self, place: (TrackId, i64)) {
        self.flow = Some(place);
        if let Some(flows) = &mut self.flows
            && flows.len() < MOST_FLOWS
        {
            flows.insert(place);
        }
    }

    /// Whether a slice without duration only carries a flow: FXT has no flows through instants and intervals.
    #[cold]
    fn is_carrier(&self, slice: &Slice) -> bool {
        let place = (slice.track, slice.start);
        self.flow == Some(place) || self.flows.as_ref().is_some_and(|flows| flows.contains(&place))
    }

    /// Makes the rows by name and by category.
    fn name(&mut self) {
        let named = std::mem::take(&mut self.named);
        (self.gathered.names, self.gathered.categories) = named.into_rows();
    }

    /// Splits the slices since the last call, when the changes of their threads are there.
    fn split_live(&mut self) {
        let (Some(timeline), Some(unsplit)) = (&mut self.timeline, &mut self.unsplit) else { return };
        self.gathered.has_scheduling = !timeline.is_empty();
        timeline.finish();
        split((&mut self.named, &mut self.gathered.threads), unsplit, timeline, &self.tids);
        unsplit.clear();
        timeline.forget_before(self.gathered.totals.last.unwrap_or(0).saturating_sub(REMEMBERED));
    }

    fn set_track(&mut self, track: &Track) {
        self.settle(); // by the earlier description
        self.track_names.set(track);
        self.groups.set(track, &self.track_names);
        self.set_thread(track.id);
    }

    fn set_thread(&mut self, track: TrackId) {
        let names = &self.track_names;
        if self.timeline.is_some() {
            let own = names.own_tid(track);
            *self.tids.at(track) = own;
            if let Some(shared) = names.tid(track).filter(|_| own.is_none()) {
                let tids = self.tids.iter_mut().map(|(_, tid)| tid);
                tids.filter(|tid| **tid == Some(shared)).for_each(|tid| *tid = None);
            }
        }
    }
}

impl SliceSink for Counting {
    #[inline]
    fn slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        let is_wanted = self.wanted.get(slice.category.0 as usize) != Some(&false)
            && self.since.is_none_or(|since| slice.start.saturating_add(slice.duration) > since);
        if !is_wanted {
            return self.unwanted(slice);
        }
        if slice.duration == 0 && self.is_carrier(slice) {
            self.gathered.totals.carriers += 1;
            self.inside.forget(slice, &self.track_names);
            return;
        }
        self.pending.push(*slice);
        if self.pending.len() >= BATCH {
            self.settle();
        }
    }

    fn begins(&mut self, slice: &Frame, track: TrackId, depth: usize) {
        if depth == 0 && self.groups.of(track).is_some() {
            self.inside.begin(track, slice.start, &self.track_names);
        }
    }

    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.is_late |= what == Defect::Late;
        self.gathered.totals.left_out += u64::from(what == Defect::TooManyOpen);
    }

    fn open_slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        if self.wanted.get(slice.category.0 as usize) != Some(&false) {
            self.gathered.totals.open_slices += 1;
            if slice.busy > 0 && self.groups.of(slice.track).is_none() {
                self.open.push(*slice); // one for each thread at most
            }
        }
    }
}
