//! The regions of programs that were killed.

use std::path::{Path, PathBuf};

use hairline::recovery;

/// The region of the session with this output. A pid would not do: an earlier process may have had the same.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn region_of(output: &Path) -> PathBuf {
    let regions = recovery::find().expect("regions");
    regions.into_iter().find(|region| region.output.as_deref() == Some(output)).expect("a region").path
}
