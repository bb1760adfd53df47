//! A program without the feature `sampling`.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hairline_shm::Region;

use crate::heap_profile::HeapProfile;
use crate::on::session::heap_profile::Parts;
use crate::on::session::rotation::{Addition, Finished};
use crate::on::session::slot::Slot;
use crate::options::Format;
use crate::sampling::OwnStacks;

/// A profile, which there is none of.
#[derive(Debug)]
pub(crate) struct Profiling(Infallible);

/// The region of a session without a heap profile has no tape for it.
pub(crate) const TAPE_BYTES: u32 = 0;

#[allow(clippy::unused_self)] // as in the twin
impl Slot<Profiling> {
    pub(crate) fn open(
        &self,
        _: (HeapProfile, OwnStacks),
        _: Parts,
        _: Format,
        _: &Arc<Region>,
        _: impl FnOnce() -> u32,
    ) -> Result<(), String> {
        Err("the heap profile is not recorded: the program was built without hairline's feature `sampling`"
            .to_owned())
    }

    pub(crate) fn begin(&self) {}

    pub(crate) fn keep(&self) -> Option<Duration> {
        None
    }

    pub(crate) fn window(&self) -> Option<Infallible> {
        None
    }
}

impl Profiling {
    pub(crate) fn longest_sleep(&self) -> Duration {
        match self.0 {}
    }

    pub(crate) fn write(&mut self, _: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn end_files(&mut self, _: &mut [Finished]) -> Addition {
        match self.0 {}
    }

    #[allow(clippy::boxed_local)] // as in the twin
    pub(crate) fn finish(
        self: Box<Self>,
        _: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<Option<String>> {
        match self.0 {}
    }

    pub(crate) fn note(&self) -> Option<String> {
        match self.0 {}
    }
}

pub(crate) fn put_window(window: Infallible, _: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<u64> {
    match window {}
}
