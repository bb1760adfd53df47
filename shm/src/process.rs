//! Whether a process lives: by its pid and the time at which it started, which together name one for good.

use std::os::unix::fs::MetadataExt;

/// In place of a pid.
pub(crate) const SELF: &str = "self";

/// Whether the process that made a region lives.
#[cfg(not(loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Life {
    /// It does: its region is its own.
    Alive,
    /// It does not.
    Dead,
    /// It cannot be told from here: it counted its pid in another namespace (a container), or there is no `/proc`.
    Unknown,
}

/// Field 22 of `/proc/PID/stat`, in clock ticks since boot.
pub(crate) fn start_time(pid: &str) -> Option<u64> {
    stat(pid).map(|(_, start)| start)
}

/// Inode of this process's pid namespace; 0 where it cannot be known.
pub(crate) fn own_namespace() -> u64 {
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |m| m.ino())
}

/// Whether process `pid` lives that started at `start` (0: whichever it is) and counts its pid in `namespace` (0: ours).
#[cfg(not(loom))]
pub(crate) fn life(pid: u32, start: u64, namespace: u64) -> Life {
    let (Some(_), own) = (stat(SELF), own_namespace()) else { return Life::Unknown };
    if namespace != 0 && own != 0 && namespace != own {
        return Life::Unknown;
    }
    match stat(&pid.to_string()) {
        None => Life::Dead,
        Some((_, now)) if start != 0 && now != start => Life::Dead, // another one has its pid
        // A zombie is dead, unless only its first thread has ended.
        Some(('Z' | 'X', _)) if threads(pid) <= 1 => Life::Dead,
        Some(_) => Life::Alive,
    }
}

/// State and start time.
fn stat(pid: &str) -> Option<(char, u64)> {
    // The command's name may be any bytes.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    // It may hold spaces and parentheses too: count from the last ')'. What follows is field 3.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(22 - 4)?.parse().ok()?))
}

#[cfg(not(loom))]
fn threads(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_lives_until_it_has_ended_and_a_zombie_does_not() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let start = start_time(&child.id().to_string()).unwrap();
        assert_eq!(life(child.id(), start, own_namespace()), Life::Alive);
        assert_eq!(life(child.id(), 0, 0), Life::Alive);
        assert_eq!(life(child.id(), start + 1, 0), Life::Dead, "its pid was another's");
        assert_eq!(life(child.id(), start, 1), Life::Unknown, "of another namespace");
        child.kill().unwrap();
        while life(child.id(), start, 0) != Life::Dead {} // a zombie: nobody has waited for it
        child.wait().unwrap();
        assert_eq!(life(child.id(), start, 0), Life::Dead);
        assert_eq!(life(std::process::id(), start_time(SELF).unwrap(), own_namespace()), Life::Alive);
    }
}
