//! The open slices of a thread. An end of FXT closes the innermost one, whatever its name. In other formats
//! an end closes the innermost slice with its name and category, and the slices inside it.
//!
//! Which slices are open is known in the order of the file. Importers sort by time. So in a thread whose
//! events are not in that order, an end may close another slice, as soon as names decide.
//!
//! A complete slice ends by itself, and importers then close what began inside it and is still open. A later
//! end of such a slice, by its name, closes nothing.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::{Categories, Event, Text};

/// The limit for open slices whose name is known.
const MOST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct OpenSlices {
    /// Name and category of each.
    labels: Vec<(u64, u64)>,
    /// The number of further open slices.
    more: usize,
    /// The ends of complete slices, and how many slices were open at the begin of each.
    complete: Vec<(i64, usize)>,
    latest: i64,
    is_unsorted: bool,
    has_labelled_ends: bool,
    /// The number of slices that a complete slice around them has closed since the last record. Importers see
    /// that at the next one.
    closed_around: u64,
}

/// What an end needs in FXT.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// So many end records, one for each slice that it closes.
    Records(usize),
    /// One record, which may close a slice of another name.
    Doubtful,
}

impl OpenSlices {
    /// Returns whether an end with a label, earlier in the file, may belong to another slice for that begin.
    pub(super) fn begin(&mut self, event: &Event<'_>) -> bool {
        let is_doubtful = self.has_labelled_ends && event.time < self.latest;
        self.pass(event.time);
        self.end_complete(event.time);
        self.closed_around = 0;
        if self.labels.len() < MOST {
            self.labels.push(labels(event));
        } else {
            self.more += 1;
        }
        is_doubtful
    }

    /// Adds a complete slice. What comes after later events of its thread is not kept.
    pub(super) fn complete(&mut self, begin: i64, end: i64) {
        self.end_complete(begin);
        self.closed_around = 0;
        if begin >= self.latest && self.complete.len() < MOST && self.more == 0 {
            self.complete.push((end, self.labels.len()));
        }
    }

    /// The number of slices that a complete slice around them has closed, if no record follows.
    pub(super) fn closed_around(&self) -> u64 {
        self.closed_around
    }

    /// Closes what is still open in complete slices that are over. At its very end, a complete slice with an
    /// open one inside it is not over yet: the end of the inner one may come at the same time.
    #[inline]
    fn end_complete(&mut self, time: i64) {
        let (labels, closed) = (&mut self.labels, &mut self.closed_around);
        while let Some((_, open)) =
            self.complete.pop_if(|(end, open)| *end < time || *end == time && labels.len() <= *open)
        {
            *closed += labels.len().saturating_sub(open) as u64;
            labels.truncate(open);
        }
    }

    pub(super) fn end(&mut self, event: &Event<'_>) -> Ends {
        let ends = self.end_any(event);
        if ends != Ends::Records(0) {
            self.closed_around = 0;
        }
        ends
    }

    fn end_any(&mut self, event: &Event<'_>) -> Ends {
        self.pass(event.time);
        self.end_complete(event.time);
        let label = labels(event);
        self.has_labelled_ends |= label != (NONE, NONE);
        let matches = |open: &(u64, u64)| closes(label, *open);
        if self.more > 0 {
            self.more -= 1;
            return if label == (NONE, NONE) { Ends::Records(1) } else { Ends::Doubtful };
        }
        if self.is_unsorted && self.has_labelled_ends {
            self.close(self.labels.len().saturating_sub(1));
            return Ends::Doubtful;
        }
        let Some(top) = self.labels.last() else { return Ends::Records(1) };
        if matches(top) {
            self.close(self.labels.len() - 1);
            return Ends::Records(1);
        }
        let Some(place) = self.labels.iter().rposition(matches) else { return Ends::Records(0) };
        let count = self.labels.len() - place;
        self.close(place);
        Ends::Records(count)
    }

    /// Closes all but the first `open` slices, and the complete ones inside them.
    #[inline]
    fn close(&mut self, open: usize) {
        self.labels.truncate(open);
        while self.complete.pop_if(|(_, around)| *around > open).is_some() {}
    }

    /// As `begin`, if the slice needs nothing more. Otherwise returns `false` and changes nothing.
    #[inline]
    pub(super) fn begin_in_order(&mut self, event: &Event<'_>) -> bool {
        self.begin_label(event.time, || labels(event))
    }

    /// As `begin_in_order`, for a name and a category by their numbers; 0 is none.
    #[inline]
    pub(super) fn begin_label(&mut self, time: i64, label: impl FnOnce() -> (u64, u64)) -> bool {
        if time < self.latest || self.labels.len() >= MOST {
            return false;
        }
        self.latest = time;
        self.end_complete(time);
        self.closed_around = 0;
        self.labels.push(label());
        true
    }

    /// As `end`, if the event closes the innermost slice, whose label is known. Otherwise returns `false`, and
    /// has closed no slice that is still open.
    #[inline]
    pub(super) fn end_innermost(&mut self, event: &Event<'_>) -> bool {
        self.end_label(event.time, labels(event))
    }

    /// As `end_innermost`, for a label as that of `begin_label`.
    #[inline]
    pub(super) fn end_label(&mut self, time: i64, label: (u64, u64)) -> bool {
        if self.latest <= time {
            self.end_complete(time);
        }
        let is_doubtful = self.is_unsorted || time < self.latest || self.more > 0;
        if is_doubtful || !self.labels.last().is_some_and(|open| closes(label, *open)) {
            return false;
        }
        self.close(self.labels.len() - 1);
        self.closed_around = 0;
        self.has_labelled_ends |= label != (NONE, NONE);
        self.latest = time;
        true
    }

    fn pass(&mut self, time: i64) {
        self.is_unsorted |= time < self.latest;
        self.latest = time;
    }
}

const NONE: u64 = 0;

/// Whether an end closes a slice, by the name and category of each.
#[inline]
fn closes((name, category): (u64, u64), open: (u64, u64)) -> bool {
    (name == NONE || open.0 == NONE || open.0 == name) && (category == NONE || open.1 == category)
}

#[inline]
fn labels(event: &Event<'_>) -> (u64, u64) {
    let category = match event.categories {
        Categories::None => NONE,
        Categories::One(category) => key(category),
        several @ Categories::Many(_) => {
            let mut joined = String::new();
            several.join(&mut joined);
            key(joined.as_str().into())
        }
    };
    (key(event.name), category)
}

fn key(text: Text<'_>) -> u64 {
    match text.id {
        _ if text.text.is_empty() => NONE,
        Some(id) => u64::from(id.0) + 1,
        None => {
            let mut hasher = DefaultHasher::new();
            text.text.hash(&mut hasher);
            hasher.finish() | 1 << 63
        }
    }
}
