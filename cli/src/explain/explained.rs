//! The result, for all forms of output.

use crate::explain::survey::Survey;
use crate::explain::target::Target;
use crate::trace::ReadSummary;

/// What was found out.
pub(super) struct Explained {
    pub(super) summary: ReadSummary,
    pub(super) survey: Survey,
    pub(super) targets: Vec<Target>,
}
