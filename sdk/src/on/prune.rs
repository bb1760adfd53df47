//! Removes the regions that a program leaves in the machine's memory if it crashes again and again.
//!
//! Pruning runs on the drain thread, in small portions; where that thread has no open files of its own, one
//! portion runs on the thread that starts the session. Other users decide how many files there are in
//! `/dev/shm`, and the ring fills while the drain thread reads them. A separate thread would instead take a
//! core from the program for as long as they like.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hairline_formats::truncate_utf8;
use hairline_shm::Backing;
use hairline_shm::recover::{DeadRegion, Found, Life, Search, room};

use crate::on::base::platform;

/// The regions of dead processes may take one part in `SHARE` of `/dev/shm`.
const SHARE: u64 = 4;

/// Time limits of the first portion, and of each later one. A program that crashes at its start gets no
/// further than the first: it finds the regions of 100 crashes in 3 ms.
const PORTIONS: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(1));

/// Time between two portions: so pruning takes 2 % of the drain thread's time.
const PAUSE: Duration = Duration::from_millis(50);

/// Directory entries between two checks of the time. An entry takes some 2 us.
const ENTRIES: usize = 16;

/// Limit of names that are read in one go, in some milliseconds.
const MOST_NAMES: usize = 10_000;

/// Limit of regions that are remembered. The next session removes the others.
const MOST: usize = 4096;

/// Removes the oldest regions of dead processes of this program until the rest take at most a quarter of
/// `/dev/shm`. The newest region always stays.
#[derive(Debug)]
pub(crate) struct Pruning {
    state: State,
    /// The end of the last portion.
    last: Option<Instant>,
}

#[derive(Debug)]
enum State {
    Searching {
        search: Search,
        /// The newest first.
        dead: Vec<Dead>,
    },
    /// The regions to be removed.
    Removing(Vec<Dead>),
    Done,
}

impl Pruning {
    /// Starts the pruning of the regions of the program with this process name, which has the region `own`.
    pub(crate) fn new(process_name: &str, own: &Backing) -> Self {
        let process_name = truncate_utf8(process_name, 63).to_owned(); // cut in the region
        let search = Search::new().map(|search| search.of_processes(process_name));
        // In a table of open files that the program shares, it may close the directory meanwhile.
        let search =
            if platform::has_own_files() { search } else { search.map(|search| search.at_once(MOST_NAMES)) };
        let search = search.map(|search| match own {
            Backing::File(path) => search.except(path.into()),
            Backing::Memfd | Backing::Heap => search,
        });
        let searching = |search| State::Searching { search, dead: Vec::new() };
        Self { state: search.map_or(State::Done, searching), last: None }
    }

    /// Runs the next portion, if it is time for it. The portion ends as soon as `stops` is true.
    pub(crate) fn proceed(&mut self, stops: impl Fn() -> bool) {
        if matches!(self.state, State::Done) || self.last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        let portion = if self.last.is_none() { PORTIONS.0 } else { PORTIONS.1 };
        let began = Instant::now();
        while !matches!(self.state, State::Done) && began.elapsed() < portion && !stops() {
            self.state = std::mem::replace(&mut self.state, State::Done).next();
        }
        self.last = Some(Instant::now());
    }
}

impl State {
    fn next(self) -> Self {
        match self {
            Self::Searching { mut search, mut dead } => match search.step(ENTRIES) {
                Some(found) if dead.len() < MOST => {
                    if let Some(new) = found.and_then(Dead::of) {
                        let place = dead.partition_point(|dead| dead.last_look >= new.last_look);
                        dead.insert(place, new);
                    }
                    Self::Searching { search, dead }
                }
                _ => Self::Removing(room().map_or(Vec::new(), |room| surplus(dead, room / SHARE))),
            },
            // The kernel takes a while to free the pages of a region.
            Self::Removing(mut surplus) => match surplus.pop() {
                Some(dead) => {
                    // This fails if another process is recovering the region and has it locked.
                    let _ = DeadRegion::open(&dead.path).and_then(DeadRegion::remove);
                    Self::Removing(surplus)
                }
                None => Self::Done,
            },
            Self::Done => Self::Done,
        }
    }
}

/// The region of a dead process.
#[derive(Debug)]
struct Dead {
    path: PathBuf,
    bytes: u64,
    last_look: u64,
}

impl Dead {
    fn of(found: Found) -> Option<Self> {
        let facts = found.facts.ok()?;
        (found.life == Life::Dead).then_some(Self {
            path: found.path,
            bytes: found.len,
            last_look: facts.last_look,
        })
    }
}

/// Returns the regions for which there is no room. `dead` begins with the newest.
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
    fn the_oldest_regions_are_removed_and_the_newest_stays() {
        assert_eq!(surplus_of(&[], 10), 0);
        assert_eq!(surplus_of(&[10], 10), 0);
        assert_eq!(surplus_of(&[11], 10), 0);
        assert_eq!(surplus_of(&[4, 4, 4, 1], 10), 2, "an older region does not stay because it is smaller");
        assert_eq!(surplus_of(&[11, 1, 1], 10), 2);
        assert_eq!(surplus_of(&[1; 10], 10), 0);
    }
}
