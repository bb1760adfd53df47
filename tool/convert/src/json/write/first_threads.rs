//! Thread 0 of a process. Importers of JSON take it for the thread that has the process's id. So a process
//! with both gets another id for one of them: begins and ends of both would pair with each other.

use std::collections::HashMap;

use crate::Report;

/// What reports say of such threads.
const RENUMBERED: &str =
    "threads renumbered, because importers of JSON take thread 0 and the main thread of a process for one";

/// The first made id. It is larger than any kernel's id and than the other made ones, and importers read it
/// as a signed number of 32 bits.
const FIRST: u32 = 7 << 28;

/// The threads of each process whose id is 0 or that of the process.
#[derive(Debug, Default)]
pub(super) struct FirstThreads {
    /// The id that came first, by process.
    first: HashMap<u32, u32>,
    /// The made id of the other one.
    made: HashMap<u32, u32>,
}

impl FirstThreads {
    /// The id with which a thread is written.
    pub(super) fn id(&mut self, pid: u32, tid: u32, report: &mut Report) -> u32 {
        if pid == 0 || tid != 0 && tid != pid || *self.first.entry(pid).or_insert(tid) == tid {
            return tid;
        }
        let next = FIRST + self.made.len() as u32; // fewer than tracks
        *self.made.entry(pid).or_insert_with(|| {
            report.add(RENUMBERED);
            next
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_thread_0_and_the_main_thread_of_a_process_the_later_one_has_another_id() {
        let (mut threads, mut report) = (FirstThreads::default(), Report::default());
        let mut id = |pid, tid| threads.id(pid, tid, &mut report);
        assert_eq!([id(5, 0), id(5, 6), id(6, 6), id(0, 0), id(0, 7), id(7, 0)], [0, 6, 6, 0, 7, 0]);
        assert_eq!([id(5, 5), id(5, 5), id(5, 0), id(6, 0), id(6, 6)], [FIRST, FIRST, 0, FIRST + 1, 6]);
        assert_eq!(report.iter().collect::<Vec<_>>(), [(RENUMBERED, 2)]);
    }
}
