//! A table of interned values.

use std::collections::BTreeMap;

/// Values by interning id. Consecutive ids, as all known writers use them, are in a vector. Ids with large
/// gaps are in a map. One value is stored in place: a trace may have millions of sequences with a name each.
#[derive(Debug, Default)]
pub(super) enum Table<T> {
    #[default]
    None,
    One(u64, T),
    Many(Box<Filled<T>>),
}

#[derive(Debug)]
pub(super) struct Filled<T> {
    row: Vec<Option<T>>,
    far: BTreeMap<u64, T>,
    things: usize,
}

/// The allowed gap between an id and the number of values. An id is one byte of input, but an element of the
/// vector needs more memory.
const GAP: usize = 64;

/// Up to this size a vector is no longer than it must be, since most sequences of a large trace have few ids.
const FEW: usize = 8;

impl<T> Table<T> {
    /// Sets the value of an id.
    pub(super) fn set(&mut self, iid: u64, thing: T) {
        if let Self::Many(filled) = self {
            return filled.set(iid, thing);
        }
        *self = match std::mem::take(self) {
            Self::One(first, known) if first != iid => {
                let mut filled = Box::new(Filled { row: Vec::new(), far: BTreeMap::new(), things: 0 });
                filled.set(first, known);
                filled.set(iid, thing);
                Self::Many(filled)
            }
            _ => Self::One(iid, thing),
        };
    }

    /// Returns the value of an id.
    #[inline]
    pub(super) fn get(&self, iid: u64) -> Option<&T> {
        match self {
            Self::Many(filled) => {
                let near = usize::try_from(iid).ok().and_then(|index| filled.row.get(index)?.as_ref());
                near.or_else(|| filled.far(iid))
            }
            Self::One(known, thing) if *known == iid => Some(thing),
            _ => None,
        }
    }
}

impl<T> Filled<T> {
    fn set(&mut self, iid: u64, thing: T) {
        self.things += 1;
        match self.near(iid) {
            Some(index) => {
                self.put(index, thing);
                self.far.remove(&iid);
            }
            None => {
                self.far.insert(iid, thing);
            }
        }
        if self.things.is_power_of_two() {
            self.bring_near();
        }
    }

    /// The place of an id in the vector, if there is room for it.
    fn near(&self, iid: u64) -> Option<usize> {
        usize::try_from(iid).ok().filter(|index| *index <= GAP + 4 * self.things)
    }

    fn put(&mut self, index: usize, thing: T) {
        if index >= self.row.len() {
            if index < FEW {
                self.row.reserve_exact(index + 1 - self.row.len());
            }
            self.row.resize_with(index + 1, || None);
        }
        self.row[index] = Some(thing);
    }

    /// Moves the values to the vector that have room there by now: ids that are shared by several sequences
    /// come in any order.
    fn bring_near(&mut self) {
        while let Some(first) = self.far.first_entry()
            && let Some(index) = usize::try_from(*first.key()).ok().filter(|i| *i <= GAP + 4 * self.things)
        {
            let thing = first.remove();
            self.put(index, thing);
        }
    }

    #[inline(never)]
    fn far(&self, iid: u64) -> Option<&T> {
        self.far.get(&iid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_thing_of_a_number_counts_however_large_the_number() {
        let mut table = Table::default();
        assert_eq!(table.get(1), None);
        table.set(1, 5);
        assert_eq!((table.get(1), table.get(2)), (Some(&5), None));
        for iid in [1, 2, u64::MAX, 600, 2] {
            table.set(iid, iid * u64::from(iid < 100));
        }
        assert_eq!(table.get(1), Some(&1));
        (0..200).for_each(|iid| table.set(iid, 7));
        table.set(600, 8);
        assert_eq!([2, u64::MAX, 600].map(|iid| table.get(iid).copied()), [Some(7), Some(0), Some(8)]);
        assert_eq!((table.get(5000), table.get(u64::MAX - 1)), (None, None));
        let Table::Many(filled) = table else { panic!() };
        assert!(filled.row.len() < 2000);
        assert_eq!(filled.far.keys().collect::<Vec<_>>(), [&u64::MAX], "600 is near by now");
    }
}
