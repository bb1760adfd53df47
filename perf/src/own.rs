//! The context switches of all threads of this process, present and future, or of the commands that it
//! starts. A thread that records pays for nothing but its switches.

use std::io;

use crate::attributes::{Attributes, Inherit};
use crate::own_events::OwnEvents;
use crate::record::{Record, Stamp, Task};
use crate::stops::Stops;
use crate::tasks::{State, Taken, Tasks};
use crate::wakings::Wakings;

/// Records of this age, at the time when the first ring is read, have all been in their rings then: the
/// kernel takes the time of a record before it writes the record.
const SETTLED_AFTER: u64 = 10_000_000;

/// The switches of threads.
#[derive(Debug)]
pub struct Switches {
    /// `None`: the caller has the records, from events for something else.
    events: Option<OwnEvents>,
    /// `None`: the kernel does not permit it. Most users may not.
    wakings: Option<Wakings>,
    /// The same.
    stops: Option<Stops>,
    tasks: Tasks,
    /// The time at which the last read of all rings began.
    read_at: u64,
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
        let (events, threads) =
            OwnEvents::open(&attributes, may_open, |tid| Some((tid, thread_now(tid)?, now())))?;
        for (tid, (name, state, cpu), time) in threads.into_iter().flatten() {
            tasks.found(Task { pid, tid }, name.as_bytes(), time, cpu, state);
        }
        let left = may_open.saturating_sub(events.count() as u64);
        let wakings = Wakings::of_this_process(left).ok();
        let left = left.saturating_sub(wakings.as_ref().map_or(0, |wakings| wakings.events().count() as u64));
        let stops = wakings.as_ref().and_then(|_| Stops::of_this_process(left).ok());
        Ok(Self { events: Some(events), wakings, stops, tasks, read_at: 0 })
    }

    /// Opens events for the process `pid`, which has not yet executed its program, and for all processes that
    /// it starts: from its exec on. `bytes`: the most for each ring, a power of two.
    ///
    /// # Errors
    /// As those of [`Event::open`](crate::Event::open) and [`Ring::at_most`](crate::Ring::at_most).
    pub fn of_command(pid: u32, bytes: usize) -> io::Result<Self> {
        let attributes = Attributes::switches().inherit(Inherit::All).enable_on_exec();
        let events = OwnEvents::open_for_command(&attributes, pid, bytes)?;
        Ok(Self { events: Some(events), ..Self::of_records(pid) })
    }

    /// Follows the same threads by records that the caller [adds](Self::add): those of its own events for
    /// them, with [`Attributes::and_switches`] and [`Attributes::tasks`].
    #[must_use]
    pub fn of_records(pid: u32) -> Self {
        let (wakings, stops) = (Wakings::of_command().ok(), Stops::of_command(pid).ok());
        Self { events: None, wakings, stops, tasks: Tasks::new(None), read_at: 0 }
    }

    /// Adds a record of the caller's events. Those without a meaning for threads are ignored.
    pub fn add(&mut self, record: &Record<'_>, stamp: Stamp) {
        self.tasks.add(record, stamp);
    }

    fn all(&self) -> impl Iterator<Item = &OwnEvents> {
        let more = self.wakings.iter().map(Wakings::events).chain(self.stops.iter().map(Stops::events));
        self.events.iter().chain(more)
    }

    /// See [`OwnEvents::has_all_threads`].
    #[must_use]
    pub fn has_all_threads(&self) -> bool {
        self.all().all(OwnEvents::has_all_threads)
    }

    /// Returns whether the kernel tells who wakes whom.
    #[must_use]
    pub fn has_wakings(&self) -> bool {
        self.wakings.is_some()
    }

    /// Returns the file descriptors, which a forked child closes.
    #[must_use]
    pub fn raw_fds(&self) -> Vec<i32> {
        self.all().flat_map(OwnEvents::raw_fds).collect()
    }

    /// See [`Event::moved_here`](crate::Event::moved_here).
    pub fn moved_here(&self) {
        self.all().for_each(OwnEvents::moved_here);
    }

    /// Reads the rings. `began`: `CLOCK_BOOTTIME` in ns before the first ring was read, also of those whose
    /// records the caller [adds](Self::add). Returns the part of the fullest ring that was filled, in
    /// percent.
    ///
    /// The time matters: this thread may lose its processor between two rings. The second one then has
    /// records that are newer than those still to be read from the first one.
    pub fn read(&mut self, began: u64) -> u64 {
        self.read_at = began;
        self.read_rings()
    }

    fn read_rings(&mut self) -> u64 {
        let Self { events, wakings, stops, tasks, .. } = self;
        let switches =
            events.as_mut().map_or(0, |events| events.read(|record, stamp| tasks.add(&record, stamp)));
        let read = |wakings: &mut Wakings| wakings.read(|waking, stamp| tasks.add_waking(waking, stamp));
        let fullest = wakings.as_mut().map_or(0, read).max(switches);
        stops.as_mut().map_or(0, |stops| stops.read(|stamp| tasks.add_stop(stamp))).max(fullest)
    }

    /// Returns what the records tell that no older one can precede.
    pub fn take(&mut self) -> Taken {
        self.take_older(SETTLED_AFTER)
    }

    /// Returns what the records tell that had this age, in ns, when the last [read](Self::read) began.
    pub fn take_older(&mut self, age: u64) -> Taken {
        self.tasks.take(self.read_at.saturating_sub(age))
    }

    /// Ends the recording, and returns what is left.
    pub fn finish(&mut self) -> Taken {
        self.disable();
        self.read_rings();
        self.tasks.take_rest()
    }

    /// Returns the names and the last states of all threads.
    #[must_use]
    pub fn now(&self) -> Taken {
        self.tasks.now()
    }

    /// Ends the recording. The descriptors stay open.
    pub fn disable(&self) {
        self.all().for_each(OwnEvents::disable);
    }

    /// Returns the number of records that were lost since the last call: see [`OwnEvents::newly_lost`].
    pub fn newly_lost(&mut self, ask: bool) -> u64 {
        let switches = self.events.as_mut().map_or(0, |events| events.newly_lost(ask));
        let wakings = self.wakings.as_mut().map_or(0, |wakings| wakings.newly_lost(ask));
        let stops = self.stops.as_mut().map_or(0, |stops| stops.newly_lost(ask));
        switches.saturating_add(wakings).saturating_add(stops)
    }
}

/// Returns the name, the state and the processor of a thread of this process. No state: it runs or could run.
fn thread_now(tid: u32) -> Option<(String, Option<State>, u32)> {
    let stat = std::fs::read(format!("/proc/self/task/{tid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&stat)) // a name may have any bytes
}

/// Parses `71 (name) S 1 ...`: the name may contain parentheses.
fn parse_stat(stat: &str) -> Option<(String, Option<State>, u32)> {
    let (before, after) = stat.rsplit_once(") ")?;
    let name = before.split_once('(')?.1;
    let mut fields = after.split(' ');
    let state = match fields.next()? {
        "R" => None,
        "T" | "t" => Some(State::Stopped),
        _ => Some(State::Asleep),
    };
    let cpu = fields.nth(35).and_then(|cpu| cpu.trim().parse().ok()).unwrap_or(0); // field 39
    Some((name.to_owned(), state, cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Direction;
    use crate::tasks::{Waker, Waking};

    #[test]
    fn the_state_of_a_thread_follows_its_name() {
        let stat = "71 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 \
                    29 30 31 32 33 34 3 5";
        assert_eq!(parse_stat(stat), Some(("a) R (b".to_owned(), Some(State::Asleep), 5)));
        assert_eq!(parse_stat("71 (a) R 1").unwrap().1, None);
        assert_eq!(parse_stat("71 (a) T 1").unwrap().1, Some(State::Stopped));
        assert_eq!(parse_stat("71 (a"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_thread_whose_name_is_no_text_is_found() {
        let named = std::thread::spawn(|| {
            std::fs::write("/proc/thread-self/comm", b"b\xffd").unwrap();
            let link = std::fs::read_link("/proc/thread-self").unwrap();
            thread_now(link.file_name().unwrap().to_str().unwrap().parse().unwrap())
        });
        assert_eq!(named.join().unwrap().unwrap().0, "b\u{fffd}d");
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

    /// The reader has read the switches of a thread, loses its processor, and then reads the wake-ups.
    #[test]
    fn a_wake_up_waits_for_the_sleep_before_it_which_another_ring_has() {
        const MS: u64 = 1_000_000;
        let tasks = Tasks::new(None);
        let mut switches = Switches { events: None, wakings: None, stops: None, tasks, read_at: 0 };
        let at = |time| Stamp { pid: 70, tid: 71, time, id: 0, cpu: 0 };
        let waking = Waking { tid: 71, is_by_interrupt: false };
        switches.add(&Record::Switch { direction: Direction::In }, at(50 * MS));
        switches.tasks.add_waking(waking, Stamp { tid: 70, ..at(140 * MS) });
        switches.read(100 * MS); // the wake-ups are read at 150 ms
        let states = |taken: Taken| taken.changes.iter().map(|change| change.state).collect::<Vec<_>>();
        assert_eq!(states(switches.take()), [State::Running]);
        switches.add(&Record::Switch { direction: Direction::OutWaiting }, at(120 * MS));
        switches.add(&Record::Switch { direction: Direction::In }, at(141 * MS));
        switches.read(200 * MS);
        let taken = switches.take();
        assert_eq!(taken.changes[1].waker, Some(Waker { tid: 70, is_interrupt: false }));
        assert_eq!(states(taken), [State::Asleep, State::Runnable, State::Running]);
    }

    #[test]
    fn too_few_descriptors_are_an_error_before_any_is_opened() {
        let Err(e) = Switches::of_this_process(|| 0, 0) else { panic!() };
        assert_eq!(e.kind(), io::ErrorKind::QuotaExceeded);
    }
}
