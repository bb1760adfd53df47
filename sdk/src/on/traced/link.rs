//! Calls to the service. The registered thread and the session's thread both make them, each with a
//! descriptor of its own of one connection.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::on::base::platform::service::Connection;
use crate::on::traced::frames::{Bound, Method};

/// A service that takes no call for this time is stuck.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// A connection of one thread.
#[derive(Debug)]
pub(crate) struct Link {
    connection: Connection,
    line: Arc<Line>,
}

/// What the threads share.
#[derive(Debug)]
struct Line {
    bound: Bound,
    /// The number of the last request. Held while a frame is sent, so that frames do not mix: for
    /// [`PATIENCE`] at most, and by Hairline's own threads alone, which no forked child has.
    last: Mutex<u64>,
    is_broken: AtomicBool,
}

impl Link {
    /// Of a connection whose service has these numbers. `request` is the number of the last request.
    pub(crate) fn new(connection: Connection, bound: Bound, request: u64) -> Self {
        let line = Line { bound, last: Mutex::new(request), is_broken: AtomicBool::new(false) };
        Self { connection, line: Arc::new(line) }
    }

    /// Returns the link for another thread.
    pub(crate) fn again(&self) -> io::Result<Self> {
        Ok(Self { connection: self.connection.again()?, line: Arc::clone(&self.line) })
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Calls the service. Returns the number of the request.
    ///
    /// # Errors
    /// When the connection has failed, now or before.
    pub(crate) fn call(&self, method: Method, arguments: &[u8], file: Option<&File>) -> io::Result<u64> {
        let mut frame = Vec::with_capacity(arguments.len() + 64);
        let mut last = self.line.last.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_broken() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        *last += 1;
        if self.line.bound.put_call(&mut frame, *last, method, arguments) {
            let sent = self.connection.send(&frame, file, Instant::now() + PATIENCE);
            sent.inspect_err(|_| self.break_off())?;
        }
        Ok(*last)
    }

    /// Whether a call has failed. Nothing more is sent: a part of a frame may have been.
    pub(crate) fn is_broken(&self) -> bool {
        self.line.is_broken.load(Ordering::Relaxed)
    }

    /// Notes that the service has gone.
    pub(crate) fn break_off(&self) {
        self.line.is_broken.store(true, Ordering::Relaxed);
    }
}
