//! The context switches of all threads of this process, present and future, or of the commands that it starts.
//! A thread that records pays for nothing but its switches.

use std::io;

use crate::attributes::{Attributes, Inherit};
use crate::own_events::OwnEvents;
use crate::record::Task;
use crate::tasks::{State, Taken, Tasks};

/// Records up to this age wait: the kernel takes the time of a record before it writes the record, and the
/// rings are read one after the other.
const SETTLED_AFTER: u64 = 10_000_000;

/// The switches of threads.
#[derive(Debug)]
pub struct Switches {
    events: OwnEvents,
    tasks: Tasks,
}

impl Switches {
    /// Opens the events. `now` reads `CLOCK_BOOTTIME` in ns. `may_open`: the most file descriptors to use.
    ///
    /// # Errors
    /// Those of [`OwnEvents::open`].
    pub fn of_this_process(now: impl Fn() -> u64, may_open: u64) -> io::Result<Self> {
        let attributes = Attributes::switches().inherit(Inherit::Threads);
        let pid = std::process::id();
        let mut tasks = Tasks::new(Some(pid));
        let events = OwnEvents::open(&attributes, may_open, |tid| {
            if let Some((name, state, cpu)) = thread_now(tid) {
                tasks.found(Task { pid, tid }, name.as_bytes(), now(), cpu, state);
            }
        })?;
        Ok(Self { events, tasks })
    }

    /// Opens events for the process `pid`, which has not yet executed its program, and for all processes that it
    /// starts: from its exec on. `bytes`: the most for each ring, a power of two.
    ///
    /// # Errors
    /// As those of [`Event::open`](crate::Event::open) and [`Ring::at_most`](crate::Ring::at_most).
    pub fn of_command(pid: u32, bytes: usize) -> io::Result<Self> {
        let attributes = Attributes::switches().inherit(Inherit::All).enable_on_exec();
        Ok(Self { events: OwnEvents::open_for_command(&attributes, pid, bytes)?, tasks: Tasks::new(None) })
    }

    /// Returns the file descriptors, which a forked child closes.
    #[must_use]
    pub fn raw_fds(&self) -> Vec<i32> {
        self.events.raw_fds()
    }

    /// Reads the rings. Returns the part of the fullest ring that was filled, in percent.
    pub fn read(&mut self) -> u64 {
        let Self { events, tasks } = self;
        events.read(|record, stamp| tasks.add(&record, stamp))
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
        self.events.disable();
    }

    /// Returns the number of records that were lost since the last call: see [`OwnEvents::newly_lost`].
    pub fn newly_lost(&mut self, ask: bool) -> u64 {
        self.events.newly_lost(ask)
    }
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
        let Ok(mut own) = Switches::of_this_process(|| 0, 10_000) else { return };
        std::thread::sleep(std::time::Duration::from_millis(2));
        let taken = own.finish();
        let asleep = taken.changes.iter().filter(|change| change.state == State::Asleep).count();
        assert!(asleep >= 1 && !taken.names.is_empty(), "{taken:?}");
        assert_eq!(own.newly_lost(true), 0);
        assert!(!own.raw_fds().is_empty());
    }

    #[test]
    fn too_few_descriptors_are_an_error_before_any_is_opened() {
        let Err(e) = Switches::of_this_process(|| 0, 0) else { panic!() };
        assert_eq!(e.kind(), io::ErrorKind::QuotaExceeded);
    }
}
