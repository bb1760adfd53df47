//! An output that blocks.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hairline::SessionBuilder;

/// Decides whether the output of a session takes bytes.
#[derive(Debug, Default)]
pub struct Gate(Arc<Mutex<()>>);

impl Gate {
    /// Makes the session write to an output that blocks while the gate is closed.
    pub fn of(&self, builder: SessionBuilder) -> SessionBuilder {
        builder.output_writer(Stuck(Arc::clone(&self.0)))
    }

    /// Closes the gate until the result is dropped.
    pub fn close(&self) -> MutexGuard<'_, ()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An output that blocks while another thread has the lock.
struct Stuck(Arc<Mutex<()>>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        drop(self.0.lock());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
