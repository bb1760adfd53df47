//! What a [`Watch`] asks of the system.

use std::io;

use crate::here::Stacks;
use crate::sys::{self, Timer};
use crate::watch::{Next, Watch};

/// The signals that a watcher has sent, which may be under way.
///
/// Each is that of a timer, and not of `kill` or its kin: it has its memory from the start, so none comes
/// without the value that tells it from others, and it does not survive an `exec`.
#[derive(Debug, Default)]
pub struct Asked(Vec<Timer>);

/// The signals that may be under way at a time.
const MOST: usize = 64;

impl Stacks {
    /// Creates a watch without slices, whose samples go here.
    #[must_use]
    pub fn watch(&'static self) -> Watch {
        Watch::new(&self.0)
    }
}

impl Watch {
    /// Makes this the watch of the process, for good.
    ///
    /// # Errors
    /// [`ResourceBusy`](io::ErrorKind::ResourceBusy) if the program handles or ignores `SIGPROF`;
    /// [`Unsupported`](io::ErrorKind::Unsupported) on other systems than Linux on x86-64 and aarch64.
    pub fn install(&'static self) -> io::Result<()> {
        sys::install_watch(self)
    }

    /// Asks the threads of the slices that are due at `now` for samples. The watcher's thread calls this.
    pub fn look(&self, now: u64, asked: &mut Asked) -> Next {
        let mut ask = |tid| {
            let Some(timer) = sys::ask(tid) else { return false };
            if asked.0.len() >= MOST {
                asked.0.remove(0); // asked long ago
            }
            asked.0.push(timer);
            true
        };
        self.look_with(now, &mut ask, sys::is_there)
    }
}
