//! Follows the trace file of a process as it grows.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use hairline_convert::{Context, open};

use crate::input::{identity, open_file};
use crate::platform;
use crate::platform::facts::Identity;
use crate::stats::Gather;
use crate::top::rates::Rates;
use crate::top::source::SliceSource;
use crate::trace::ItemVisitor;

/// The pause at the end of the file.
const PAUSE: Duration = Duration::from_millis(20);

/// Reads the file on a thread of its own, and shares the counts.
pub(super) struct Follow {
    shared: Arc<Shared>,
    path: PathBuf,
    identity: Identity,
}

struct Shared {
    gather: Mutex<Gather>,
    /// Whether the initial content of the file was read.
    is_read: AtomicBool,
    /// The number of bytes read.
    position: AtomicU64,
    /// Whether another thread waits for the counts. The reading thread would otherwise take the lock again at
    /// once.
    is_wanted: AtomicBool,
    /// Whether reading should stop.
    is_over: AtomicBool,
    failed: Mutex<Option<String>>,
}

/// A growing file: waits for more bytes at its end.
struct Growing {
    file: File,
    /// The initial length in bytes.
    first: u64,
    shared: Arc<Shared>,
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.file.read(buffer)?;
            let position = self.shared.position.fetch_add(read as u64, Ordering::Relaxed) + read as u64;
            // A truncated file is shorter by now.
            if position >= self.first || read == 0 {
                self.shared.is_read.store(true, Ordering::Relaxed);
            }
            if read > 0 || buffer.is_empty() || self.shared.is_over.load(Ordering::Relaxed) {
                return Ok(read);
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Follow {
    pub(super) fn start(path: &Path) -> Result<Self, String> {
        let name = path.display().to_string();
        let (file, first) = open_file(path).map_err(|e| format!("{name}: {e}"))?;
        let shared = Arc::new(Shared {
            gather: Mutex::new(Gather::new(None).with_live_timeline()),
            is_read: AtomicBool::new(false),
            position: AtomicU64::new(0),
            is_wanted: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            failed: Mutex::new(None),
        });
        let identity = platform::identity(&file).map_err(|e| format!("{name}: {e}"))?;
        let growing = Growing { file, first, shared: Arc::clone(&shared) };
        thread::spawn(move || {
            let shared = Arc::clone(&growing.shared);
            if let Err(e) = read(growing) {
                *shared.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
            }
            shared.is_read.store(true, Ordering::Relaxed);
        });
        Ok(Self { shared, path: path.to_owned(), identity })
    }
}

/// Reads all items.
fn read(growing: Growing) -> Result<(), String> {
    let shared = Arc::clone(&growing.shared);
    let mut reader = open(growing, None).map_err(|e| e.to_string())?;
    let mut context = Context::new();
    loop {
        // The lock is free while this waits.
        let Some(item) = reader.next(&mut context).map_err(|e| e.to_string())? else { return Ok(()) };
        while shared.is_wanted.load(Ordering::Relaxed) {
            thread::yield_now();
        }
        shared.gather.lock().unwrap_or_else(PoisonError::into_inner).item(&item);
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
    }
}

impl SliceSource for Follow {
    fn take(&mut self, is_over: &AtomicBool) -> Result<Rates, String> {
        // The first table excludes earlier events.
        while !self.shared.is_read.load(Ordering::Relaxed) && !is_over.load(Ordering::Relaxed) {
            thread::sleep(PAUSE);
        }
        let failed = self.shared.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(e) = failed {
            return Err(format!("{}: {e}", self.path.display()));
        }
        self.shared.is_wanted.store(true, Ordering::Relaxed);
        let (gathered, keys) = self.shared.gather.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.shared.is_wanted.store(false, Ordering::Relaxed);
        let len = std::fs::metadata(&self.path).map_or(0, |about| about.len());
        let behind = len.saturating_sub(self.shared.position.load(Ordering::Relaxed));
        // The output was rotated: a new file has its path (HAIRLINE_ROTATE).
        if identity(&self.path).is_some_and(|now| now != self.identity) {
            *self = Self::start(&self.path)?;
        }
        Ok(Rates { gathered, keys, behind, covered: None })
    }
}
