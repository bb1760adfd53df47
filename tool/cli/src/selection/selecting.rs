//! The items of a part of a trace, with the times of slices cut.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hairline_convert::{Event, EventKind, Item, Scheduling, StateChange, TrackId};

use crate::selection::MOST_OPEN;
use crate::selection::chosen::{Chosen, Tracks};
use crate::selection::states::States;
use crate::texts::{Texts, categories};

/// Passes on the items of the part, with the times of slices cut.
pub(crate) struct Selecting<'c> {
    chosen: &'c Chosen,
    tracks: Tracks,
    open: HashMap<TrackId, Vec<Begun>>,
    /// The begins and ends of tracks that are not in order of time, which are sorted at the end.
    unsorted: BTreeMap<TrackId, Vec<Change>>,
    /// The number of both.
    count: usize,
    pub(crate) left_out: u64,
    texts: Texts,
    /// What is known of each thread with states. They come in any order.
    states: BTreeMap<u64, States>,
}

/// An open slice.
struct Begun {
    name: Arc<str>,
    category: Arc<str>,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It began before the range, and its begin was not passed on.
    Before,
    Passed,
    After,
}

/// A begin or an end.
struct Change {
    time: i64,
    is_begin: bool,
    name: Arc<str>,
    category: Arc<str>,
}

type Pass<'p> = &'p mut dyn FnMut(&Item<'_>);

impl<'c> Selecting<'c> {
    pub(crate) fn new(chosen: &'c Chosen) -> Self {
        Self {
            chosen,
            tracks: Tracks::default(),
            open: HashMap::new(),
            unsorted: BTreeMap::new(),
            count: 0,
            left_out: 0,
            texts: Texts::default(),
            states: BTreeMap::new(),
        }
    }

    /// Passes on what is chosen of an item.
    pub(crate) fn item(&mut self, item: &Item<'_>, pass: Pass<'_>) {
        let chosen = self.chosen;
        let is_wanted = match item {
            Item::Track(track) => self.tracks.see(track, chosen),
            Item::Event(event) if self.tracks.has(event.track, chosen) => return self.event(event, pass),
            Item::Event(_) => false,
            Item::Scheduling(scheduling) => return self.scheduling(scheduling, pass),
            Item::Sample(sample) => chosen.has_sample(sample),
            Item::Loss(loss) => {
                loss.time.is_none_or(|time| chosen.has(time))
                    && loss.track.is_none_or(|track| self.tracks.has(track, chosen))
            }
            _ => true,
        };
        if is_wanted {
            pass(item);
        }
    }

    fn event(&mut self, event: &Event<'_>, pass: Pass<'_>) {
        let Chosen { from, to, .. } = *self.chosen;
        match event.kind {
            EventKind::Begin | EventKind::End => self.change(event, pass),
            EventKind::Complete { duration } => {
                let end = event.time.saturating_add(duration.max(0));
                let (start, cut) = (event.time.max(from), end.min(to));
                // A slice of 0 ns is in the range at its time.
                if start > cut || (start == cut && !self.chosen.has(event.time)) {
                    return;
                }
                let is_whole = (start, cut) == (event.time, end);
                let kind = EventKind::Complete { duration: cut.saturating_sub(start) };
                let extra_counters = if is_whole { event.extra_counters } else { &[] };
                pass(&Item::Event(Event { time: start, kind, extra_counters, ..*event }));
            }
            _ if self.chosen.has(event.time) => pass(&Item::Event(*event)),
            _ => {}
        }
    }

    /// Takes a begin or an end.
    fn change(&mut self, event: &Event<'_>, pass: Pass<'_>) {
        let Chosen { from, to, .. } = *self.chosen;
        if self.chosen.has_all_times() {
            return pass(&Item::Event(*event));
        }
        let is_begin = event.kind == EventKind::Begin;
        let is_unsorted = self.chosen.unsorted.contains(&event.track);
        if is_begin || is_unsorted {
            let texts = self.texts.get(event.name.text).zip(self.texts.of(&event.categories));
            let Some((name, category)) = texts.filter(|_| self.count < MOST_OPEN) else {
                self.left_out += u64::from(is_begin);
                return;
            };
            self.count += 1;
            if is_unsorted {
                let change = Change { time: event.time, is_begin, name, category };
                return self.unsorted.entry(event.track).or_default().push(change);
            }
            let place = match event.time {
                time if time < from => Place::Before,
                time if time < to => Place::Passed,
                _ => Place::After,
            };
            let open = self.open.entry(event.track).or_default();
            if place == Place::Passed {
                begin(open, event.track, from, pass);
                pass(&Item::Event(*event));
            }
            open.push(Begun { name, category, place });
        } else {
            let open = self.open.entry(event.track).or_default();
            // It closes the innermost slice with its name, and those inside of that.
            let name = event.name.text;
            let Some(at) = open.iter().rposition(|begun| name.is_empty() || *begun.name == *name) else {
                return;
            };
            let is_in = match open[at].place {
                Place::Before => event.time > from,
                Place::Passed => true,
                Place::After => false,
            };
            if is_in {
                begin(open, event.track, from, pass);
                let extra_counters = if event.time < to { event.extra_counters } else { &[] };
                pass(&Item::Event(Event { time: event.time.min(to), extra_counters, ..*event }));
            }
            self.count -= open.len() - at;
            open.truncate(at);
        }
    }

    /// Passes on the changes of chosen threads in the range. The states at its begin and at its end follow in
    /// [`finish`](Self::finish).
    fn scheduling(&mut self, scheduling: &Scheduling<'_>, pass: Pass<'_>) {
        let (chosen, states) = (self.chosen, &mut self.states);
        let of_chosen = scheduling.changes.iter().filter(|change| chosen.has_states(change.tid));
        let is_in = |change: &&StateChange| states.entry(change.tid).or_default().see(change, chosen);
        let changes: Vec<StateChange> = of_chosen.filter(is_in).cloned().collect();
        pass(&Item::Scheduling(Scheduling { changes: &changes, copy: None, others: scheduling.others }));
    }

    /// Passes on what is known at the end of the trace.
    pub(crate) fn finish(&mut self, pass: Pass<'_>) {
        let Chosen { from, to, end, .. } = *self.chosen;
        for (track, mut changes) in std::mem::take(&mut self.unsorted) {
            self.count -= changes.len();
            changes.sort_by_key(|change| change.time);
            self.sorted(track, &changes, pass);
        }
        for (track, open) in &mut self.open {
            begin(open, *track, from, pass);
            for begun in open.iter().rev().filter(|begun| end > to && begun.place == Place::Passed) {
                let name = (&*begun.name).into();
                pass(&Item::Event(Event { name, ..Event::new(to, *track, EventKind::End) }));
            }
        }
        let changes: Vec<StateChange> = std::mem::take(&mut self.states)
            .into_iter()
            .flat_map(|(tid, states)| states.around(self.chosen, tid))
            .collect();
        pass(&Item::Scheduling(Scheduling { changes: &changes, copy: None, others: 0 }));
    }

    /// Takes the begins and ends of a track in order of time.
    fn sorted(&mut self, track: TrackId, changes: &[Change], pass: Pass<'_>) {
        let (unsorted, first_runners) = Default::default();
        let unsorted = Chosen { unsorted, threads: None, first_runners, ..*self.chosen };
        let mut of_track = Selecting::new(&unsorted);
        for change in changes {
            let kind = if change.is_begin { EventKind::Begin } else { EventKind::End };
            let (name, categories) = ((&*change.name).into(), categories(&change.category));
            let event = Event { name, categories, ..Event::new(change.time, track, kind) };
            of_track.change(&event, pass);
        }
        self.left_out += of_track.left_out;
        self.open.extend(of_track.open);
    }
}

/// Passes on the begins before the range, which are the outermost ones.
fn begin(open: &mut [Begun], track: TrackId, from: i64, pass: Pass<'_>) {
    for begun in open.iter_mut().filter(|begun| begun.place == Place::Before) {
        let (name, categories) = ((&*begun.name).into(), categories(&begun.category));
        pass(&Item::Event(Event { name, categories, ..Event::new(from, track, EventKind::Begin) }));
        begun.place = Place::Passed;
    }
}
