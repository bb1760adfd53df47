//! The free slots, in groups whose memory can be given back.

use crate::on::base::few::Few;
use crate::on::base::lock::{Grow, Mutex};
use crate::on::base::memory::List;
use crate::on::base::this_thread;
use crate::on::bridges::tracing::slots::pages::{GROUP, Pages};

/// Number of slots that keep their memory, also that of their fields, for the next spans. Those of a burst
/// return it.
pub(super) const KEEPING: u32 = 4096;

/// The most groups.
const GROUPS: usize = 1 << (u32::BITS - GROUP.ilog2());

/// The free slots that no thread has.
#[derive(Debug)]
pub(super) struct Pool(Mutex<Groups>);

#[derive(Debug)]
struct Groups {
    /// The groups that were ever used.
    all: List<Group>,
    /// Those that may have a free slot; the last one is used first.
    open: List<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Group {
    /// A bit for each slot: whether it is free, and in the pool.
    free: u32,
    is_open: bool,
    /// The generation from which its slots go on, once their memory was given back.
    generation: Option<u32>,
}

const ALL: u32 = u32::MAX;

/// The most slots that are put back at a time.
pub(super) const MOST: usize = 64;

impl Grow for Groups {
    fn with_room(entries: usize) -> Self {
        Self { all: Grow::with_room(entries), open: Grow::with_room(entries) }
    }

    fn entries(&self) -> usize {
        self.all.len()
    }

    fn has_room(&self, more: usize) -> bool {
        self.all.has_room(more) && self.open.capacity() >= self.all.len() + more // each is open once
    }

    fn take_over(&mut self, smaller: &mut Self) {
        self.all.take_over(&mut smaller.all);
        self.open.take_over(&mut smaller.open);
    }
}

impl Groups {
    /// Returns the number of a group with a free slot. The caller has made room for one more group.
    fn with_free(&mut self) -> Option<u32> {
        while let Some(last) = self.open.last() {
            let group = &mut self.all[*last as usize];
            if group.free != 0 {
                return Some(*last);
            }
            group.is_open = false;
            self.open.pop();
        }
        let number = self.all.len();
        if number == GROUPS {
            return None;
        }
        self.all.push(Group { free: ALL, is_open: true, generation: None });
        self.open.push(number as u32);
        Some(number as u32)
    }

    /// Makes these slots of a group free.
    fn free(&mut self, number: u32, slots: u32) -> &mut Group {
        let group = &mut self.all[number as usize];
        group.free |= slots;
        if !std::mem::replace(&mut group.is_open, true) {
            self.open.push(number);
        }
        group
    }
}

impl Pool {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Groups { all: List::new(), open: List::new() }))
    }

    /// Takes free slots, as many as fit `into`. Returns their number.
    pub(super) fn take(&self, pages: &'static Pages, into: &mut [u32]) -> usize {
        let _busy = this_thread::busy(); // for the lock
        let Some(mut groups) = self.0.lock_unless_lost_with_room(|groups| (groups, 1)) else { return 0 };
        let mut taken = 0;
        while let Some(place) = into.get_mut(taken) {
            // There is room for one group, and that has a slot for each place.
            let Some(number) = groups.with_free() else { break };
            let group = &mut groups.all[number as usize];
            if let Some(generation) = group.generation.take() {
                let slots = (number * GROUP..).take(GROUP as usize).filter_map(|index| pages.get(index));
                slots.for_each(|slot| slot.count.go_on_from(generation));
            }
            *place = number * GROUP + group.free.trailing_zeros();
            group.free &= group.free - 1;
            taken += 1;
        }
        taken
    }

    /// Puts free slots back, at most [`MOST`].
    pub(super) fn put_back(&self, pages: &'static Pages, indices: &[u32]) {
        let _busy = this_thread::busy(); // for the lock
        let mut unused = Few::<u32, MOST>::new(0);
        let Some(mut groups) = self.0.lock_unless_lost() else { return };
        for index in indices {
            let number = index / GROUP;
            let group = groups.free(number, 1 << (index % GROUP));
            if group.free == ALL && *index >= KEEPING {
                group.free = 0; // this thread's, for now
                unused.push(number);
            }
        }
        drop(groups);
        for number in unused.as_slice() {
            self.give_back(pages, *number);
        }
    }

    /// Gives the memory of a group back whose slots are all this thread's, and puts them into the pool.
    #[cold]
    fn give_back(&self, pages: &'static Pages, number: u32) {
        let slots = (number * GROUP..).take(GROUP as usize).filter_map(|index| pages.get(index));
        let next = slots.map(|slot| slot.count.generation()).max();
        let is_given_back = pages.release(number);
        if let Some(mut groups) = self.0.lock_unless_lost() {
            groups.free(number, ALL).generation = next.filter(|_| is_given_back);
        }
    }
}
