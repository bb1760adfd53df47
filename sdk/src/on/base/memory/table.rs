//! A hash table in memory from the kernel. Its callers hash and compare.

use crate::on::base::lock::Grow;
use crate::on::base::memory::list::List;

/// Entries with a hash each. Several may have the same.
///
/// A slot is empty, or has an entry. An entry is in the slot that [`spread`] and the number of slots give for
/// its hash, or in one after it, with no empty slot in between.
#[derive(Debug)]
pub(crate) struct Table<T> {
    slots: List<Option<(u64, T)>>,
    len: usize,
}

impl<T> Table<T> {
    /// Creates an empty table, without memory.
    pub(crate) const fn new() -> Self {
        Self { slots: List::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the slots from the first of the hash on, once around.
    fn from(&self, hash: u64) -> impl Iterator<Item = usize> + use<T> {
        let mask = self.slots.len().wrapping_sub(1);
        (0..self.slots.len()).map(move |n| (spread(hash).wrapping_add(n)) & mask)
    }

    fn slot(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<usize> {
        for slot in self.from(hash) {
            match &self.slots[slot] {
                Some((own, entry)) if *own == hash && is(entry) => return Some(slot),
                Some(_) => {}
                None => return None,
            }
        }
        None
    }

    /// Returns the entry with this hash for which `is` returns true.
    pub(crate) fn get(&self, hash: u64, is: impl Fn(&T) -> bool) -> Option<&T> {
        self.slot(hash, is).and_then(|slot| self.slots[slot].as_ref()).map(|(_, entry)| entry)
    }

    /// As [`get`](Self::get), mutable.
    pub(crate) fn get_mut(&mut self, hash: u64, is: impl Fn(&T) -> bool) -> Option<&mut T> {
        let slot = self.slot(hash, is)?;
        self.slots[slot].as_mut().map(|(_, entry)| entry)
    }

    /// Adds an entry. The caller has not found it.
    pub(crate) fn insert(&mut self, hash: u64, entry: T) {
        if !self.has_room(1) {
            let mut larger = Self::with_room((2 * self.len).max(8));
            larger.take_over(self);
            *self = larger;
        }
        if let Some(slot) = self.from(hash).find(|slot| self.slots[*slot].is_none()) {
            self.slots[slot] = Some((hash, entry));
            self.len += 1;
        }
    }

    /// Removes an entry. Frees nothing but the entry.
    pub(crate) fn remove(&mut self, hash: u64, is: impl Fn(&T) -> bool) -> Option<T> {
        let mut hole = self.slot(hash, is)?;
        let removed = self.slots[hole].take().map(|(_, entry)| entry);
        self.len -= 1;
        let mask = self.slots.len() - 1;
        let mut slot = (hole + 1) & mask;
        while let Some((hash, _)) = &self.slots[slot] {
            // An entry moves into the hole unless its first slot is behind the hole.
            let distance = slot.wrapping_sub(spread(*hash)) & mask;
            if distance >= slot.wrapping_sub(hole) & mask {
                self.slots.swap(hole, slot);
                hole = slot;
            }
            slot = (slot + 1) & mask;
        }
        removed
    }

    /// Iterates over all entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten().map(|(_, entry)| entry)
    }

    /// Removes all entries, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        if self.len != 0 {
            self.slots.iter_mut().for_each(|slot| *slot = None);
            self.len = 0;
        }
    }
}

/// The first slot of a hash, before it is cut to the number of slots. Numbers that follow each other are
/// hashes too.
fn spread(hash: u64) -> usize {
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Grow for Table<T> {
    fn with_room(entries: usize) -> Self {
        let mut slots = List::new();
        let count = (entries + entries / 2 + 1).next_power_of_two(); // some are always empty
        slots.reserve(count);
        slots.extend(std::iter::repeat_with(|| None).take(count));
        Self { slots, len: 0 }
    }

    fn entries(&self) -> usize {
        self.len
    }

    #[inline]
    fn has_room(&self, more: usize) -> bool {
        4 * (self.len + more) <= 3 * self.slots.len()
    }

    fn take_over(&mut self, smaller: &mut Self) {
        smaller.slots.iter_mut().filter_map(Option::take).for_each(|(hash, entry)| self.insert(hash, entry));
        smaller.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn a_table_does_what_a_map_does() {
        let (mut table, mut map) = (Table::<(u64, u64)>::new(), HashMap::new());
        let mut random = 1_u64;
        for n in 0..50_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = (random >> 40) % 700;
            let hash = key / 2; // two keys have one hash
            let of_key = |entry: &(u64, u64)| entry.0 == key;
            match random % 3 {
                0 => assert_eq!(table.remove(hash, of_key).map(|entry| entry.1), map.remove(&key)),
                _ => match table.get_mut(hash, of_key) {
                    Some(entry) => {
                        assert_eq!(map.insert(key, n), Some(entry.1));
                        entry.1 = n;
                    }
                    None => {
                        table.insert(hash, (key, n));
                        assert_eq!(map.insert(key, n), None);
                    }
                },
            }
            assert_eq!(
                (table.len(), table.get(hash, of_key).map(|e| e.1)),
                (map.len(), map.get(&key).copied())
            );
        }
        let all: HashMap<u64, u64> = table.iter().copied().collect();
        assert_eq!(all, map);
        table.clear();
        assert_eq!((table.len(), table.iter().count()), (0, 0));
    }

    #[test]
    fn a_table_that_was_made_with_room_does_not_grow() {
        for entries in 1..200 {
            let mut table = Table::with_room(entries);
            assert!(table.has_room(entries), "{entries}");
            let slots = table.slots.len();
            (0..entries as u64).for_each(|n| table.insert(n, n));
            assert_eq!(table.slots.len(), slots);
        }
    }
}
