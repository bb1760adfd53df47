//! A program without the feature `sampling`.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hairline_shm::Region;

use crate::on::session::naming::Naming;
use crate::on::session::rotation::Addition;
use crate::on::session::sampling::{Opened, Wanted};
use crate::on::session::scheduling::Traced;
use crate::on::session::slot::Slot;
use crate::options::Format;

/// Samples, of which there are none.
#[derive(Debug)]
pub(crate) struct Sampling(Infallible);

/// Returns 0: the region of a session without samples has no tape.
pub(crate) fn tape_bytes(_: bool, _: u64) -> u32 {
    0
}

#[allow(clippy::unused_self)] // as in the twin
impl Slot<Sampling> {
    pub(crate) fn open(&self, wanted: Wanted, _: Format, _: &Arc<Region>) -> Opened {
        const WITHOUT: &str = "the program was built without hairline's feature `sampling`";
        let help = "`hairline record --sample` needs no feature";
        let samples = format!("samples are not recorded: {WITHOUT}; {help}");
        let stacks = format!("the stacks of events are not recorded: {WITHOUT}");
        Opened {
            no_samples: wanted.samples.is_some().then_some(samples),
            notes: wanted.has_events().then_some(stacks).into_iter().collect(),
            threads: None,
        }
    }

    pub(crate) fn moved_here(&self) {}

    pub(crate) fn begin(&self) {}

    pub(crate) fn keep(&self, _: Traced<'_>) -> Option<Duration> {
        None
    }

    pub(crate) fn window(&self, _: Traced<'_>) -> Option<Infallible> {
        None
    }
}

impl Sampling {
    pub(crate) fn longest_sleep(&self) -> Duration {
        match self.0 {}
    }

    pub(crate) fn end_file(
        &mut self,
        _: Traced<'_>,
        _: impl Fn(u32) -> bool + Send + 'static,
    ) -> Option<Addition> {
        match self.0 {}
    }

    pub(crate) fn write(
        &mut self,
        _: Traced<'_>,
        _: &mut Naming,
        _: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.0 {}
    }

    #[allow(clippy::boxed_local)] // as in the twin
    pub(crate) fn finish(
        self: Box<Self>,
        _: Traced<'_>,
        _: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Option<String>> {
        match self.0 {}
    }

    pub(crate) fn note(&self) -> Option<String> {
        match self.0 {}
    }
}

pub(crate) fn put_window(
    _: Traced<'_>,
    window: Infallible,
    _: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<u64> {
    match window {}
}
