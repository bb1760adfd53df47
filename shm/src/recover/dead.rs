#![cfg_attr(not(feature = "recovery"), allow(dead_code))] // fields that only recovery reads

use std::io;
use std::path::{Path, PathBuf};

use crate::backing::Locked;
#[cfg(feature = "recovery")]
use crate::recover::chunk::Part;
use crate::recover::error::RecoverError;
#[cfg(feature = "recovery")]
use crate::recover::fragments::Fragments;
use crate::recover::header::Facts;

/// The region of a dead process, locked. Made by [`RegionFile::lock`](crate::recover::RegionFile::lock).
#[derive(Debug)]
pub struct DeadRegion {
    file: Locked,
    path: PathBuf,
    facts: Facts,
}

impl DeadRegion {
    pub(super) fn new(file: Locked, path: PathBuf, facts: Facts) -> Self {
        Self { file, path, facts }
    }

    /// The content of the region's header.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The committed bytes, in the order of each sequence.
    ///
    /// # Errors
    /// If the file cannot be read.
    #[cfg(feature = "recovery")]
    pub fn fragments(&self, part: Part) -> Result<Fragments<'_>, RecoverError> {
        let fragments = Fragments::new(&self.file, &self.path, &self.facts, part);
        fragments.map_err(|source| RecoverError::File { path: self.path.clone(), source })
    }

    /// Removes the file. Call it when the trace is complete.
    ///
    /// # Errors
    /// If the file cannot be removed. A file that is already gone is no error.
    pub fn remove(self) -> Result<(), RecoverError> {
        match std::fs::remove_file(&self.path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(RecoverError::File { path: self.path, source })
            }
            _ => Ok(()),
        }
    }
}
