//! Counters of the hardware, which the session's own thread reads: cycles, instructions and cache misses of
//! the process's threads.

use hairline_perf::{Counter, Counts};

use crate::on::session::descriptors;
use crate::on::session::slot::Slot;

/// The counters, in the order in which they are returned.
const COUNTERS: [Counter; 3] = [Counter::Cycles, Counter::Instructions, Counter::CacheMisses];

/// The counters that the machine has.
#[derive(Debug)]
pub(crate) struct Counters([Option<Counts>; COUNTERS.len()]);

impl Slot<Counters> {
    /// Opens the counters of the process's threads that the machine has.
    ///
    /// # Errors
    /// A sentence that says why there is none, and what helps; or that they may not count for all threads.
    pub(crate) fn open(&self) -> Result<(), String> {
        self.open_these(COUNTERS)
    }

    fn open_these(&self, counters: [Counter; COUNTERS.len()]) -> Result<(), String> {
        let mut error = None;
        let all = counters.map(|counter| {
            let counts = Counts::of_this_process(counter, descriptors::may_open());
            counts.map_err(|e| error.get_or_insert(e)).ok()
        });
        if let (true, Some(e)) = (all.iter().all(Option::is_none), error) {
            let advice = hairline_perf::advice(&e);
            return Err(format!("hardware counters are not recorded: {e}; {advice}"));
        }
        descriptors::HARDWARE.set(all.iter().flatten().flat_map(Counts::raw_fds).collect());
        let have_all_threads = all.iter().flatten().all(Counts::has_all_threads);
        self.fill(Counters(all));
        if have_all_threads { Ok(()) } else { Err(hairline_perf::not_all_threads("hardware counters")) }
    }

    /// Notes that the calling thread, the session's own, has the descriptors in a table of its own.
    pub(crate) fn moved_here(&self) {
        self.when_there(|counters| counters.0.iter().flatten().for_each(Counts::moved_here));
    }

    /// Returns the counts since the session began: cycles, instructions and cache misses. The session's own
    /// thread calls this.
    pub(crate) fn now(&self) -> [Option<u64>; COUNTERS.len()] {
        self.with(|all| all.0.each_mut().map(|counts| counts.as_mut().map(Counts::now))).unwrap_or_default()
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // A child that is forked from here on keeps descriptors of events that count nothing.
        self.0.iter().flatten().for_each(Counts::disable);
        descriptors::HARDWARE.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::PoisonError;
    use std::time::{Duration, Instant};

    use super::*;

    /// One list of descriptors at a time.
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

    #[test]
    fn what_the_machine_has_is_counted_until_the_end() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // CPU time stands for the hardware's counters, which virtual machines do not have.
        let slot = Slot::<Counters>::default();
        if let Err(note) = slot.open_these([Counter::TaskClock; COUNTERS.len()]) {
            return eprintln!("{note}: not tested");
        }
        let began = Instant::now();
        let spin = move || while began.elapsed() < Duration::from_millis(20) {};
        std::thread::spawn(spin).join().expect("its end");
        let counts = slot.now();
        assert!(counts.iter().all(|count| count.is_some_and(|ns| ns > 100_000)), "{counts:?}");
        slot.close();
        assert_eq!(slot.now(), [None; COUNTERS.len()]);
        assert!(descriptors::HARDWARE.is_empty());
        // A session that fails to start is dropped without an end.
        drop(slot.open_these([Counter::TaskClock; COUNTERS.len()]));
        drop(slot);
        assert!(descriptors::HARDWARE.is_empty(), "a child would close other files");
    }

    #[test]
    fn a_machine_without_counters_is_said_in_a_sentence() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = Slot::<Counters>::default();
        if let Err(note) = slot.open() {
            assert!(
                note.starts_with("hardware counters are not recorded: ") && note.contains("; "),
                "{note}"
            );
            assert_eq!(slot.now(), [None; COUNTERS.len()]);
        }
        slot.close();
    }
}
