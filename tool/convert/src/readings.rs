//! Clock readings in order of time. Importers report readings that go back in time as errors, and merged
//! traces may contain such readings.

use crate::Clock;

/// The time of the latest clock reading.
#[derive(Debug, Default)]
pub(crate) struct Readings(Option<u64>);

impl Readings {
    /// Returns whether these readings are later than all before, and records them.
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
