//! Clears away what a program that crashes all day leaves in the machine's memory.
//!
//! Runs on the session's own thread, in small portions. How many files there are in `/dev/shm` is for other
//! users to decide, and while this thread looks at them the ring fills. A thread of its own would take a core
//! from the program for as long as they like instead.

use std::cmp::Reverse;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hairline_formats::truncate_utf8;
use hairline_shm::recover::{DeadRegion, Found, Life, Search, room};

/// The part of `/dev/shm` that the regions of dead processes may take.
const SHARE: u64 = 4;

/// The time that the first portion may take, and each one after that. A program that crashes at its start
/// gets no further than the first: the regions that 100 crashes left are found in 3 ms.
const PORTIONS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(1));

/// The time from one portion to the next: so it is 2 % of the thread's time.
const PAUSE: Duration = Duration::from_millis(50);

/// Directory entries between two looks at the time, at some 2 us each.
const ENTRIES: usize = 16;

/// Regions that are remembered; more are for the next session.
const MOST: usize = 4096;

/// Removes the oldest regions that processes of this program left when they died, where there is no room for all of them: but for the
/// newest one, so many that what is left takes no more than a quarter of `/dev/shm`.
#[derive(Debug)]
pub(crate) struct Pruning {
    state: State,
    /// When the last portion was done.
    last: Option<Instant>,
}

#[derive(Debug)]
enum State {
    Searching {
        search: Search,
        process_name: String,
        dead: Vec<Dead>,
    },
    /// The regions that are to go.
    Removing(Vec<Dead>),
    Done,
}

impl Pruning {
    /// `process_name`: the program's.
    pub(crate) fn new(process_name: &str) -> Self {
        let process_name = truncate_utf8(process_name, 63).to_owned(); // as the region has it
        let searching = |search| State::Searching { search, process_name, dead: Vec::new() };
        Self { state: Search::new().map_or(State::Done, searching), last: None }
    }

    /// Does the next portion, if it is time for one.
    pub(crate) fn proceed(&mut self) {
        if matches!(self.state, State::Done) || self.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        let portion = if self.last.is_none() { PORTIONS.0 } else { PORTIONS.1 };
        let began = Instant::now();
        while !matches!(self.state, State::Done) && began.elapsed() < portion {
            self.state = std::mem::replace(&mut self.state, State::Done).next();
        }
        self.last = Some(Instant::now());
    }
}

impl State {
    fn next(self) -> Self {
        match self {
            Self::Searching { mut search, process_name, mut dead } => match search.step(ENTRIES) {
                Some(found) if dead.len() < MOST => {
                    dead.extend(found.and_then(|found| Dead::of(found, &process_name)));
                    Self::Searching { search, process_name, dead }
                }
                _ => {
                    dead.sort_by_key(|dead| Reverse(dead.last_look));
                    Self::Removing(room().map_or(Vec::new(), |room| surplus(dead, room / SHARE)))
                }
            },
            // To give its pages back takes the kernel a while.
            Self::Removing(mut surplus) => match surplus.pop() {
                Some(dead) => {
                    // Whoever is recovering it has it locked.
                    let _ = DeadRegion::open(&dead.path).and_then(DeadRegion::remove);
                    Self::Removing(surplus)
                }
                None => Self::Done,
            },
            Self::Done => Self::Done,
        }
    }
}

#[derive(Debug)]
struct Dead {
    path: PathBuf,
    bytes: u64,
    last_look: u64,
}

impl Dead {
    fn of(found: Found, process_name: &str) -> Option<Self> {
        let facts = found.facts.ok()?;
        let is_ours = found.life == Life::Dead && facts.process_name == process_name;
        is_ours.then_some(Self { path: found.path, bytes: found.len, last_look: facts.last_look })
    }
}

/// Of the regions, the newest first, those for which there is no room.
fn surplus(mut dead: Vec<Dead>, room: u64) -> Vec<Dead> {
    let mut taken = 0;
    let fits = |dead: &&Dead| {
        taken += dead.bytes;
        taken <= room
    };
    let kept = dead.iter().take_while(fits).count().max(1).min(dead.len());
    dead.split_off(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surplus_of(bytes: &[u64], room: u64) -> usize {
        let dead = bytes.iter().map(|bytes| Dead { path: PathBuf::new(), bytes: *bytes, last_look: 0 });
        surplus(dead.collect(), room).len()
    }

    #[test]
    fn the_oldest_go_where_there_is_no_room_and_the_newest_stays() {
        assert_eq!(surplus_of(&[], 10), 0);
        assert_eq!(surplus_of(&[10], 10), 0);
        assert_eq!(surplus_of(&[11], 10), 0);
        assert_eq!(surplus_of(&[4, 4, 4, 1], 10), 2, "none is skipped for a smaller one that is older");
        assert_eq!(surplus_of(&[11, 1, 1], 10), 2);
        assert_eq!(surplus_of(&[1; 10], 10), 0);
    }
}
