//! What systems share that have no files in memory and no namespaces.

use std::fs::File;
use std::io;

use crate::platform::Namespaces;

/// Has no such files.
pub(crate) fn memory_file() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Does nothing: there are no such files.
pub(crate) fn seal_length(_file: &File) {}

/// Returns constants: there are no namespaces.
pub(crate) fn namespaces() -> Namespaces {
    Namespaces { pids: 1, time: 0 }
}

/// Returns `true`: there are no namespaces.
pub(crate) fn shows_own_pids() -> bool {
    true
}

/// Returns `true`: there are no user namespaces.
pub(crate) fn is_one_user(_number: u32) -> bool {
    true
}

/// Does nothing: only on Linux do threads with a pending `pthread_cancel` record.
pub(crate) fn defer_cancel() -> i32 {
    0
}

/// Does nothing.
pub(crate) fn restore_cancel(_before: i32) {}
