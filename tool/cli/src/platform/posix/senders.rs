//! Who sent a signal: a process or the terminal.

// A handler that sees the sender can only be registered by an unsafe function: it must be safe in a signal
// handler.
#![allow(unsafe_code)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The signals that processes sent since they were last taken.
#[derive(Debug, Default)]
pub(super) struct Senders {
    /// A bit for each signal.
    sent: Arc<AtomicU64>,
}

impl Senders {
    /// Begins to watch signals.
    pub(super) fn watch(signals: &[i32]) -> io::Result<Self> {
        let senders = Self::default();
        for &signal in signals {
            let (sent, bit) = (Arc::clone(&senders.sent), bit(signal));
            // SAFETY: the handler only reads its argument and changes an atomic number, which is
            // async-signal-safe.
            unsafe {
                signal_hook_registry::register_sigaction(signal, move |about| {
                    // The codes of signals that processes send are not positive.
                    if about.si_code <= 0 {
                        sent.fetch_or(bit, Ordering::Relaxed);
                    }
                })
            }?;
        }
        Ok(senders)
    }

    /// Returns whether a process sent this signal since the last call.
    pub(super) fn take(&self, signal: i32) -> bool {
        self.sent.fetch_and(!bit(signal), Ordering::Relaxed) & bit(signal) != 0
    }
}

fn bit(signal: i32) -> u64 {
    1 << (signal & 63)
}
