//! Readings of the machine's clocks, of which importers complain where they go back in time, as those of traces that are merged may.

use crate::model::Clock;

/// When clocks were last read.
#[derive(Debug, Default)]
pub(crate) struct Readings(Option<u64>);

impl Readings {
    /// Whether these are later than all before them.
    pub(crate) fn are_later(&mut self, clocks: &[Clock]) -> bool {
        let time = clocks.first().map(|clock| clock.time);
        let are_later = time > self.0;
        self.0 = self.0.max(time);
        are_later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn earlier_ones_and_none_are_not_later() {
        let mut readings = Readings::default();
        let later = [5, 3, 5, 9].map(|time| readings.are_later(&[Clock { id: 6, time }]));
        assert_eq!((later, readings.are_later(&[])), ([true, false, false, true], false));
    }
}
