//! A program without the feature `sampling`.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use crate::on::session::scheduling::Traced;
use crate::options::Format;

/// Samples, of which there are none.
#[derive(Debug)]
pub(crate) struct Sampling(Infallible);

/// The place of no samples.
#[derive(Debug, Default)]
pub(crate) struct Slot {}

impl Slot {
    #[allow(clippy::unused_self)] // as in the twin
    pub(crate) fn open(&self, _: u32, _: Format, _: impl FnOnce() -> u32) -> Result<(), String> {
        Err("samples are not recorded: the program was built without hairline's feature `sampling`; \
             `hairline record --sample` needs no feature"
            .to_owned())
    }

    #[allow(clippy::unused_self)] // as in the twin
    pub(crate) fn moved_here(&self) {}

    #[allow(clippy::unused_self)] // as in the twin
    pub(crate) fn close(&self) -> Option<Box<Sampling>> {
        None
    }
}

impl Sampling {
    pub(crate) fn longest_sleep(&self) -> Duration {
        match self.0 {}
    }

    pub(crate) fn write(&mut self, _: Traced<'_>, _: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        match self.0 {}
    }

    #[allow(clippy::boxed_local)] // as in the twin
    pub(crate) fn finish(
        self: Box<Self>,
        _: Traced<'_>,
        _: impl FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.0 {}
    }
}
