//! Processes of the command that run, but have recorded nothing yet: daemons before their first event.

use std::path::Path;
use std::time::{Duration, Instant};

/// The time to wait for processes that are just being replaced by exec.
const EXEC_TAKES: Duration = Duration::from_secs(1);

/// The processes of this user whose environment names the directory of the parts, with their names. None
/// where the system has no `/proc`.
pub(super) fn processes(directory: &Path) -> Vec<(u32, String)> {
    let found = search(directory);
    if !found.is_empty() {
        return found;
    }
    // A process may have started another with a smaller number, which the search had passed, and have ended
    // before the search came to it.
    search(directory)
}

fn search(directory: &Path) -> Vec<(u32, String)> {
    let Ok(all) = std::fs::read_dir("/proc") else { return Vec::new() };
    let directory = directory.as_os_str().as_encoded_bytes();
    let until = Instant::now() + EXEC_TAKES;
    let mut found = Vec::new();
    for process in all.flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let process = process.path();
        let Some(environment) = environment(&process, until) else { continue };
        let is_of = |variable: &[u8]| {
            let value = variable.strip_prefix(b"HAIRLINE=");
            value.is_some_and(|value| value.starts_with(directory))
        };
        if environment.split(|byte| *byte == 0).any(is_of) {
            let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
            found.push((pid, name.trim_end().to_owned()));
        }
    }
    found.sort();
    found
}

/// None for processes of other users.
fn environment(process: &Path, until: Instant) -> Option<Vec<u8>> {
    loop {
        let environment = std::fs::read(process.join("environ")).ok()?;
        // During exec the new environment is not there yet, and the old one no more.
        if !environment.is_empty() || !may_have_one(process) || Instant::now() >= until {
            return Some(environment);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether a process whose environment was read as empty is in the middle of exec, or was until now.
fn may_have_one(process: &Path) -> bool {
    /// Of the flags of a process (`sched.h` of Linux).
    const EXITING: u64 = 0x4;
    const KERNEL_THREAD: u64 = 0x20_0000;
    let Ok(about) = std::fs::read_to_string(process.join("stat")) else { return false };
    // The program's name is in parentheses, and may contain some. The state is field 3 (proc_pid_stat(5)).
    let fields: Vec<&str> = about.rsplit(") ").next().unwrap_or_default().split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3).and_then(|text| text.parse().ok()).unwrap_or(0_u64);
    let has_ended = matches!(fields.first(), None | Some(&("Z" | "X")));
    let is_empty = number(50) != 0 && number(50) == number(51);
    !has_ended && number(9) & (EXITING | KERNEL_THREAD) == 0 && !is_empty
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::{Child, Command};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn sleeper() -> Command {
        let mut command = Command::new("/bin/sleep");
        command.arg("60").env_clear();
        command
    }

    /// On a busy machine, most processes are in the middle of exec when the call that starts them returns.
    #[test]
    fn a_process_in_exec_is_waited_for() {
        let busy = AtomicBool::new(true);
        let all_there = std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while busy.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let all_there = (0..200).all(|_| {
                let mut child = sleeper().env("HAIRLINE", "/parts/%p.fxt").spawn().expect("a process");
                let found = environment(&folder(&child), Instant::now() + EXEC_TAKES);
                child.kill().expect("killed");
                child.wait().expect("its end");
                found == Some(b"HAIRLINE=/parts/%p.fxt\0".to_vec())
            });
            busy.store(false, Ordering::Relaxed);
            all_there
        });
        assert!(all_there);
    }

    fn folder(child: &Child) -> PathBuf {
        format!("/proc/{}", child.id()).into()
    }

    #[test]
    fn a_process_with_an_empty_environment_holds_nothing_up() {
        let mut child = sleeper().spawn().expect("a process");
        let process = folder(&child);
        let until = Instant::now() + Duration::from_secs(600);
        assert_eq!(environment(&process, until), Some(Vec::new()));
        child.kill().expect("killed");
        // A zombie until it is waited for.
        assert_eq!(environment(&process, until), Some(Vec::new()));
        child.wait().expect("its end");
        assert_eq!(environment(&process, until), None);
    }
}
