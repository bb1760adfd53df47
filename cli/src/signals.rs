//! Signals that end a command, and what is done before.

use std::io;
use std::path::Path;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Those of them that this process was not told to ignore, as by `nohup`, or by a shell that started it with `&`. A handler would undo that,
/// for the programs that it starts too.
pub(crate) fn heeded(signals: &[i32]) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    signals.iter().copied().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// Removes a file that is not whole when a signal ends this process. It ends of that signal.
pub(crate) fn remove_at_end(path: &Path) -> io::Result<()> {
    let mut signals = Signals::new(heeded(&[SIGHUP, SIGINT, SIGTERM]))?;
    let path = path.to_owned();
    let heed = move || {
        for signal in signals.forever() {
            let _ = std::fs::remove_file(&path); // it may have its own name by now
            let _ = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(heed).map(drop)
}
