//! A program without the feature `sampling`.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::heap_profile::HeapProfile;
use crate::on::session::heap_profile::Parts;
use crate::on::session::rotation::Finished;
use crate::options::Format;

/// A profile, which there is none of.
#[derive(Debug)]
pub(crate) struct Profiling(Infallible);

/// The place of no profile.
#[derive(Debug, Default)]
pub(crate) struct Slot {}

impl Slot {
    #[allow(clippy::unused_self)] // as in the twin
    pub(crate) fn open(
        &self,
        _: HeapProfile,
        _: Parts,
        _: Format,
        _: impl FnOnce() -> u32,
    ) -> Result<(), String> {
        Err("the heap profile is not recorded: the program was built without hairline's feature `sampling`"
            .to_owned())
    }

    #[allow(clippy::unused_self)] // as in the twin
    pub(crate) fn begin(&self) {}

    #[allow(clippy::unused_self)] // as in the twin
    pub(crate) fn is_open(&self) -> bool {
        false
    }

    #[allow(clippy::unused_self)] // as in the twin
    pub(crate) fn keep(&self) -> Option<Duration> {
        None
    }

    #[allow(clippy::unused_self)] // as in the twin
    pub(crate) fn window(self: &Arc<Self>) -> Option<Infallible> {
        None
    }

    #[allow(clippy::unused_self)] // as in the twin
    pub(crate) fn close(&self) -> Option<Box<Profiling>> {
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

    pub(crate) fn end_files(&mut self, _: Vec<Finished>) {
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
