//! Finds slices with a begin and an end that cross complete slices of their thread: one begins inside the
//! other and ends after it. Where the complete slice becomes a begin and an end too, importers find the begin
//! of each end by its place, so both slices have false durations.

/// What reports say of such slices.
pub(super) const CROSSING: &str =
    "slices that cross complete slices of their thread, so that importers show false durations";

/// What reports say of complete slices of a thread whose begins and ends are not in order of time: which of
/// them cross is known only when all are sorted.
pub(super) const UNSURE: &str =
    "slices out of order, which may cross others of their thread, so that importers show false durations";

/// The limit for open slices.
const MOST: usize = 4096;

#[derive(Debug)]
enum Open {
    Begun,
    Complete { end: i64 },
}

/// The open slices of a thread from its first complete slice on.
#[derive(Debug, Default)]
pub(super) struct Crossing {
    open: Vec<Open>,
    latest: i64,
    has_complete: bool,
    /// Whether a begin or an end came after later events.
    is_unsorted: bool,
}

impl Crossing {
    /// Notes that a begin or an end comes after later events. Returns the number of slices that is unsure now.
    pub(super) fn unsort(&mut self) -> u64 {
        u64::from(!std::mem::replace(&mut self.is_unsorted, true) && self.has_complete)
    }

    /// Adds a complete slice. One that comes after later events is not kept. Returns the number of slices that
    /// is unsure.
    pub(super) fn complete(&mut self, begin: i64, end: i64) -> u64 {
        self.has_complete = true;
        if begin >= self.latest {
            self.pass(begin);
            self.push(Open::Complete { end });
        }
        self.is_unsorted.into()
    }

    pub(super) fn begin(&mut self, time: i64) {
        self.pass(time);
        self.push(Open::Begun);
    }

    /// Ends the innermost slice with a begin. Returns the number of complete slices that it crosses.
    pub(super) fn end(&mut self, time: i64) -> u64 {
        self.latest = self.latest.max(time);
        let begin = self.open.iter().rposition(|open| matches!(open, Open::Begun)).unwrap_or(0);
        let outlasts = |open: &Open| matches!(open, Open::Complete { end } if *end > time);
        let mut crossing = self.open.drain(begin..).filter(outlasts).count();
        while self.open.pop_if(|open| matches!(open, Open::Complete { end } if *end < time)).is_some() {
            crossing += 1;
        }
        crossing as u64
    }

    fn pass(&mut self, time: i64) {
        self.latest = self.latest.max(time);
        while self.open.pop_if(|open| matches!(open, Open::Complete { end } if *end <= time)).is_some() {}
    }

    fn push(&mut self, open: Open) {
        if self.open.len() < MOST {
            self.open.push(open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_cross_complete_ones_are_counted() {
        let mut thread = Crossing::default();
        thread.complete(10, 110); // inside a slice that began before
        assert_eq!(thread.end(50), 1);
        thread.complete(200, 250);
        thread.begin(210);
        assert_eq!(thread.end(260), 1);
        thread.begin(300);
        assert_eq!(thread.end(310), 0);
    }

    #[test]
    fn complete_slices_are_unsure_on_a_thread_whose_others_are_not_in_order() {
        let mut thread = Crossing::default();
        assert_eq!((thread.unsort(), thread.complete(10, 20), thread.unsort()), (0, 1, 0));
        let mut thread = Crossing::default();
        assert_eq!((thread.complete(10, 20), thread.unsort(), thread.unsort()), (0, 1, 0));
    }

    #[test]
    fn slices_that_nest_or_touch_are_not() {
        let mut thread = Crossing::default();
        thread.begin(0);
        thread.complete(10, 50);
        thread.begin(20);
        assert_eq!((thread.end(50), thread.end(50)), (0, 0));
        thread.complete(60, 70);
        thread.begin(70);
        assert_eq!(thread.end(80), 0);
    }
}
