//! Signals that end a command.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// The signals that a user sends to end a command. Each command removes its temporary files at all of them.
const ENDING: [i32; 4] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM];

/// Filters out the signals that this process ignores, because of `nohup` or because a shell started it with
/// `&`. A handler would reset that for the programs it starts too. Only Linux's `/proc` names them.
pub(super) fn heeded(signals: &[i32]) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    signals.iter().copied().filter(|signal| ignored >> (signal - 1) & 1 == 0).collect()
}

/// Calls `last` if a signal ends this process. What it is passed ends the process with that signal. Further
/// calls have no effect: a handler costs a thread and two descriptors.
pub(crate) fn before_end(last: fn(&dyn Fn())) -> io::Result<()> {
    static IS_HEEDED: Mutex<bool> = Mutex::new(false);
    let mut is_heeded = IS_HEEDED.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_heeded {
        return Ok(());
    }
    let mut signals = Signals::new(heeded(&ENDING))?;
    let heed = move || {
        for signal in signals.forever() {
            last(&|| drop(emulate_default_handler(signal)));
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(heed)?;
    *is_heeded = true;
    Ok(())
}

/// Returns a flag that the user sets by ending this process, which goes on.
pub(crate) fn ending() -> io::Result<Arc<AtomicBool>> {
    let is_over = Arc::new(AtomicBool::new(false));
    for signal in heeded(&ENDING) {
        signal_hook::flag::register(signal, Arc::clone(&is_over))?;
    }
    Ok(is_over)
}
