//! Counters of the hardware for all threads of this process, present and future, without a ring.

use std::io;

use crate::abi::errno;
use crate::attributes::{Attributes, Counter, Inherit};
use crate::event::Event;
use crate::own_events::for_new_threads;

/// A counter of this process.
#[derive(Debug)]
pub struct Counts(Vec<Event>);

impl Counts {
    /// Begins to count. Each present thread gets an event, which its future threads inherit; forked processes
    /// do not. `may_open`: the most file descriptors to use.
    ///
    /// # Errors
    /// As those of [`Event::open`]: `ENOENT` if the machine has no such counter, as most virtual machines;
    /// of the
    /// kind [`QuotaExceeded`](io::ErrorKind::QuotaExceeded) if `may_open` is too little.
    pub fn of_this_process(counter: Counter, may_open: u64) -> io::Result<Self> {
        let attributes = Attributes::count(counter).inherit(Inherit::Threads);
        let mut events = Vec::new();
        for_new_threads(1, may_open, |tid| match Event::open(&attributes, tid, None) {
            Err(e) if e.raw_os_error() == Some(errno::ESRCH) => Ok(()), // it has ended
            event => {
                events.push(event?);
                Ok(())
            }
        })?;
        Ok(Self(events))
    }

    /// Returns the count up to now. Where the processor has too few counters, the kernel lets them take
    /// turns,
    /// and this is extrapolated.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.0.iter().filter_map(Event::count).fold(0, u64::saturating_add)
    }

    /// Returns the file descriptors, which a forked child closes.
    #[must_use]
    pub fn raw_fds(&self) -> Vec<i32> {
        self.0.iter().map(Event::raw_fd).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn spin() {
        let began = Instant::now();
        while began.elapsed() < Duration::from_millis(20) {}
    }

    #[test]
    fn present_and_future_threads_count() {
        let Ok(counts) = Counts::of_this_process(Counter::TaskClock, 10_000) else { return };
        let before = counts.now();
        spin();
        let own = counts.now();
        std::thread::spawn(spin).join().unwrap();
        let both = counts.now();
        assert!(own > before && both > own, "{before} {own} {both}");
        assert!(!counts.raw_fds().is_empty());
    }

    #[test]
    fn too_few_descriptors_are_an_error() {
        let Err(e) = Counts::of_this_process(Counter::TaskClock, 0) else { panic!() };
        assert_eq!(e.kind(), io::ErrorKind::QuotaExceeded);
    }
}
