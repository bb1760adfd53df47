//! An output that blocks.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// An output that blocks while another thread has the lock.
#[derive(Debug)]
pub struct Stuck(pub Arc<Mutex<()>>);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        drop(self.0.lock());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
