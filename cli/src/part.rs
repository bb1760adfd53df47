//! A part of a trace by time. Slices that last into it are whole, with their times of the trace.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::PathBuf;

use hairline_convert::{
    BriefKind, BriefUse, Context, Event, EventKind, Item, MOST_BRIEF, Report, Scheduling, StateChange,
    TraceWriter, TrackId,
};

use crate::format::FormatArgument;
use crate::input::{Input, is_standard, stream_identity};

const ARGUMENTS: &str = "arguments of slices that begin before the part, left out";

const WHOLE: &str = "tracks whose slices are not in order of time, kept whole";

/// Times after the first event of a trace, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) after: i64,
    pub(crate) before: i64,
}

/// Writes the part of a trace. Its slices that began before are in memory, as many as are open at once.
#[derive(Clone)]
pub(crate) struct Part {
    first: i64,
    last: i64,
    tracks: BTreeMap<TrackId, Open>,
    /// Tracks with a begin or an end that is earlier than the one before it: which begin an end belongs to is
    /// known only when all are sorted.
    unsorted: BTreeSet<TrackId>,
}

/// The open slices of a track.
#[derive(Clone, Default)]
struct Open {
    /// Those that began before the part, and are not written yet: their time, name and category.
    before: Vec<(i64, String, String)>,
    /// The number of those with a written begin.
    written: usize,
    /// The number of those that began after the part.
    after: usize,
}

impl Part {
    /// The part of the trace at `path`, which is read once for its first time.
    ///
    /// # Errors
    /// Fails if the trace can be read only once, or not at all.
    pub(crate) fn of(path: &PathBuf, from: Option<FormatArgument>, times: Times) -> Result<Self, String> {
        let fail = |what: &dyn std::fmt::Display| format!("{}: {what}", path.display());
        if is_standard(path) || stream_identity(path).is_some() {
            return Err(fail(&"a part by time needs a file, which is read twice"));
        }
        let mut reader = Input::open(path).map_err(|e| fail(&e))?.trace(from).map_err(|e| fail(&e))?;
        let (mut context, mut briefs) = (Context::new(), Vec::with_capacity(MOST_BRIEF));
        let (mut first, mut latest, mut unsorted) = (None::<i64>, HashMap::new(), BTreeSet::new());
        let mut see = |time: i64, track: TrackId, is_of_slice: bool| {
            first = Some(first.map_or(time, |first| first.min(time)));
            if is_of_slice && latest.insert(track, time).is_some_and(|before| time < before) {
                unsorted.insert(track);
            }
        };
        loop {
            reader.briefs(BriefUse::Counting, &mut context, &mut briefs);
            for brief in &briefs {
                see(brief.time, brief.track, matches!(brief.kind, BriefKind::Begin | BriefKind::End));
            }
            match reader.next(&mut context) {
                Ok(Some(Item::Event(event))) => {
                    see(event.time, event.track, matches!(event.kind, EventKind::Begin | EventKind::End));
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => break, // the second reading tells of errors
            }
        }
        let at = |after: i64| first.unwrap_or_default().saturating_add(after);
        Ok(Self { first: at(times.after), last: at(times.before), tracks: BTreeMap::new(), unsorted })
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
        let open = self.tracks.entry(event.track).or_default();
        let is_wanted = match event.kind {
            EventKind::Begin | EventKind::End if self.unsorted.contains(&event.track) => true,
            EventKind::Begin if time < self.first => {
                let mut categories = Vec::new();
                event.categories.each(&mut |category| categories.push(category.text.to_owned()));
                report.add_many(ARGUMENTS, u64::from(!event.args.is_empty()));
                open.before.push((time, event.name.text.to_owned(), categories.join(",")));
                false
            }
            EventKind::Begin if time > self.last => {
                open.after += 1;
                false
            }
            EventKind::Begin => {
                open.put(event.track, writer)?;
                open.written += 1;
                true
            }
            EventKind::End if open.after > 0 => {
                open.after -= 1;
                false
            }
            EventKind::End if time < self.first => {
                open.before.pop();
                false
            }
            EventKind::End => {
                open.put(event.track, writer)?;
                let is_open = open.written > 0;
                open.written = open.written.saturating_sub(1);
                is_open
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
        for (time, name, category) in std::mem::take(&mut self.before) {
            self.written += 1;
            let categories = match &*category {
                "" => hairline_convert::Categories::None,
                category => hairline_convert::Categories::One(category.into()),
            };
            let begin =
                Event { name: (&*name).into(), categories, ..Event::new(time, track, EventKind::Begin) };
            writer.write(&Item::Event(begin))?;
        }
        Ok(())
    }
}
