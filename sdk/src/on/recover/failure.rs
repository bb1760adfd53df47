//! Errors of files.

use std::io;
use std::path::{Path, PathBuf};

use crate::recovery::report::RecoverError;

/// An error of this file.
pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> RecoverError + use<> {
    let path: PathBuf = path.to_owned();
    move |source| RecoverError::Io { path, source }
}
