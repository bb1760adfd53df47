//! Recovery, which needs the feature `enable`.

use std::path::Path;

use crate::recovery::report::{FoundRegion, RecoverError, RecoverOptions, Recovered};

pub(crate) fn recover(_: &Path, options: &RecoverOptions) -> Result<Recovered, RecoverError> {
    let RecoverOptions { to: _, keep_region: _, assume_dead: _ } = options;
    Err(RecoverError::Disabled)
}

pub(crate) fn snapshot(_: &Path, _: &Path) -> Result<Recovered, RecoverError> {
    Err(RecoverError::Disabled)
}

pub(crate) fn other_user_of(_: u32) -> Option<u32> {
    None
}

pub(crate) fn find() -> Result<Vec<FoundRegion>, RecoverError> {
    Err(RecoverError::Disabled)
}
