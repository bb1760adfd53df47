//! The entered spans of a thread that are above those in its thread-local.
//!
//! They are many where a program holds `span.enter()` across an `.await`: each waiting task then has an entry
//! on the thread that entered its span, and leaves it in any order. So each entry is found by its span, and a
//! left one stays as a gap until the gaps are as many as the entries.

use crate::on::base::lock::{Fixed, Map};
use crate::on::callsite::Callsite;
use crate::on::thread::slices::{self, OpenScope};

/// An entered span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The span's id.
    pub(crate) span: u64,
    pub(crate) callsite: &'static Callsite,
    /// The begin of its slice, if that was recorded.
    pub(crate) open: Option<OpenScope>,
}

impl Entry {
    /// Ends its slice, if that was recorded.
    pub(crate) fn end_slice(&self) {
        if let Some(open) = self.open {
            slices::end_slice(self.callsite, open);
        }
    }

    /// Returns the entry with an id that no begin has, but by chance: the end of its slice is counted and
    /// marked as out of order, wherever its begin is.
    pub(crate) fn out_of_order(mut self) -> Self {
        if let Some(open) = &mut self.open {
            open.id = !open.id;
        }
        self
    }
}

/// Entries in the order in which their spans were entered.
pub(crate) struct Far {
    places: Vec<Place>,
    /// The last place of each span.
    last: Map<u64, u32>,
    gaps: usize,
}

struct Place {
    /// `None`: a gap.
    entry: Option<Entry>,
    /// The place of the entry before this one of the same span.
    before: u32,
}

const NONE: u32 = u32::MAX;

/// Fewer gaps stay.
const FEW: usize = 64;

impl Far {
    pub(crate) const fn new() -> Self {
        Self { places: Vec::new(), last: Map::with_hasher(Fixed::new()), gaps: 0 }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.gaps
    }

    pub(crate) fn push(&mut self, entry: Entry) {
        let at = self.places.len() as u32; // a thread has not 2^32 entries
        let before = self.last.insert(entry.span, at).unwrap_or(NONE);
        self.places.push(Place { entry: Some(entry), before });
    }

    /// Returns the last entry.
    pub(crate) fn top(&self) -> Option<Entry> {
        self.places.last()?.entry // the last place is never a gap
    }

    /// Returns the entry that is `above` entries below the last one, if few gaps are between them.
    pub(crate) fn below_top(&self, above: usize) -> Option<Entry> {
        self.places.iter().rev().take(FEW).filter_map(|place| place.entry).nth(above)
    }

    /// Returns how many entries and gaps are below the last entry of the span.
    pub(crate) fn place_of(&self, span: u64) -> Option<usize> {
        self.last.get(&span).map(|at| *at as usize)
    }

    /// Removes and returns the last entry.
    pub(crate) fn pop(&mut self) -> Option<Entry> {
        let span = self.top()?.span;
        self.remove(span)
    }

    /// Removes and returns the last entry of the span.
    pub(crate) fn remove(&mut self, span: u64) -> Option<Entry> {
        let at = *self.last.get(&span)?;
        let place = self.places.get_mut(at as usize)?;
        let entry = place.entry.take();
        match place.before {
            NONE => self.last.remove(&span),
            before => self.last.insert(span, before),
        };
        self.gaps += 1;
        while self.places.last().is_some_and(|place| place.entry.is_none()) {
            self.places.pop();
            self.gaps -= 1;
        }
        if self.gaps > FEW.max(self.len()) {
            self.close_gaps();
        }
        entry
    }

    /// Moves all entries together, and returns memory that a burst has left.
    #[cold]
    fn close_gaps(&mut self) {
        let places = std::mem::take(&mut self.places);
        self.last.clear();
        self.gaps = 0;
        places.into_iter().filter_map(|place| place.entry).for_each(|entry| self.push(entry));
        self.last.shrink_to(2 * self.places.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::{CallsiteKind, Site};

    static SITE: Site = Site::NOWHERE;
    static CALLSITE: Callsite = Callsite::new(CallsiteKind::Scope, "t", "t", &[], &SITE);

    #[test]
    fn entries_are_found_and_removed_as_in_a_list() {
        let (mut far, mut list) = (Far::new(), Vec::new());
        let mut random = 1_u64;
        for step in 0..20_000_u64 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let span = 1 + (random >> 33) % 500; // often entered twice
            // The list grows, shrinks, and grows again.
            if (random >> 20) % 8 < [5, 3][(step / 4000) as usize % 2] {
                far.push(Entry { span, callsite: &CALLSITE, open: None });
                list.push(span);
            } else {
                let at = list.iter().rposition(|of| *of == span);
                let expected = at.map(|at| list.remove(at));
                assert_eq!(far.remove(span).map(|entry| entry.span), expected);
            }
            assert_eq!(far.len(), list.len());
            assert_eq!(far.top().map(|entry| entry.span), list.last().copied());
            assert!(far.places.len() <= 2 * far.len() + FEW + 1, "{} for {}", far.places.len(), far.len());
        }
        while let Some(span) = list.pop() {
            assert_eq!(far.pop().map(|entry| entry.span), Some(span));
        }
        assert!(far.pop().is_none() && far.places.is_empty());
    }
}
