//! A part of a trace by time. Slices that last into it are whole, with their times of the trace.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use hairline_convert::{Event, EventKind, Item, Report, Scheduling, StateChange, TraceWriter, TrackId};

use crate::input::{is_standard, stream_identity};
use crate::opening::Opening;
use crate::texts::Texts;
use crate::trace::survey;

const ARGUMENTS: &str = "arguments of slices that begin before the part, left out";

const WHOLE: &str = "tracks whose begins and ends are not in order of time, of which all are kept";

/// Times after the first event of a trace, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) after: i64,
    pub(crate) before: i64,
}

/// Slices that are open at once. Further ones are left out.
const MOST_OPEN: usize = 1 << 19;

const TOO_MANY: &str = "slices beyond the first 524,288 open ones left out";

/// Writes the part of a trace. The slices that are open at once are in memory.
#[derive(Clone)]
pub(crate) struct Part {
    first: i64,
    last: i64,
    tracks: BTreeMap<TrackId, Open>,
    texts: Texts,
    /// The number of open slices.
    open: usize,
    /// Tracks with a begin or an end that is earlier than the one before it: which begin an end belongs to is
    /// known only when all are sorted.
    unsorted: BTreeSet<TrackId>,
}

/// The open slices of a track, the innermost last. Those that began before the part and are not written yet
/// are the first ones.
#[derive(Clone, Default)]
struct Open(Vec<Begun>);

#[derive(Clone)]
struct Begun {
    name: Arc<str>,
    place: Place,
}

#[derive(Clone)]
enum Place {
    /// It began before the part, and is not written yet.
    Before {
        time: i64,
        category: Arc<str>,
    },
    Written,
    After,
}

impl Part {
    /// The part of the trace at `path`, which is read once for its first time.
    ///
    /// # Errors
    /// Fails if the trace can be read only once, or not at all.
    pub(crate) fn of(path: &PathBuf, opening: Opening, times: Times) -> Result<Self, String> {
        if is_standard(path) || stream_identity(path).is_some() {
            return Err(format!("{}: a part by time needs a file, which is read twice", path.display()));
        }
        let (survey, _) = survey(path, opening)?; // the second reading tells of errors
        let at = |after: i64| survey.first().unwrap_or_default().saturating_add(after);
        Ok(Self {
            first: at(times.after),
            last: at(times.before),
            tracks: BTreeMap::new(),
            texts: Texts::default(),
            open: 0,
            unsorted: survey.unsorted,
        })
    }

    /// The part of the trace with its times moved.
    pub(crate) fn moved(self, by: i64) -> Self {
        Self { first: self.first.saturating_add(by), last: self.last.saturating_add(by), ..self }
    }

    fn has(&self, time: i64) -> bool {
        (self.first..=self.last).contains(&time)
    }

    /// Writes an item, if it is of the part.
    pub(crate) fn write(
        &mut self,
        item: &Item<'_>,
        writer: &mut dyn TraceWriter,
        report: &mut Report,
    ) -> io::Result<()> {
        let is_wanted = match item {
            Item::Event(event) => return self.event(event, writer, report),
            Item::Scheduling(scheduling) => {
                let of_part = |change: &&StateChange| self.has(change.time);
                if scheduling.changes.iter().any(|change| !self.has(change.time)) {
                    let changes: Vec<_> = scheduling.changes.iter().filter(of_part).cloned().collect();
                    let others = scheduling.others;
                    return writer.write(&Item::Scheduling(Scheduling {
                        changes: &changes,
                        copy: None,
                        others,
                    }));
                }
                true
            }
            Item::Sample(sample) => self.has(sample.time),
            Item::Loss(loss) => loss.time.is_none_or(|time| self.has(time)),
            Item::Foreign { what, .. } => {
                report.add(what); // at an unknown time
                false
            }
            _ => true,
        };
        if is_wanted { writer.write(item) } else { Ok(()) }
    }

    fn event(
        &mut self,
        event: &Event<'_>,
        writer: &mut dyn TraceWriter,
        report: &mut Report,
    ) -> io::Result<()> {
        let (time, is_in) = (event.time, self.has(event.time));
        let is_wanted = match event.kind {
            EventKind::Begin | EventKind::End if self.unsorted.contains(&event.track) => true,
            EventKind::Begin => {
                let place = if time < self.first {
                    report.add_many(ARGUMENTS, u64::from(!event.args.is_empty()));
                    let mut categories = Vec::new();
                    event.categories.each(&mut |category| categories.push(category.text.to_owned()));
                    self.texts.get(&categories.join(",")).map(|category| Place::Before { time, category })
                } else {
                    Some(if time > self.last { Place::After } else { Place::Written })
                };
                let name = self.texts.get(event.name.text);
                let begun = place.zip(name).map(|(place, name)| Begun { name, place });
                let Some(begun) = begun.filter(|_| self.open < MOST_OPEN) else {
                    report.add(TOO_MANY);
                    return Ok(());
                };
                let open = self.tracks.entry(event.track).or_default();
                let is_written = matches!(begun.place, Place::Written);
                if is_written {
                    open.put(event.track, writer)?;
                }
                open.0.push(begun);
                self.open += 1;
                is_written
            }
            EventKind::End => {
                // It closes the innermost slice with its name, and those inside of that.
                let open = self.tracks.entry(event.track).or_default();
                let name = event.name.text;
                let is_its = |begun: &Begun| name.is_empty() || *begun.name == *name;
                let Some(at) = open.0.iter().rposition(is_its) else { return Ok(()) };
                if time >= self.first {
                    open.put(event.track, writer)?;
                }
                let is_written = matches!(open.0[at].place, Place::Written);
                self.open -= open.0.len() - at;
                open.0.truncate(at);
                is_written
            }
            EventKind::Complete { duration } => {
                time <= self.last && time.saturating_add(duration) >= self.first
            }
            _ => is_in,
        };
        if is_wanted { writer.write(&Item::Event(*event)) } else { Ok(()) }
    }

    /// Writes what is still open: slices without an end.
    pub(crate) fn finish(&mut self, writer: &mut dyn TraceWriter, report: &mut Report) -> io::Result<()> {
        report.add_many(WHOLE, self.unsorted.len() as u64);
        self.tracks.iter_mut().try_for_each(|(track, open)| open.put(*track, writer))
    }
}

impl Open {
    /// Writes the begins before the part.
    fn put(&mut self, track: TrackId, writer: &mut dyn TraceWriter) -> io::Result<()> {
        for begun in &mut self.0 {
            let Place::Before { time, category } = &begun.place else { break };
            let categories = match &**category {
                "" => hairline_convert::Categories::None,
                category => hairline_convert::Categories::One(category.into()),
            };
            let name = (&*begun.name).into();
            let begin = Event { name, categories, ..Event::new(*time, track, EventKind::Begin) };
            writer.write(&Item::Event(begin))?;
            begun.place = Place::Written;
        }
        Ok(())
    }
}
