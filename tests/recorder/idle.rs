//! What a session costs while nothing is recorded.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use hairline::{Overflow, Session};
use hairline_tests::recording::turn;

/// Returns how often the session's thread has gone to sleep.
fn sleeps() -> u64 {
    let mut tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let is_own = |task: &std::path::PathBuf| {
        fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "hairline-writer")
    };
    let status =
        fs::read_to_string(tasks.find(is_own).expect("the session's thread").join("status")).unwrap();
    let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.expect("a count").trim().parse().unwrap()
}

#[test]
fn a_session_without_events_wakes_its_thread_a_few_times_a_second() {
    let _turn = turn();
    let path = std::env::temp_dir().join(format!("hairline-idle-{}.pftrace", std::process::id()));
    for (overflow, most) in [(Overflow::Drop, 2), (Overflow::Overwrite, 10)] {
        let session = Session::builder().output(&path).overflow(overflow).start().unwrap();
        sleep(Duration::from_secs(2)); // the sleeps grow
        let before = sleeps();
        sleep(Duration::from_secs(2));
        let woken = sleeps() - before;
        session.stop().unwrap();
        assert!(woken <= 2 * most, "{overflow:?}: {woken} times in 2 s");
    }
    fs::remove_file(path).unwrap();
}
