//! The result, for all forms of output.

use std::path::PathBuf;

use crate::explain::heap::Heap;
use crate::explain::survey::Survey;
use crate::explain::target::{Band, Target};
use crate::explain::threads::Threads;
use crate::trace::ReadSummary;

/// What was found out.
pub(super) struct Explained {
    pub(super) trace: PathBuf,
    pub(super) summary: ReadSummary,
    pub(super) survey: Survey,
    /// The names. There are none if threads are explained.
    pub(super) targets: Vec<Target>,
    pub(super) threads: Threads,
    /// The heap profile, if the trace has one.
    pub(super) heap: Option<Heap>,
    /// Whether the question was about the whole trace.
    pub(super) is_of_all: bool,
}

impl Explained {
    /// The names that are shown. Where the question was about all, polls only explain their intervals.
    pub(super) fn shown(&self) -> impl Iterator<Item = &Target> {
        self.targets.iter().filter(|target| !(self.is_of_all && target.chosen.is_poll))
    }

    /// The first name that has stack samples, or else the first one, or the first thread, and all that is
    /// known of it.
    pub(super) fn first(&self) -> Option<(String, &Band)> {
        let has_samples = |of: &&Target| !(of.all.on_cpu.is_empty() && of.all.off_cpu.is_empty());
        let target = self.targets.iter().find(has_samples).or(self.targets.first());
        let target = target.map(|target| (full_name(&self.survey, target), &target.all));
        let thread = self.threads.chosen.first();
        target.or_else(|| thread.map(|thread| (thread.times.name.clone(), &thread.band)))
    }
}

/// The category and the name.
pub(super) fn full_name(survey: &Survey, target: &Target) -> String {
    let name = target.chosen.name;
    let (category, name) = (survey.keys().text(name.category), survey.keys().text(name.name));
    let name = if name.is_empty() { "(no name)" } else { name };
    if category.is_empty() { name.to_owned() } else { format!("{category}/{name}") }
}
