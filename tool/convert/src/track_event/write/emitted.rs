//! The ids that were emitted on a sequence.

/// What an id is of. Each kind has ids of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Category,
    Name,
    AnnotationName,
    AnnotationText,
    Location,
}

/// Ids of all kinds. There may be as many sequences as ids, so the room is that of the ids that were emitted,
/// and not that of the greatest one.
#[derive(Debug, Default)]
pub(super) struct Emitted {
    /// A bit for each id and kind, in bytes: the id is the number of the byte.
    dense: Vec<u8>,
    /// While few ids were emitted: their bytes, in the order of the ids.
    sparse: Vec<Byte>,
}

#[derive(Clone, Copy, Debug)]
struct Byte {
    id: u32,
    kinds: u8,
}

/// The bytes that an id may take: eight in `sparse`, so that `dense` has its turn early.
const ROOM: usize = 64;

impl Emitted {
    /// Adds an id. Returns whether it is new.
    pub(super) fn add(&mut self, of: Of, id: u32) -> bool {
        let byte = self.byte(id);
        let is_new = *byte & bit(of) == 0;
        *byte |= bit(of);
        is_new
    }

    #[inline]
    pub(super) fn has(&self, of: Of, id: u32) -> bool {
        let kinds = self.dense.get(id as usize).copied().unwrap_or_else(|| self.sparse_kinds(id));
        kinds & bit(of) != 0
    }

    pub(super) fn clear(&mut self) {
        self.dense.clear();
        self.sparse.clear();
    }

    fn sparse_kinds(&self, id: u32) -> u8 {
        self.place(id).ok().and_then(|place| self.sparse.get(place)).map_or(0, |byte| byte.kinds)
    }

    fn place(&self, id: u32) -> Result<usize, usize> {
        self.sparse.binary_search_by_key(&id, |byte| byte.id)
    }

    /// The byte of an id.
    fn byte(&mut self, id: u32) -> &mut u8 {
        let index = id as usize;
        if index < self.dense.len() {
            return &mut self.dense[index];
        }
        match self.place(id) {
            Ok(place) => &mut self.sparse[place].kinds,
            Err(_) if index < (self.dense.len() + ROOM).max(ROOM * self.sparse.len()) => {
                self.make_dense(index);
                &mut self.dense[index]
            }
            Err(place) => {
                if self.sparse.capacity() == 0 {
                    self.sparse.reserve_exact(1); // there may be millions of threads
                }
                self.sparse.insert(place, Byte { id, kinds: 0 });
                &mut self.sparse[place].kinds
            }
        }
    }

    /// Moves the ids up to this one to `dense`.
    #[cold]
    fn make_dense(&mut self, index: usize) {
        self.dense.resize(index + 1, 0);
        let moved = self.sparse.partition_point(|byte| byte.id as usize <= index);
        for Byte { id, kinds } in self.sparse.drain(..moved) {
            self.dense[id as usize] = kinds;
        }
    }
}

fn bit(of: Of) -> u8 {
    1 << of as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_for_each_kind() {
        let ids = [7, 900_000, 64, 3, 70_000, 65, 5_000, 900_001, 7, 65, 70_000].into_iter().chain(0..20_000);
        let (mut emitted, mut seen) = (Emitted::default(), std::collections::HashSet::new());
        for id in ids {
            for of in [Of::Location, Of::Name] {
                assert_eq!(emitted.has(of, id), seen.contains(&(of as u8, id)), "{id}");
                assert_eq!(emitted.add(of, id), seen.insert((of as u8, id)), "{id}");
            }
            assert!(!emitted.has(Of::Category, id) && emitted.has(Of::Name, id));
        }
        emitted.clear();
        assert!(emitted.add(Of::Name, 7) && emitted.add(Of::Name, 70_000));
    }

    #[test]
    fn the_room_is_that_of_the_ids_that_were_emitted() {
        for step in [1, 50, 1_000, 100_000] {
            let mut emitted = Emitted::default();
            for id in (0..1_000).map(|n| n * step) {
                emitted.add(Of::Name, id);
            }
            let room = emitted.dense.len() + emitted.sparse.len() * size_of::<Byte>();
            assert!(room <= 1_000 * ROOM + ROOM, "step {step}: {room}");
        }
    }
}
