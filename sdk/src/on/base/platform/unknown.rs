//! What other systems than Linux do not tell.

use std::fs::File;

use crate::on::base::memory::SharedText;

/// Returns how many files this process may have open, for the kernel's events: there are none here.
pub(crate) fn file_limit() -> u64 {
    0
}

/// Returns false: the threads of a process share one table of open files.
pub(crate) fn own_files(_numbers: &[i32]) -> bool {
    false
}

/// Returns false: see [`own_files`].
pub(crate) fn has_own_files() -> bool {
    false
}

/// Returns false: the system does not say who has a lock.
pub(crate) fn has_locked(_file: &File) -> bool {
    false
}

/// Returns `None`: not known.
pub(crate) fn process_start() -> Option<u64> {
    None
}

/// Returns false: there is no mark.
pub(crate) fn has_recovery_mark(_file: &File) -> bool {
    false
}

/// Does nothing: see [`has_recovery_mark`].
#[cfg(feature = "recovery")]
pub(crate) fn set_recovery_mark(_file: &File, _is_marked: bool) {}

/// The code that is loaded: all of it, as far as is known.
pub(crate) struct Modules(());

impl Modules {
    /// Returns the code that is loaded in a forked child.
    pub(crate) fn in_child() -> Self {
        Self(())
    }

    /// Returns 0: no unloading is noticed.
    pub(crate) fn unloads(&self) -> Option<u64> {
        Some(0)
    }

    /// Returns true: no unloading is noticed.
    pub(crate) fn contain(&self, _address: usize, _bytes: usize) -> bool {
        true
    }
}

/// Calls `f` once.
pub(crate) fn with_modules(f: &mut dyn FnMut(&Modules)) {
    f(&Modules(()));
}

/// Returns `None`: no thread of another name is noticed.
pub(crate) fn system_name() -> Option<SharedText> {
    None
}

/// Returns `None`, as [`system_name`].
pub(crate) fn system_name_of(_tid: u32) -> Option<SharedText> {
    None
}

/// A process that listens for commands: not here.
pub(crate) mod door {
    #![allow(dead_code)] // no value of these types is made

    use std::fs::File;
    use std::io;
    use std::path::Path;
    use std::time::Duration;

    use crate::on::base::platform::facts::{Ready, Received};

    #[derive(Debug)]
    pub(crate) enum Door {}

    #[derive(Debug)]
    pub(crate) enum Visitor {}

    impl Door {
        /// Fails: the kernel of Linux is needed.
        pub(crate) fn open(_path: &Path) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn accept(&self) -> io::Result<Option<Visitor>> {
            match *self {}
        }

        pub(crate) fn wait<'v>(
            &self,
            _visitors: impl Iterator<Item = &'v Visitor>,
            _longest: Option<Duration>,
        ) -> Ready {
            match *self {}
        }
    }

    impl Visitor {
        pub(crate) fn may_command(&self) -> bool {
            match *self {}
        }

        pub(crate) fn pid(&self) -> u32 {
            match *self {}
        }

        pub(crate) fn receive(&self, _bytes: &mut [u8]) -> Received {
            match *self {}
        }

        pub(crate) fn send(&self, _bytes: &[u8]) -> bool {
            match *self {}
        }
    }

    pub(crate) fn is_empty_output(_file: &File) -> bool {
        false
    }

    pub(crate) fn knock(_path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn remove_stale(_folder: &Path, _pid_in: impl Fn(&str) -> Option<u32>) {}
}

/// A service of the machine: not here.
pub(crate) mod service {
    #![allow(dead_code)] // no value of these types is made

    use std::fs::File;
    use std::io;
    use std::path::Path;
    use std::sync::atomic::AtomicU32;
    use std::time::{Duration, Instant};

    use crate::on::base::platform::facts::Heard;

    #[derive(Debug)]
    pub(crate) enum Connection {}

    #[derive(Debug)]
    pub(crate) enum SharedMemory {}

    impl Connection {
        /// Fails: the kernel of Linux is needed.
        pub(crate) fn open(_path: &Path) -> io::Result<Self> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn is_trusted(&self) -> bool {
            match *self {}
        }

        pub(crate) fn again(&self) -> io::Result<Self> {
            match *self {}
        }

        pub(crate) fn number(&self) -> i32 {
            match *self {}
        }

        pub(crate) fn wait(&self, _longest: Duration) {
            match *self {}
        }

        pub(crate) fn receive(&self, _bytes: &mut [u8]) -> Heard {
            match *self {}
        }

        pub(crate) fn send(&self, _bytes: &[u8], _file: Option<&File>, _until: Instant) -> io::Result<()> {
            match *self {}
        }
    }

    impl SharedMemory {
        /// Fails: the kernel of Linux is needed.
        pub(crate) fn new(_len: usize) -> io::Result<(Self, File)> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(crate) fn word(&self, _at: usize) -> &AtomicU32 {
            match *self {}
        }

        pub(crate) fn write(&self, _at: usize, _bytes: &[u8]) {
            match *self {}
        }
    }
}
