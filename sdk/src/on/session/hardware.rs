//! Counters of the hardware, which the session's own thread reads: cycles, instructions and cache misses of
//! the
//! process's threads.

use hairline_perf::{Counter, Counts};

use crate::on::base::lock::Mutex;
use crate::on::base::platform::process;
use crate::on::session::descriptors::Descriptors;

/// The counters, in the order of [`Slot::now`].
const COUNTERS: [Counter; 3] = [Counter::Cycles, Counter::Instructions, Counter::CacheMisses];

type All = [Option<Counts>; COUNTERS.len()];

/// Where a session keeps its counters, while no thread uses them.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<Option<Box<All>>>);

static DESCRIPTORS: Descriptors = Descriptors::none();

/// Closes the parent's counters in a forked child.
pub(crate) fn close_in_child() {
    DESCRIPTORS.close_in_child();
}

impl Slot {
    /// Opens the counters of the process's threads that the machine has.
    ///
    /// # Errors
    /// A sentence that says why there is none, and what helps.
    pub(crate) fn open(&self) -> Result<(), String> {
        self.open_these(COUNTERS)
    }

    fn open_these(&self, counters: [Counter; COUNTERS.len()]) -> Result<(), String> {
        // Half of the files are left to the program.
        let mut left = process::file_limit() / 2;
        let mut error = None;
        let all = counters.map(|counter| match Counts::of_this_process(counter, left) {
            Ok(counts) => {
                left = left.saturating_sub(counts.raw_fds().len() as u64);
                Some(counts)
            }
            Err(e) => {
                error.get_or_insert(e);
                None
            }
        });
        if let (true, Some(e)) = (all.iter().all(Option::is_none), error) {
            let advice = hairline_perf::advice(&e);
            return Err(format!("hardware counters are not recorded: {e}; {advice}"));
        }
        DESCRIPTORS.set(all.iter().flatten().flat_map(Counts::raw_fds).collect());
        self.put(Some(Box::new(all)));
        Ok(())
    }

    /// Returns the counts since the session began: cycles, instructions and cache misses.
    pub(crate) fn now(&self) -> [Option<u64>; COUNTERS.len()] {
        let all = self.take();
        let counts = all.as_ref().map(|all| all.each_ref().map(|counts| counts.as_ref().map(Counts::now)));
        self.put(all);
        counts.unwrap_or_default()
    }

    /// Ends the counting.
    pub(crate) fn close(&self) {
        if let Some(all) = self.take() {
            DESCRIPTORS.clear();
            drop(all);
        }
    }

    fn take(&self) -> Option<Box<All>> {
        self.0.lock_unless_lost()?.take()
    }

    fn put(&self, mut all: Option<Box<All>>) {
        if all.is_some()
            && let Some(mut slot) = self.0.lock_unless_lost()
        {
            std::mem::swap(&mut *slot, &mut all); // nothing is freed under the lock
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_the_machine_has_is_counted_until_the_end() {
        // CPU time stands for the hardware's counters, which virtual machines do not have.
        let slot = Slot::default();
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
    }

    #[test]
    fn a_machine_without_counters_is_said_in_a_sentence() {
        let slot = Slot::default();
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
