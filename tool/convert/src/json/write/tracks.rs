//! The form of each track in JSON.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use hairline_formats::Value;
use hairline_formats::trace_event_json::{Args, Event, Id, Label, Phase, TrackIds};
use hairline_formats::track_event::{CounterType, Unit};

use crate::json::write::first_threads::FirstThreads;
use crate::json::write::flows::Point;
use crate::json::write::held::Held;
use crate::json::write::labels::number;
use crate::pids::Pids;
use crate::report::{LATE_THREADS, STATES};
use crate::shared_ids::{SHARED, SharedIds};
use crate::ties::Ties;
use crate::{CounterTrack, Report, StringId, Strings, Text, Track, TrackId, TrackKind};

#[derive(Debug, Default)]
pub(super) struct Tracks {
    all: Vec<Option<OutputTrack>>,
    labels: Vec<TrackLabels>,
    /// Tracks whose metadata events are not written yet.
    undescribed: VecDeque<TrackId>,
    short_ids: HashMap<u64, u32>,
    /// The first track with each id of an async interval. Several input traces may use the same id.
    ids: HashMap<(Option<u32>, u64, Arc<str>), TrackId>,
    /// The id of the first of the counters of one name.
    counters: HashMap<CounterName, Option<u64>>,
    shared: SharedIds,
    pids: Pids,
    first_threads: FirstThreads,
    /// The categories of open slices on intervals, separated by commas.
    pub(super) categories: Strings,
}

/// The process, the name and the series of a counter.
type CounterName = (Option<u32>, Arc<str>, Arc<str>);

/// The form in which the events of a track are written.
#[derive(Debug)]
pub(super) enum OutputTrack {
    Thread {
        pid: u32,
        tid: u32,
        place: TrackIds,
        /// Flow points at the time of the thread's latest event.
        flows: Vec<Point>,
        /// The latest times.
        ties: Ties,
    },
    /// Events with an id.
    Interval(Interval),
    Counter(Counter),
}

#[derive(Debug)]
pub(super) struct Interval {
    /// `None` for an interval of the whole trace.
    pub(super) pid: Option<u32>,
    pub(super) id: String,
    pub(super) scope: Arc<str>,
    /// The form of an instant on this track.
    pub(super) instants: Instants,
    pub(super) slices: IntervalSlices,
}

/// The slices of an interval.
#[derive(Debug, Default)]
pub(super) struct IntervalSlices {
    /// The categories of the open slices, by their numbers in [`Tracks::categories`]. `None` if the category
    /// has no number.
    pub(super) open: Vec<Option<StringId>>,
    /// The category of the first slice, as in `open`, and whether other slices have another one.
    pub(super) category: Option<Option<StringId>>,
    pub(super) has_many: bool,
    /// Ends before the first begin of the track.
    pub(super) early: Vec<Held>,
    /// The number of ends that came without an open slice, and the latest time of them. A begin before
    /// that time belongs to one of them.
    pub(super) ahead: (u32, i64),
    /// The time of the latest event.
    pub(super) latest: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Instants {
    Process,
    Everything,
    Interval,
}

#[derive(Debug)]
pub(super) struct Counter {
    pub(super) pid: Option<u32>,
    /// Distinguishes counters of one name.
    pub(super) id: Option<Id<'static>>,
    pub(super) ids: Option<TrackIds>,
    pub(super) name: Arc<str>,
    /// The number of the latest value's category, or `None`; and the label with that category, or `None` if
    /// it is too long.
    category: Option<u32>,
    pub(super) label: Option<Box<Label>>,
    pub(super) series: Arc<str>,
    pub(super) multiplier: i64,
    /// The thread whose CPU time this counter shows.
    pub(super) time_of: Option<TrackId>,
}

impl Counter {
    /// Sets the label for a category.
    #[inline]
    pub(super) fn set_category(&mut self, category: Text<'_>) {
        let number = number(category);
        if number.is_none() || number != self.category {
            self.category = number;
            self.label = Label::new(&self.name, category.text).map(Box::new);
        }
    }
}

/// The metadata of a process or thread.
#[derive(Debug, Default)]
struct TrackLabels {
    name: Arc<str>,
    labels: Arc<str>,
    rank: Option<i32>,
    /// JSON has no place for a command line, so it is counted once.
    has_command_line: bool,
    /// Nor for the parent of a process.
    has_parent: bool,
}

/// The first replacement for an id beyond 32 bits.
const FIRST: u32 = 1 << 30;

impl Tracks {
    pub(super) fn get(&self, track: TrackId) -> Option<&OutputTrack> {
        self.all.get(track.0 as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, track: TrackId) -> Option<&mut OutputTrack> {
        self.all.get_mut(track.0 as usize)?.as_mut()
    }

    /// An interval, and the store of its slices' categories.
    pub(super) fn interval_mut(&mut self, track: TrackId) -> Option<(&mut Interval, &mut Strings)> {
        match self.all.get_mut(track.0 as usize)? {
            Some(OutputTrack::Interval(interval)) => Some((interval, &mut self.categories)),
            _ => None,
        }
    }

    /// The process id of a track.
    fn pid(&self, track: Option<TrackId>) -> Option<u32> {
        match self.get(track?)? {
            OutputTrack::Thread { pid, .. } => Some(*pid),
            OutputTrack::Interval(interval) => interval.pid,
            OutputTrack::Counter(counter) => counter.pid,
        }
    }

    /// An id of 32 bits. Importers cut longer ids.
    fn short_id(&mut self, id: u64, report: &mut Report) -> u32 {
        if let Ok(id) = u32::try_from(id) {
            return id;
        }
        let next = FIRST.saturating_add(u32::try_from(self.short_ids.len()).unwrap_or(u32::MAX));
        *self.short_ids.entry(id).or_insert_with(|| {
            report.add("process and thread ids beyond 32 bits, replaced");
            next
        })
    }

    pub(super) fn add(&mut self, track: &Track, report: &mut Report) {
        let renumbered = self.pids.renumbered(track, report);
        let track = renumbered.as_ref().unwrap_or(track);
        let place = track.id.0 as usize;
        if self.all.len() <= place {
            self.all.resize_with(place + 1, || None);
            self.labels.resize_with(place + 1, TrackLabels::default);
        }
        report.add_many(SHARED, self.shared.add(track).into());
        let mut output_track = self.output_track(track, report);
        match (&mut output_track, self.all[place].take()) {
            (
                OutputTrack::Thread { flows: new, ties: new_ties, .. },
                Some(OutputTrack::Thread { flows, ties, .. }),
            ) => (*new, *new_ties) = (flows, ties),
            (OutputTrack::Interval(new), Some(OutputTrack::Interval(old))) => new.slices = old.slices,
            (OutputTrack::Thread { .. }, Some(_)) => report.add(LATE_THREADS),
            _ => {}
        }
        self.all[place] = Some(output_track);
        if matches!(track.kind, TrackKind::Process { .. } | TrackKind::Thread { .. }) {
            self.label(track);
        }
    }

    fn label(&mut self, track: &Track) {
        let labels = &mut self.labels[track.id.0 as usize];
        (labels.name, labels.labels) = (Arc::clone(&track.name), Arc::clone(&track.description));
        labels.rank = track.rank;
        if self.undescribed.back() != Some(&track.id) {
            self.undescribed.push_back(track.id);
        }
    }

    fn output_track(&mut self, track: &Track, report: &mut Report) -> OutputTrack {
        let parent = self.pid(track.parent);
        match &track.kind {
            &TrackKind::Thread { pid, tid } => {
                let (pid, tid) = (self.short_id(pid, report), self.short_id(tid, report));
                let tid = self.first_threads.id(pid, tid, report);
                let place = TrackIds::thread(pid, tid);
                OutputTrack::Thread { pid, tid, place, flows: Vec::new(), ties: Ties::default() }
            }
            TrackKind::Process { pid, command_line, parent } => {
                let labels = &mut self.labels[track.id.0 as usize];
                if !command_line.is_empty() && !std::mem::replace(&mut labels.has_command_line, true) {
                    report.add("command lines");
                }
                if parent.is_some_and(|parent| parent != 0)
                    && !std::mem::replace(&mut labels.has_parent, true)
                {
                    report.add("parents of processes");
                }
                let pid = Some(self.short_id(*pid, report));
                self.interval(track, pid, Instants::Process)
            }
            TrackKind::Async { id, scope } if !self.is_own(track, (parent, *id, Arc::clone(scope))) => {
                self.interval(track, parent, Instants::Interval)
            }
            TrackKind::Async { id, scope } => OutputTrack::Interval(Interval {
                pid: parent,
                id: format!("{id:#x}"),
                scope: Arc::clone(scope),
                instants: Instants::Interval,
                slices: IntervalSlices::default(),
            }),
            TrackKind::Counter(counter) => self.counter(track, counter, parent, report),
            _ if track.parent.is_none() && track.name.is_empty() => {
                self.interval(track, None, Instants::Everything)
            }
            kind => {
                report.add_many(STATES, u64::from(*kind == TrackKind::States));
                report.add("tracks that became intervals, without their name and position");
                self.interval(track, parent, Instants::Interval)
            }
        }
    }

    fn is_own(&mut self, track: &Track, id: (Option<u32>, u64, Arc<str>)) -> bool {
        *self.ids.entry(id).or_insert(track.id) == track.id
    }

    /// The form of a track without an id in JSON. The prefix keeps it apart from the ids of async intervals.
    fn interval(&self, track: &Track, pid: Option<u32>, instants: Instants) -> OutputTrack {
        let id = format!("track {}", track.id.0);
        let slices = IntervalSlices::default();
        OutputTrack::Interval(Interval { pid, id, scope: Arc::default(), instants, slices })
    }

    fn counter(
        &mut self,
        track: &Track,
        counter: &CounterTrack,
        pid: Option<u32>,
        report: &mut Report,
    ) -> OutputTrack {
        let thread =
            track.parent.filter(|parent| matches!(self.get(*parent), Some(OutputTrack::Thread { .. })));
        let is_time = counter.builtin == CounterType::ThreadTimeNs;
        let unit = unit(counter);
        let series = match (&*counter.series, unit) {
            ("" | "value", "") => "value",
            ("" | "value", unit) => unit,
            (series, _) => series,
        };
        if series != unit && !unit.is_empty() {
            report.add("units of counters");
        }
        let of_thread = thread.filter(|_| !is_time).and_then(|thread| match self.get(thread) {
            Some(OutputTrack::Thread { tid, .. }) => Some(u64::from(*tid)),
            _ => None,
        });
        if of_thread.is_some() {
            report.add("thread counters that became process counters, with the thread as id");
        }
        let number = if counter.number == 0 { of_thread } else { Some(counter.number) };
        // Importers take counters whose ids are numbers for one.
        let key = (pid, Arc::clone(&track.name), series.into());
        let is_other = *self.counters.entry(key).or_insert(number) != number;
        let id = match is_other {
            true => Some(Id::Text(number.unwrap_or(0).to_string().into())),
            false => number.map(Id::Number),
        };
        OutputTrack::Counter(Counter {
            pid,
            ids: TrackIds::counter(pid, id.as_ref()),
            id,
            category: None,
            label: None,
            name: Arc::clone(&track.name),
            series: series.into(),
            multiplier: counter.multiplier,
            time_of: thread.filter(|_| is_time),
        })
    }

    /// The intervals with ends that wait for a begin.
    pub(super) fn with_early_ends(&self) -> Vec<TrackId> {
        let waits = |track: &Option<OutputTrack>| matches!(track, Some(OutputTrack::Interval(interval)) if !interval.slices.early.is_empty());
        let all = (0..).map(TrackId).zip(&self.all);
        all.filter(|(_, track)| waits(track)).map(|(id, _)| id).collect()
    }

    /// Whether a description makes something else of an interval.
    pub(super) fn changes_interval(&self, track: &Track) -> bool {
        matches!(self.get(track.id), Some(OutputTrack::Interval(_)))
            && matches!(track.kind, TrackKind::Thread { .. } | TrackKind::Counter(_))
    }

    /// Removes the flow points of all threads, and passes them to `show`.
    pub(super) fn each_waiting(&mut self, mut show: impl FnMut(Point)) {
        for output_track in self.all.iter_mut().flatten() {
            if let OutputTrack::Thread { flows, .. } = output_track {
                flows.drain(..).for_each(&mut show);
            }
        }
    }

    pub(super) fn has_undescribed(&self) -> bool {
        !self.undescribed.is_empty()
    }

    /// Writes the metadata events of new processes and threads.
    pub(super) fn describe(&mut self, mut put: impl FnMut(&Event<'_>) -> io::Result<()>) -> io::Result<()> {
        while let Some(track) = self.undescribed.pop_front() {
            let labels = &self.labels[track.0 as usize];
            let (of, pid, tid) = match self.get(track) {
                Some(OutputTrack::Thread { pid, tid, .. }) => {
                    ("thread", *pid, Some(Id::Number((*tid).into())))
                }
                Some(OutputTrack::Interval(Interval { pid: Some(pid), .. })) => ("process", *pid, None),
                _ => continue,
            };
            let mut describe = |what: &str, argument: &str, value: Value<'_>| {
                put(&Event {
                    name: format!("{of}_{what}").into(),
                    ph: Some(Phase::Metadata),
                    pid: Some(Id::Number(pid.into())),
                    tid: tid.clone(),
                    args: Args::List(&[(argument, value)]),
                    ..Event::default()
                })
            };
            if !labels.name.is_empty() {
                describe("name", "name", Value::Str(&labels.name))?;
            }
            if !labels.labels.is_empty() {
                describe("labels", "labels", Value::Str(&labels.labels))?;
            }
            if let Some(rank) = labels.rank {
                describe("sort_index", "sort_index", Value::I64(rank.into()))?;
            }
        }
        Ok(())
    }
}

/// The name of a counter's unit.
fn unit(counter: &CounterTrack) -> &str {
    match counter.unit {
        Unit::TimeNs => "ns",
        Unit::Count => "count",
        Unit::SizeBytes => "bytes",
        Unit::Unspecified => &counter.unit_name,
    }
}
