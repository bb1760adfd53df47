//! The threads of this process, and events for all of them.

use std::io;

use crate::maps::Set;

/// The most attempts to open the events while no thread starts.
const ATTEMPTS: usize = 8;

/// Opens an event for each thread of this process, while no thread starts. Returns also whether that
/// succeeded. `open` opens those of the threads, `each` descriptors for each.
///
/// Nothing shows whether a thread that starts meanwhile has inherited an event. With one of its own, it might
/// have two, and so might all threads that it starts.
pub(crate) fn while_none_starts<T>(
    each: u64,
    may_open: u64,
    mut open: impl FnMut(&Set<u32>) -> io::Result<T>,
) -> io::Result<(T, bool)> {
    let mut attempt = 1;
    loop {
        let threads: Set<u32> = thread_ids().into_iter().collect();
        check_quota(threads.len(), each, may_open)?;
        let opened = open(&threads)?;
        let has_started = thread_ids().iter().any(|tid| !threads.contains(tid));
        if !has_started || attempt == ATTEMPTS {
            return Ok((opened, !has_started));
        }
        drop(opened); // its memory and descriptors are needed again
        attempt += 1;
    }
}

/// Returns a sentence for the user of events that may not be those of all threads.
#[must_use]
pub fn not_all_threads(what: &str) -> String {
    format!("{what} of a few threads may be missing: threads kept starting while the session did")
}

/// Returns an error if `each` descriptors for each of so many threads are more than `may_open`.
fn check_quota(threads: usize, each: u64, may_open: u64) -> io::Result<()> {
    let needed = threads as u64 * each;
    if needed > may_open {
        let what = format!("{needed} file descriptors are needed, {each} for each thread");
        return Err(io::Error::new(io::ErrorKind::QuotaExceeded, what));
    }
    Ok(())
}

/// Returns the ids of this process's threads.
fn thread_ids() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use super::*;

    /// One test at a time counts the threads of this process. Those of the test harness come and go, so that
    /// there may be an attempt more.
    static TURN: Mutex<()> = Mutex::new(());

    #[test]
    #[cfg(target_os = "linux")]
    fn all_are_opened_once_more_when_a_thread_has_started() {
        let _turn = TURN.lock();
        let mut started = None;
        let (last, has_all) = while_none_starts(1, 10_000, |threads| {
            started.get_or_insert_with(|| {
                let (sender, receiver) = channel();
                let thread = std::thread::spawn(move || {
                    let own = std::fs::read_link("/proc/thread-self").unwrap();
                    sender.send(own.file_name().unwrap().to_str().unwrap().parse().unwrap()).unwrap();
                    std::thread::park();
                });
                (receiver.recv().unwrap(), thread)
            });
            Ok(threads.clone())
        })
        .unwrap();
        let (tid, thread) = started.unwrap();
        assert!(has_all && last.contains(&tid));
        thread.thread().unpark();
        thread.join().unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_program_that_keeps_starting_threads_is_told_from_others() {
        let _turn = TURN.lock();
        let mut threads = Vec::new();
        let mut attempts = 0;
        let ((), has_all) = while_none_starts(1, 10_000, |_| {
            attempts += 1;
            threads.push(std::thread::spawn(std::thread::park));
            Ok(())
        })
        .unwrap();
        assert_eq!((attempts, has_all), (ATTEMPTS, false));
        threads.iter().for_each(|thread| thread.thread().unpark());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}
