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
