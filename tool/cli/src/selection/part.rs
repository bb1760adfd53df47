//! A part of a trace as a trace. Slices that last into it are whole, with their times of the trace.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use hairline_convert::{Event, EventKind, Item, Report, Scheduling, StateChange, TrackId};
use hairline_tables::Choice;

use crate::selection::MOST_OPEN;
use crate::selection::chosen::{Chosen, Tracks};
use crate::texts::{Texts, categories};

const ARGUMENTS: &str = "arguments of slices that begin before the part, left out";

const WHOLE: &str = "tracks whose begins and ends are not in order of time, of which all are kept";

const TOO_MANY: &str = "slices beyond the first 524,288 open ones left out";

/// Passes on the part of a trace. The slices that are open at once are in memory.
pub(crate) struct Part {
    chosen: Rc<Chosen>,
    tracks: Tracks,
    open: BTreeMap<TrackId, Open>,
    texts: Texts,
    /// The number of open slices.
    count: usize,
    left_out: Report,
}

/// The open slices of a track, the innermost last. Those that began before the part and are not passed on yet
/// are the first ones.
#[derive(Default)]
struct Open(Vec<Begun>);

struct Begun {
    name: Arc<str>,
    place: Place,
}

enum Place {
    /// It began before the part, and is not passed on yet.
    Before {
        time: i64,
        category: Arc<str>,
    },
    Passed,
    After,
}

type Pass<'p> = &'p mut dyn FnMut(&Item<'_>);

impl Part {
    pub(crate) fn new(chosen: Rc<Chosen>) -> Self {
        Self {
            chosen,
            tracks: Tracks::default(),
            open: BTreeMap::new(),
            texts: Texts::default(),
            count: 0,
            left_out: Report::default(),
        }
    }

    /// Whether all begins and ends of a track are in the part.
    fn has_all_of(&self, track: TrackId) -> bool {
        self.chosen.has_all_times() || self.chosen.unsorted.contains(&track)
    }

    fn event(&mut self, event: &Event<'_>, pass: Pass<'_>) {
        let Chosen { from, to, .. } = *self.chosen;
        let is_in = match event.kind {
            EventKind::Begin | EventKind::End if self.has_all_of(event.track) => true,
            EventKind::Begin => self.begin(event, pass),
            EventKind::End => self.end(event, pass),
            EventKind::Complete { duration } => {
                event.time < to && (event.time >= from || event.time.saturating_add(duration) > from)
            }
            _ => self.chosen.has(event.time),
        };
        if is_in {
            pass(&Item::Event(*event));
        }
    }

    /// Takes a begin. Returns whether it is in the part.
    fn begin(&mut self, event: &Event<'_>, pass: Pass<'_>) -> bool {
        let Chosen { from, to, .. } = *self.chosen;
        let (time, track) = (event.time, event.track);
        let place = if time < from {
            self.left_out.add_many(ARGUMENTS, u64::from(!event.args.is_empty()));
            self.texts.of(&event.categories).map(|category| Place::Before { time, category })
        } else {
            Some(if time < to { Place::Passed } else { Place::After })
        };
        let begun = place.zip(self.texts.get(event.name.text)).map(|(place, name)| Begun { name, place });
        let Some(begun) = begun.filter(|_| self.count < MOST_OPEN) else {
            self.left_out.add(TOO_MANY);
            return false;
        };
        let open = self.open.entry(track).or_default();
        let is_in = matches!(begun.place, Place::Passed);
        if is_in {
            open.pass(track, pass);
        }
        open.0.push(begun);
        self.count += 1;
        is_in
    }

    /// Takes an end: it closes the innermost slice with its name, and those inside of that. Returns whether it is
    /// in the part.
    fn end(&mut self, event: &Event<'_>, pass: Pass<'_>) -> bool {
        let open = self.open.entry(event.track).or_default();
        let name = event.name.text;
        let is_its = |begun: &Begun| name.is_empty() || *begun.name == *name;
        let Some(at) = open.0.iter().rposition(is_its) else { return false };
        if event.time > self.chosen.from {
            open.pass(event.track, pass);
        }
        let is_in = matches!(open.0[at].place, Place::Passed);
        self.count -= open.0.len() - at;
        open.0.truncate(at);
        is_in
    }
}

impl Choice for Part {
    fn item(&mut self, item: &Item<'_>, pass: Pass<'_>) {
        let chosen = &*self.chosen;
        let is_in = match item {
            Item::Track(track) => self.tracks.see(track, chosen),
            Item::Event(event) if self.tracks.has(event.track, chosen) => return self.event(event, pass),
            Item::Event(_) => false,
            Item::Scheduling(scheduling) => {
                let is_in = |change: &StateChange| chosen.has(change.time) && chosen.has_states(change.tid);
                if !scheduling.changes.iter().all(is_in) {
                    let changes = scheduling.changes.iter().filter(|change| is_in(change));
                    let (changes, others): (Vec<_>, _) = (changes.cloned().collect(), scheduling.others);
                    return pass(&Item::Scheduling(Scheduling { changes: &changes, copy: None, others }));
                }
                true
            }
            Item::Sample(sample) => chosen.has_sample(sample),
            Item::Loss(loss) => {
                loss.time.is_none_or(|time| chosen.has(time))
                    && loss.track.is_none_or(|track| self.tracks.has(track, chosen))
            }
            Item::Foreign { what, .. } => {
                self.left_out.add(what); // at an unknown time
                false
            }
            _ => true,
        };
        if is_in {
            pass(item);
        }
    }

    /// Passes on what is still open: slices without an end.
    fn finish(&mut self, pass: Pass<'_>) {
        if !self.chosen.has_all_times() {
            let unsorted = self.chosen.unsorted.iter().filter(|track| self.tracks.has(**track, &self.chosen));
            self.left_out.add_many(WHOLE, unsorted.count() as u64);
        }
        self.open.iter_mut().for_each(|(track, open)| open.pass(*track, pass));
    }

    fn left_out(&self) -> Report {
        self.left_out.clone()
    }
}

impl Open {
    /// Passes on the begins before the part.
    fn pass(&mut self, track: TrackId, pass: Pass<'_>) {
        for begun in &mut self.0 {
            let Place::Before { time, category } = &begun.place else { break };
            let (name, categories) = ((&*begun.name).into(), categories(category));
            pass(&Item::Event(Event { name, categories, ..Event::new(*time, track, EventKind::Begin) }));
            begun.place = Place::Passed;
        }
    }
}
