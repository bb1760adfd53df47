//! Counters of the hardware for all threads of this process, present and future, without a ring.

use std::io;

use crate::abi::errno;
use crate::attributes::{Attributes, Counter, Inherit};
use crate::event::{Event, Reading};
use crate::threads::while_none_starts;

/// A counter of this process.
#[derive(Debug)]
pub struct Counts {
    all: Vec<Count>,
    has_all_threads: bool,
}

/// The counter of a thread, and of those that it has started since.
#[derive(Debug)]
struct Count {
    event: Event,
    last: Reading,
    extrapolated: u64,
}

impl Counts {
    /// Begins to count. Each present thread gets an event, which its future threads inherit; forked processes
    /// do not. `may_open`: the most file descriptors to use.
    ///
    /// # Errors
    /// As those of [`Event::open`]: `ENOENT` if the machine has no such counter, as most virtual machines;
    /// of the kind [`QuotaExceeded`](io::ErrorKind::QuotaExceeded) if `may_open` is too little.
    pub fn of_this_process(counter: Counter, may_open: u64) -> io::Result<Self> {
        let attributes = Attributes::count(counter).inherit(Inherit::Threads);
        Self::open(may_open, |tid| Event::open(&attributes, tid, None))
    }

    fn open(may_open: u64, mut open: impl FnMut(u32) -> io::Result<Event>) -> io::Result<Self> {
        let (all, has_all_threads) = while_none_starts(1, may_open, |threads| {
            let mut counts = Vec::new();
            for tid in threads {
                match open(*tid) {
                    Err(e) if e.raw_os_error() == Some(errno::ESRCH) => {} // it has ended
                    event => counts.push(Count { event: event?, last: Reading::default(), extrapolated: 0 }),
                }
            }
            Ok(counts)
        })?;
        Ok(Self { all, has_all_threads })
    }

    /// Returns false if threads kept starting while the events were opened: a few may not be counted.
    #[must_use]
    pub fn has_all_threads(&self) -> bool {
        self.has_all_threads
    }

    /// Returns the count up to now. Where the processor has too few counters, the kernel lets them take
    /// turns, and this is extrapolated from the time of each turn. It never decreases.
    pub fn now(&mut self) -> u64 {
        self.all.iter_mut().map(Count::now).fold(0, u64::saturating_add)
    }

    /// Ends the counting. The descriptors stay open.
    pub fn disable(&self) {
        self.all.iter().for_each(|count| drop(count.event.disable()));
    }

    /// See [`Event::moved_here`].
    pub fn moved_here(&self) {
        self.all.iter().for_each(|count| count.event.moved_here());
    }

    /// Returns the file descriptors, which a forked child closes.
    #[must_use]
    pub fn raw_fds(&self) -> Vec<i32> {
        self.all.iter().map(|count| count.event.raw_fd()).collect()
    }
}

impl Count {
    fn now(&mut self) -> u64 {
        if let Some(now) = self.event.reading() {
            self.add(now);
        }
        self.extrapolated
    }

    /// Adds what was counted since the last reading. A rate from the very beginning would change the past:
    /// the threads have done other things then.
    fn add(&mut self, now: Reading) {
        let running = now.running.saturating_sub(self.last.running);
        if running == 0 {
            return; // the counter had no turn: the next one speaks for this time too
        }
        let count = u128::from(now.count.saturating_sub(self.last.count));
        let enabled = now.enabled.saturating_sub(self.last.enabled).max(running);
        let whole = count * u128::from(enabled) / u128::from(running);
        self.extrapolated = self.extrapolated.saturating_add(u64::try_from(whole).unwrap_or(u64::MAX));
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::sys;

    fn spin() {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(20) {}
    }

    #[test]
    fn present_and_future_threads_count() {
        let Ok(mut counts) = Counts::of_this_process(Counter::TaskClock, 10_000) else { return };
        let before = counts.now();
        spin();
        let own = counts.now();
        std::thread::spawn(spin).join().unwrap();
        let both = counts.now();
        assert!(own > before && both > own, "{before} {own} {both}");
        assert!(!counts.raw_fds().is_empty());
    }

    #[test]
    fn a_thread_that_starts_while_the_events_are_opened_counts_once() {
        let Ok(own) = std::fs::read_link("/proc/thread-self") else { return };
        let own: u32 = own.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap();
        let attributes = Attributes::count(Counter::TaskClock).inherit(Inherit::Threads);
        let (mut spinners, before) = (Vec::new(), sys::process_time());
        let counts = Counts::open(10_000, |tid| {
            let event = Event::open(&attributes, tid, None);
            if spinners.is_empty() && tid == own {
                spinners.push(std::thread::spawn(|| (0..5).for_each(|_| spin())));
            }
            event
        });
        let Ok(mut counts) = counts else { return };
        spinners.into_iter().for_each(|spinner| spinner.join().unwrap());
        let (count, all) = (counts.now(), sys::process_time() - before);
        assert!(count > 0 && count < all + all / 2, "{count} ns of {all} ns");
    }

    #[test]
    fn a_counter_that_takes_turns_is_extrapolated_from_turn_to_turn() {
        let attributes = Attributes::count(Counter::TaskClock);
        let Ok(event) = Event::open(&attributes, 0, None) else { return };
        let mut all = Count { event, last: Reading::default(), extrapolated: 0 };
        let mut after = |count, enabled, running| {
            all.add(Reading { count, enabled, running });
            all.extrapolated
        };
        assert_eq!(after(100, 10, 5), 200);
        assert_eq!(after(105, 14, 9), 205, "it has counted all the time since, and less than before");
        assert_eq!(after(105, 20, 9), 205, "it had no turn");
        assert_eq!(after(115, 24, 10), 305);
        assert_eq!(after(0, 0, 0), 305, "it never decreases");
    }

    #[test]
    fn too_few_descriptors_are_an_error() {
        let Err(e) = Counts::of_this_process(Counter::TaskClock, 0) else { panic!() };
        assert_eq!(e.kind(), io::ErrorKind::QuotaExceeded);
    }
}
