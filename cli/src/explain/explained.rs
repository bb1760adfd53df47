//! The result, for all forms of output.

use std::path::PathBuf;

use crate::explain::survey::Survey;
use crate::explain::target::Target;
use crate::trace::ReadSummary;

/// What was found out.
pub(super) struct Explained {
    pub(super) trace: PathBuf,
    pub(super) summary: ReadSummary,
    pub(super) survey: Survey,
    pub(super) targets: Vec<Target>,
}
