//! Reads a trace: the figures of each name, in each part of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use hairline::Filter;
use hairline_convert::slices::{Defect, Frame, Key, Keys, Slice, SliceSink, Slices};
use hairline_convert::{Event, EventKind, Item, TrackId};

use crate::input::stream_identity;
use crate::opening::Opening;
use crate::outcome::Outcome;
use crate::stats::{Rows, SEVERAL};
use crate::text::{complain, count, shown};
use crate::trace::{ItemVisitor, show, unsorted};
use crate::track_names::TrackNames;

/// The number of figures of a name.
pub(super) const FIGURES: usize = 4;

/// A name of slices on threads, or on other tracks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) name: String,
    pub(super) is_interval: bool,
}

/// The slices of a name in a part of a trace.
#[derive(Clone, Debug)]
pub(super) struct Row {
    /// Count, total, p50 and p99, the times in nanoseconds.
    pub(super) figures: [i64; FIGURES],
    /// [`SEVERAL`] if the slices have several. It is no part of the name: one more slice of another category
    /// would make another name of all.
    pub(super) category: String,
}

/// A part of a trace.
pub(super) type Part = BTreeMap<Name, Row>;

/// A trace, read.
#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) path: String,
    pub(super) parts: Vec<Part>,
    pub(super) categories: BTreeSet<String>,
    pub(super) uuid: Option<u128>,
    /// The clock of its times.
    pub(super) clock: Option<u32>,
    pub(super) losses: u64,
    pub(super) open_slices: u64,
}

/// Finds the begin and the end of a trace.
#[derive(Default)]
struct Span(Option<(i64, i64)>);

impl ItemVisitor for Span {
    fn item(&mut self, item: &Item<'_>) {
        let Item::Event(Event { time, kind, .. }) = item else { return };
        let end = match kind {
            EventKind::Complete { duration } => time.saturating_add((*duration).max(0)),
            _ => *time,
        };
        self.0 = Some(self.0.map_or((*time, end), |(first, last)| (first.min(*time), last.max(end))));
    }
}

/// Collects the figures.
struct Collector<'f> {
    slices: Slices,
    found: Found<'f>,
}

struct Found<'f> {
    filter: Option<&'f Filter>,
    /// Whether a category passes the filter, by key.
    wanted: Vec<bool>,
    names: TrackNames,
    first: i64,
    /// The length of a part.
    length: i64,
    /// Slices on threads and on other tracks, in each part.
    parts: Vec<[Rows; 2]>,
    trace: Trace,
    is_late: bool,
}

impl SliceSink for Found<'_> {
    fn slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        if self.filter.is_some() && !self.wanted.get(slice.category.0 as usize).is_some_and(|wanted| *wanted)
        {
            return;
        }
        let part = slice.start.saturating_sub(self.first).max(0) / self.length;
        let part = usize::try_from(part).unwrap_or(usize::MAX).min(self.parts.len() - 1);
        let is_interval = self.names.tid(slice.track).is_none();
        self.parts[part][usize::from(is_interval)].add(slice.name.0, std::slice::from_ref(slice));
    }

    fn open_slice(&mut self, _: &Slice, _: &mut [Frame]) {
        self.trace.open_slices += 1;
    }

    fn defect(&mut self, what: Defect, _: TrackId, _: i64, _: Key) {
        self.is_late |= what == Defect::Late;
    }
}

impl ItemVisitor for Collector<'_> {
    fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Track(track) => self.found.names.set(track),
            Item::Loss(_) => self.found.trace.losses += 1,
            Item::Trace(trace) => {
                self.found.trace.uuid = trace.uuid.or(self.found.trace.uuid);
                let clock = trace.clocks.first().map(|clock| clock.id);
                self.found.trace.clock = self.found.trace.clock.or(clock);
            }
            _ => {}
        }
        self.slices.item(item, &mut self.found);
        if let Some(filter) = self.found.filter {
            let (keys, wanted) = (self.slices.keys(), &mut self.found.wanted);
            while wanted.len() < keys.len() {
                let categories = keys.text(Key(wanted.len() as u32)); // the number of a key
                wanted.push(categories.split(',').any(|category| filter.matches(category)));
            }
        }
    }
}

impl Found<'_> {
    fn finish(mut self, keys: &Keys) -> Trace {
        for rows in &self.parts {
            let mut part = Part::new();
            for (is_interval, rows) in [false, true].into_iter().zip(rows) {
                for row in rows.iter() {
                    let name = keys.text(row.what.map_or(Key::OTHER, Key)).to_owned();
                    let category = row.category.map_or(SEVERAL, |category| keys.text(category)).to_owned();
                    if category != SEVERAL {
                        self.trace.categories.insert(category.clone());
                    }
                    let [p50, p99] = row.quantiles([0.5, 0.99]);
                    let count = i64::try_from(row.count).unwrap_or(i64::MAX);
                    let figures = [count, row.total, p50, p99];
                    part.insert(Name { name, is_interval }, Row { figures, category });
                }
            }
            self.trace.parts.push(part);
        }
        self.trace
    }
}

/// Reads a trace, in this many parts of equal time.
pub(super) fn read(
    path: &PathBuf,
    opening: Opening,
    parts: usize,
    filter: Option<&Filter>,
) -> Result<(Trace, Outcome), String> {
    let (mut first, mut length) = (0, i64::MAX);
    let once = || {
        let what = "it has to be read twice: save it to a file";
        stream_identity(path).map_or(Ok(()), |_| Err(format!("{}: {what}", path.display())))
    };
    if parts > 1 {
        once()?;
        let mut found = Span::default();
        show(path, opening, false, &mut found)?;
        if let Some((begin, end)) = found.0 {
            (first, length) = (begin, (end.saturating_sub(begin) / parts as i64).saturating_add(1));
        }
    }
    let mut is_late = false;
    loop {
        let slices = if is_late { Slices::in_order(tempfile::tempfile) } else { Slices::new() };
        let found = Found {
            filter,
            wanted: Vec::new(),
            names: TrackNames::default(),
            first,
            length,
            parts: std::iter::repeat_with(Default::default).take(parts).collect(),
            trace: Trace { path: shown(path), ..Trace::default() },
            is_late: false,
        };
        let mut collector = Collector { slices, found };
        let summary = show(path, opening, false, &mut collector)?;
        let Collector { mut slices, mut found } = collector;
        slices.finish(&mut found).map_err(unsorted)?;
        if !found.is_late || is_late {
            if found.trace.open_slices > 0 {
                let open = count(found.trace.open_slices, "slice");
                complain(format_args!("{}: left out: {open} without an end", path.display()));
            }
            let outcome = summary.outcome();
            return Ok((found.finish(&slices.into_keys()), outcome));
        }
        once()?;
        is_late = true;
    }
}
