//! Facts that the system knows of this process and its threads.

use std::ffi::OsStr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use hairline_formats::track_event::TrackUuid;

use crate::on::base::forever;
use crate::on::base::memory::SharedText;
use crate::on::base::platform::{CAN_RECORD, boottime, fill_randomly, is_first_thread, thread_name};
pub(crate) use crate::on::base::platform::{SignalsBlocked, file_limit, is_privileged, tid, write_to_stderr};
use crate::on::base::uuid;

/// The ids and the name of a thread, as a trace shows them. To ask for an id is a system call.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    /// The id of its process.
    pub(crate) pid: u32,
    /// The kernel's id.
    pub(crate) tid: u32,
    /// Its name. A clone allocates nothing.
    pub(crate) name: SharedText,
}

impl Thread {
    /// Returns the calling thread.
    pub(crate) fn current() -> Self {
        let tid = tid();
        let name = if is_first_thread(tid) { SharedText::from("main") } else { thread_name() };
        Self { pid: id(), tid, name }
    }
}

/// Returns the id of this process.
pub(crate) fn id() -> u32 {
    // WebAssembly has no processes, and asking there is a panic.
    if CAN_RECORD { std::process::id() } else { 0 }
}

/// Returns a random number of this process, the same at each call; never 0.
pub(crate) fn random_id() -> u64 {
    static RANDOM_ID: AtomicU64 = AtomicU64::new(0);
    match RANDOM_ID.load(Ordering::Relaxed) {
        0 => {
            // No lock, which a fork could lose and an event in a signal handler would wait for. If several
            // threads get here at once, the first number stored counts.
            let fresh = u64::from_le_bytes(random()) | 1;
            RANDOM_ID
                .compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed)
                .map_or_else(|first| first, |_| fresh)
        }
        id => id,
    }
}

/// Returns the uuid of the process's track.
pub(crate) fn track_uuid() -> TrackUuid {
    static TRACK_UUID: AtomicU64 = AtomicU64::new(0);
    match TRACK_UUID.load(Ordering::Relaxed) {
        0 => {
            let uuid = uuid::track_uuid(random_id());
            TRACK_UUID.store(uuid.0, Ordering::Relaxed); // by all threads the same
            uuid
        }
        uuid => TrackUuid(uuid),
    }
}

/// Returns random bytes. They derive from pid and time if the system has no randomness yet.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0u8; N];
    if !fill_randomly(&mut bytes) {
        let seed = boottime() ^ u64::from(id()) << 40;
        for (i, b) in bytes.iter_mut().enumerate() {
            *b = (uuid::track_uuid(seed.wrapping_add(i as u64)).0 >> 8) as u8;
        }
    }
    bytes
}

/// Returns the file name of the executable, as it was at the first call: the start of a session. An event
/// that needs the name must not ask the system for it.
pub(crate) fn name() -> &'static str {
    static NAME: AtomicPtr<SharedText> = AtomicPtr::new(std::ptr::null_mut());
    let ask = || {
        let path = std::env::current_exe().ok();
        let name = path.as_deref().and_then(|path| path.file_name()).map(OsStr::to_string_lossy);
        SharedText::from(name.as_deref().unwrap_or("unknown"))
    };
    let name: &SharedText = forever::get_or_leak(&NAME, ask);
    name
}

/// Returns the command line.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_rust_name_or_else_its_kernel_name() {
        let named = std::thread::Builder::new().name("a name of more than fifteen bytes".into());
        let named = named.spawn(Thread::current).unwrap().join().unwrap();
        assert_eq!(&*named.name, "a name of more than fifteen bytes");
        let unnamed = std::thread::spawn(Thread::current).join().unwrap();
        assert!(!unnamed.name.is_empty());
        assert_ne!(named.tid, unnamed.tid);
    }
}
