//! The CPU time of other processes while a command runs. The states of the command's threads do not show
//! whose thread has the core that one of them waits for, if it is a thread of another program.

use std::collections::HashMap;
use std::fs;

use crate::platform;

/// The limit for processes that are named: those with the most time.
const MOST: usize = 8;

/// A process is named if it took one part in so many of a core.
const LEAST: u64 = 50;

/// The unit of CPU time in `/proc`: the kernel shows all users a hundred in a second.
const TICK: u64 = 10_000_000;

/// What all processes had taken as the recording began.
#[derive(Debug)]
pub(super) struct Neighbours {
    began: u64,
    /// By pid.
    before: HashMap<u32, Process>,
}

/// A process, as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Process {
    name: String,
    /// In ticks since the start of the system. A pid may be another process's later.
    started: u64,
    /// In ticks.
    taken: u64,
}

/// What other processes took.
#[derive(Debug)]
pub(super) struct Taken {
    /// How long the command ran, in nanoseconds.
    pub(super) of: u64,
    /// The name and pid of each, and its CPU time in nanoseconds, the most first.
    pub(super) by: Vec<(String, u64)>,
}

impl Neighbours {
    pub(super) fn begin() -> Self {
        Self { began: platform::boottime(), before: processes().collect() }
    }

    /// Returns what processes took since the begin that are not the recording's own.
    pub(super) fn end(&self, is_own: impl Fn(u32) -> bool) -> Taken {
        self.compare(platform::boottime(), processes().filter(|(pid, _)| !is_own(*pid)))
    }

    fn compare(&self, now: u64, processes: impl Iterator<Item = (u32, Process)>) -> Taken {
        let of = now.saturating_sub(self.began);
        let taken = |(pid, process): (u32, Process)| {
            let before = self.before.get(&pid).filter(|before| before.started == process.started);
            let ticks = process.taken.saturating_sub(before.map_or(0, |before| before.taken));
            (format!("{} ({pid})", process.name), ticks.saturating_mul(TICK))
        };
        let mut by: Vec<_> = processes.map(taken).filter(|(_, time)| *time > of / LEAST).collect();
        by.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        by.truncate(MOST);
        Taken { of, by }
    }
}

/// The processes that this one may see.
fn processes() -> impl Iterator<Item = (u32, Process)> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read(entry.path().join("stat")).ok()?;
        Some((pid, parse(&String::from_utf8_lossy(&stat))?))
    })
}

/// Reads `/proc/PID/stat`: the name is in parentheses, and may have some itself.
fn parse(stat: &str) -> Option<Process> {
    let (head, fields) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once(" (")?;
    let field = |number: usize| fields.split_ascii_whitespace().nth(number - 3)?.parse::<u64>().ok();
    Some(Process { name: name.to_owned(), started: field(22)?, taken: field(14)?.saturating_add(field(15)?) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str, user: u64, system: u64, started: u64) -> Process {
        let stat =
            format!("7 ({name}) R 1 7 7 0 -1 4194304 1 0 0 0 {user} {system} 3 4 20 0 1 0 {started} 5 6");
        parse(&stat).expect("a process")
    }

    #[test]
    fn what_others_took_is_named_if_it_is_enough() {
        assert_eq!(stat("a) (b", 20, 3, 90), Process { name: "a) (b".to_owned(), started: 90, taken: 23 });
        assert_eq!(parse("7 (a) R 1"), None);
        let before =
            [(1, stat("busy", 100, 0, 90)), (2, stat("idle", 9, 0, 90)), (3, stat("gone", 900, 0, 1))];
        let neighbours = Neighbours { began: 1_000, before: before.into() };
        let now = [
            (1, stat("busy", 150, 25, 90)),
            (2, stat("idle", 10, 0, 90)),
            (3, stat("its pid again", 30, 0, 95)),
        ];
        let taken = neighbours.compare(1_000_001_000, now.into_iter());
        assert_eq!(taken.of, 1_000_000_000);
        let by = [("busy (1)".to_owned(), 750_000_000), ("its pid again (3)".to_owned(), 300_000_000)];
        assert_eq!(taken.by, by);
    }
}
