//! The slices of a thread that the next one may overlap.

use std::collections::VecDeque;

/// A begin and an end.
pub(crate) type Span = (i64, i64);

#[derive(Debug, Default)]
pub(crate) struct Neighbours {
    /// The latest slice and those around it, the outermost first.
    pub(crate) open: Vec<Span>,
    /// The latest of the others. Boxed, because there may be millions of threads with one slice each.
    over: Option<Box<Over>>,
}

#[derive(Debug, Default)]
struct Over(VecDeque<Span>);

impl Neighbours {
    /// Ends the slices that are not around one with this begin. Of those that are over it keeps `most`, and
    /// passes older ones to `forget`.
    pub(crate) fn pass(&mut self, begin: i64, most: usize, mut forget: impl FnMut(Span)) {
        while let Some(last) = self.open.pop_if(|(b, e)| *e <= begin || *b > begin) {
            self.end(last, most, &mut forget);
        }
    }

    /// Adds a slice that is over.
    pub(crate) fn end(&mut self, slice: Span, most: usize, forget: impl FnOnce(Span)) {
        let Over(over) = &mut **self.over.get_or_insert_default();
        if over.len() >= most
            && let Some(oldest) = over.pop_front()
        {
            forget(oldest);
        }
        over.push_back(slice);
    }

    /// The latest slices that are over, the oldest first.
    pub(crate) fn over(&self) -> impl DoubleEndedIterator<Item = &Span> {
        self.over.iter().flat_map(|over| over.0.iter())
    }

    /// Adds a slice inside the open ones.
    pub(crate) fn begin(&mut self, slice: Span) {
        if self.open.capacity() == 0 {
            self.open.reserve_exact(1);
        }
        self.open.push(slice);
    }
}
