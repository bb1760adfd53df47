//! The tables of callsites for series of the `metrics` crate, and of the units of their names.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use metrics::Key;

use crate::on::base::lock::{Fixed, Map, RwLock, WriteGuard};
use crate::on::base::sets::Spread;
use crate::on::callsite::Callsite;
use crate::vocabulary::Unit;

/// The kind of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeriesKind {
    Counter = 0,
    Gauge = 1,
    Histogram = 2,
}

/// A name with its labels, and the value so far.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) key: Key,
    pub(crate) callsite: &'static Callsite,
    /// The total of a counter; the bits of a gauge's value.
    pub(crate) value: AtomicU64,
}

pub(crate) static TABLES: RwLock<Tables> = RwLock::new(Tables {
    series: [const { Map::with_hasher(Fixed::new()) }; 3],
    units: [const { Map::with_hasher(Fixed::new()) }; 3],
});

pub(crate) struct Tables {
    /// The series of each kind, by the hash of their keys. A series whose hash another one has is at the next
    /// free number: none is ever removed.
    series: [Map<u64, Arc<Series>, Spread>; 3],
    /// The units of each kind, by name.
    units: [Map<String, Unit>; 3],
}

impl Tables {
    /// Returns the series of the kind.
    pub(crate) fn series(&mut self, kind: SeriesKind) -> &mut Map<u64, Arc<Series>, Spread> {
        &mut self.series[kind as usize]
    }

    /// Returns the units of the kind.
    pub(crate) fn units(&mut self, kind: SeriesKind) -> &mut Map<String, Unit> {
        &mut self.units[kind as usize]
    }

    /// Returns the unit of the name.
    pub(crate) fn unit(&self, kind: SeriesKind, name: &str) -> Unit {
        self.units[kind as usize].get(name).copied().unwrap_or_default()
    }

    /// Returns the series with the key, or the number that it gets. Allocates nothing.
    pub(crate) fn find(&self, kind: SeriesKind, key: &Key) -> Result<&Arc<Series>, u64> {
        let mut number = key.get_hash();
        while let Some(series) = self.series[kind as usize].get(&number) {
            if is_same(&series.key, key) {
                return Ok(series);
            }
            number = number.wrapping_add(1);
        }
        Err(number)
    }

    /// Returns the number of series of all kinds.
    pub(crate) fn len(&self) -> usize {
        self.series.iter().map(Map::len).sum()
    }
}

/// Whether the keys have the same name and labels, whatever the order of these. `Key`'s own comparison
/// allocates for many labels.
fn is_same(one: &Key, other: &Key) -> bool {
    let count = |key: &Key, label| key.labels().filter(|own| *own == label).count();
    one.name() == other.name()
        && one.labels().len() == other.labels().len()
        && one.labels().all(|label| count(one, label) == count(other, label))
}

/// The tables, locked for a fork.
pub(crate) type Held = WriteGuard<'static, Tables>;

/// Locks the tables for a fork; `None` if that is not possible until `until`.
pub(crate) fn hold(until: Instant) -> Option<Held> {
    TABLES.try_write_until(until)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(labels: &[(&'static str, &'static str)]) -> Key {
        Key::from(("name", labels))
    }

    #[test]
    fn labels_are_compared_whatever_their_order() {
        let same = [key(&[("a", "1"), ("b", "2"), ("c", "3")]), key(&[("c", "3"), ("a", "1"), ("b", "2")])];
        assert!(is_same(&same[0], &same[1]));
        assert_eq!(same[0].get_hash(), same[1].get_hash());
        let others = [&[][..], &[("a", "1")], &[("a", "1"), ("b", "2"), ("c", "4")]];
        assert!(others.iter().all(|labels| !is_same(&same[0], &key(labels))));
        assert!(!is_same(
            &key(&[("a", "1"), ("a", "1"), ("b", "2")]),
            &key(&[("a", "1"), ("b", "2"), ("b", "2")])
        ));
    }
}
