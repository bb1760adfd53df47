//! The places of values in a list, by a key that the values have.

use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;

/// Finds the places of values in a list by their keys. Its user passes `key_of`, the key of the value at a
/// place, so that an entry has 4 bytes and no key: a trace may have millions of tracks.
///
/// ```
/// use hairline_convert::Index;
///
/// let (tids, mut by_tid) = ([700_u64, 701], Index::default());
/// by_tid.insert(0, |place| tids[place as usize]);
/// by_tid.insert(1, |place| tids[place as usize]);
/// let find = |tid| by_tid.find(&tid, |place| tids[place as usize]);
/// assert_eq!((find(701), find(702)), (Some(1), None));
/// ```
#[derive(Debug, Default)]
pub struct Index {
    places: HashTable<u32>,
    hasher: RandomState,
}

impl Index {
    /// The place of the value with a key. Returns `None` if there is none.
    pub fn find<K: Hash + Eq>(&self, key: &K, key_of: impl Fn(u32) -> K) -> Option<u32> {
        self.places.find(self.hasher.hash_one(key), |place| key_of(*place) == *key).copied()
    }

    /// Adds the place of a value. Returns the place that its key had before.
    pub fn insert<K: Hash + Eq>(&mut self, place: u32, key_of: impl Fn(u32) -> K) -> Option<u32> {
        let key = key_of(place);
        let hash = self.hasher.hash_one(&key);
        if let Some(known) = self.places.find_mut(hash, |place| key_of(*place) == key) {
            return Some(std::mem::replace(known, place));
        }
        self.places.insert_unique(hash, place, |place| self.hasher.hash_one(key_of(*place)));
        None
    }
}
