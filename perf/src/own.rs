//! The context switches of all threads of this process, present and future.
//!
//! Each present thread gets an event on each processor, which its future threads inherit. All events of a
//! processor write into one ring. A thread that records pays for nothing but its switches.

use std::io;

use crate::attributes::{Attributes, Inherit};
use crate::cpus::online_cpus;
use crate::event::Event;
use crate::record::{Record, Task};
use crate::ring::Ring;
use crate::tasks::{State, Taken, Tasks};

/// The bytes of a ring that a user has for each processor without a limit, but for one page.
pub const RING: usize = 512 << 10;

/// The most looks for new threads while the events are opened.
const ROUNDS: usize = 8;

/// Records up to this age wait: the kernel takes the time of a record before it writes the record, and the
/// rings are read one after the other.
const SETTLED_AFTER: u64 = 10_000_000;

/// The events of this process's threads, and their rings.
#[derive(Debug)]
pub struct OwnThreads {
    rings: Vec<Ring>,
    /// All events but those of the rings.
    events: Vec<Event>,
    tasks: Tasks,
    /// Lost records that were returned.
    lost: u64,
    /// Lost records that the rings have told of, and records that are malformed.
    told: u64,
    malformed: u64,
}

impl OwnThreads {
    /// Opens the events. `now` reads `CLOCK_BOOTTIME` in ns. `may_open`: the most file descriptors to use.
    ///
    /// # Errors
    /// As those of [`Event::open`] and [`Ring::at_most`]; of the kind
    /// [`QuotaExceeded`](io::ErrorKind::QuotaExceeded) if `may_open` is too little.
    pub fn open(now: impl Fn() -> u64, may_open: u64) -> io::Result<Self> {
        let attributes = Attributes::switches().inherit(Inherit::Threads);
        let cpus = online_cpus();
        let pid = std::process::id();
        let mut own = Self {
            rings: Vec::new(),
            events: Vec::new(),
            tasks: Tasks::new(Some(pid)),
            lost: 0,
            told: 0,
            malformed: 0,
        };
        let mut opened: Vec<u32> = Vec::new();
        for _ in 0..ROUNDS {
            let new: Vec<u32> = thread_ids().into_iter().filter(|tid| !opened.contains(tid)).collect();
            if new.is_empty() {
                break;
            }
            let needed = (opened.len() + new.len()) as u64 * cpus.len() as u64;
            if needed > may_open {
                let what = format!("{needed} file descriptors are needed, one for each thread and processor");
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, what));
            }
            for tid in new {
                opened.push(tid);
                if own.open_thread(tid, &cpus, &attributes)?
                    && let Some((name, state, cpu)) = thread_now(tid)
                {
                    own.tasks.found(Task { pid, tid }, name.as_bytes(), now(), cpu, state);
                }
            }
        }
        if own.rings.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "/proc has no threads of this process"));
        }
        Ok(own)
    }

    /// Opens a thread's events on all processors. Returns false when the thread has ended.
    fn open_thread(&mut self, tid: u32, cpus: &[u32], attributes: &Attributes) -> io::Result<bool> {
        let is_first = self.rings.is_empty();
        for (index, cpu) in cpus.iter().enumerate() {
            let event = match Event::open(attributes, tid, Some(*cpu)) {
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {
                    self.rings.retain(|_| !is_first); // so that the next thread makes them all
                    return Ok(false);
                }
                event => event?,
            };
            match self.rings.get(index) {
                Some(ring) => {
                    event.write_to_ring_of(ring.event())?;
                    self.events.push(event);
                }
                None => self.rings.push(Ring::at_most(event, RING, attributes)?),
            }
        }
        Ok(true)
    }

    /// Returns the file descriptors, which a forked child closes.
    #[must_use]
    pub fn raw_fds(&self) -> Vec<i32> {
        let rings = self.rings.iter().map(Ring::event);
        rings.chain(&self.events).map(Event::raw_fd).collect()
    }

    /// Reads the rings. Returns the part of the fullest ring that was filled, in percent.
    pub fn read(&mut self) -> u64 {
        let Self { rings, tasks, told, malformed, .. } = self;
        let mut fullest = 0;
        for ring in rings {
            let read = ring.read(|record, stamp| {
                if let Record::Lost { records } = record {
                    *told = told.saturating_add(records);
                }
                tasks.add(&record, stamp);
            });
            *malformed += read.malformed;
            fullest = fullest.max(read.bytes.saturating_mul(100) / ring.size() as u64);
        }
        fullest
    }

    /// Returns what the records tell that are old enough at `now`.
    pub fn take(&mut self, now: u64) -> Taken {
        self.tasks.take(now.saturating_sub(SETTLED_AFTER))
    }

    /// Returns what the records up to a time tell.
    pub fn take_until(&mut self, until: u64) -> Taken {
        self.tasks.take(until)
    }

    /// Ends the recording, and returns what is left.
    pub fn finish(&mut self) -> Taken {
        self.disable();
        self.read();
        self.tasks.take_rest()
    }

    /// Returns the names and the last states of all threads.
    #[must_use]
    pub fn now(&self) -> Taken {
        self.tasks.now()
    }

    /// Ends the recording. The descriptors stay open.
    pub fn disable(&self) {
        let rings = self.rings.iter().map(Ring::event);
        rings.chain(&self.events).for_each(|event| drop(event.disable()));
    }

    /// Returns the number of records that were lost since the last call: the kernel's rings were full. At the
    /// end (`ask`) the kernel is asked about each event: a ring tells of a loss only when it has room again.
    pub fn newly_lost(&mut self, ask: bool) -> u64 {
        let mut all = self.told;
        if ask {
            let events = self.rings.iter().map(Ring::event).chain(&self.events);
            all = all.max(events.filter_map(Event::lost).fold(0, u64::saturating_add));
        }
        let all = all.saturating_add(self.malformed);
        let new = all.saturating_sub(self.lost);
        self.lost = self.lost.max(all);
        new
    }
}

/// Returns the ids of this process's threads.
fn thread_ids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the name, the state and the processor of a thread of this process. No state: it runs or could run.
fn thread_now(tid: u32) -> Option<(String, Option<State>, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat")).ok()?;
    parse_stat(&stat)
}

/// Parses `71 (name) S 1 ...`: the name may contain parentheses.
fn parse_stat(stat: &str) -> Option<(String, Option<State>, u32)> {
    let (before, after) = stat.rsplit_once(") ")?;
    let name = before.split_once('(')?.1;
    let mut fields = after.split(' ');
    let state = (fields.next()? != "R").then_some(State::Asleep);
    let cpu = fields.nth(35).and_then(|cpu| cpu.trim().parse().ok()).unwrap_or(0); // field 39
    Some((name.to_owned(), state, cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_thread_follows_its_name() {
        let stat = "71 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 \
                    29 30 31 32 33 34 3 5";
        assert_eq!(parse_stat(stat), Some(("a) R (b".to_owned(), Some(State::Asleep), 5)));
        assert_eq!(parse_stat("71 (a) R 1").unwrap().1, None);
        assert_eq!(parse_stat("71 (a"), None);
    }

    #[test]
    fn this_thread_is_found_and_its_sleep_is_seen() {
        let Ok(mut own) = OwnThreads::open(|| 0, 10_000) else { return };
        std::thread::sleep(std::time::Duration::from_millis(2));
        let taken = own.finish();
        let asleep = taken.changes.iter().filter(|change| change.state == State::Asleep).count();
        assert!(asleep >= 1 && !taken.names.is_empty(), "{taken:?}");
        assert_eq!(own.newly_lost(true), 0);
        assert!(!own.raw_fds().is_empty());
    }

    #[test]
    fn too_few_descriptors_are_an_error_before_any_is_opened() {
        let Err(e) = OwnThreads::open(|| 0, 0) else { panic!() };
        assert_eq!(e.kind(), io::ErrorKind::QuotaExceeded);
    }
}
