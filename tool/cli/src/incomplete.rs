//! Incomplete files, which are removed if the user ends this process.
//!
//! The process has one set of them and one handler of signals, however many files it writes. The handler
//! holds the set's lock until the process has ended, and files are created under the lock: so no file can
//! appear after the handler has removed all.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

use crate::platform;

static PATHS: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Has the effect that the end of this process removes a file, until it is dropped: after the file got its
/// name, or was removed.
#[derive(Debug)]
pub(crate) struct Removal(PathBuf);

impl Removal {
    /// Removes the file at `path` if the user ends this process.
    ///
    /// # Errors
    /// Fails if signals cannot be handled.
    pub(crate) fn at_end(path: &Path) -> io::Result<Self> {
        platform::before_end(remove_all)?;
        Ok(Self::add(path, &mut paths()))
    }

    /// As [`at_end`](Self::at_end) for a file that `create` creates.
    ///
    /// # Errors
    /// Fails if `create` fails, or if signals cannot be handled.
    pub(crate) fn of_new(
        create: impl FnOnce() -> io::Result<NamedTempFile>,
    ) -> io::Result<(NamedTempFile, Self)> {
        platform::before_end(remove_all)?;
        let mut paths = paths();
        let file = create()?;
        let removal = Self::add(file.path(), &mut paths);
        Ok((file, removal))
    }

    fn add(path: &Path, paths: &mut BTreeSet<PathBuf>) -> Self {
        paths.insert(path.to_owned());
        Self(path.to_owned())
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        paths().remove(&self.0);
    }
}

/// Removes all incomplete files, then calls `end`. No further file is created before `end` returns.
fn remove_all(end: &dyn Fn()) {
    let paths = paths();
    for path in &*paths {
        let _ = std::fs::remove_file(path); // it may be renamed already
    }
    end();
}

fn paths() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    PATHS.lock().unwrap_or_else(PoisonError::into_inner)
}
