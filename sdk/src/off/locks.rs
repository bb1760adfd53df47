//! The waits for locks, which are not recorded.

use crate::sync::name::{Kind, Name, Place};

/// There is no session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Epoch {}

#[inline(always)]
pub(crate) fn epoch() -> Option<Epoch> {
    None
}

#[inline(always)]
pub(crate) fn known_epoch() -> Option<Epoch> {
    None
}

/// No thread is counted.
pub(crate) struct Counted;

#[derive(Debug)]
pub(crate) struct Watch;

impl Watch {
    pub(crate) const fn new(_: Name) -> Self {
        Self
    }

    #[inline(always)]
    pub(crate) fn took(&self, _: Place) {}

    #[inline(always)]
    pub(crate) fn leave(&self) {}

    #[inline(always)]
    pub(crate) fn leave_shared(&self, _: Option<Place>) {}

    #[inline(always)]
    pub(crate) fn notify(&self, _: Place) {}

    #[inline(always)]
    pub(crate) fn expect_notify(&self) -> Counted {
        Counted
    }

    #[inline(always)]
    pub(crate) fn wait<R>(
        &self,
        epoch: Epoch,
        _: Kind,
        _: Place,
        _: impl FnOnce() -> R,
        _: impl FnOnce(&R) -> bool,
    ) -> R {
        match epoch {}
    }
}

/// There is no wait.
pub(crate) enum Wait<'w> {
    #[allow(dead_code)] // it has the lifetime of the other one
    Never(Epoch, &'w Watch),
}

impl<'w> Wait<'w> {
    pub(crate) fn begin(_: &'w Watch, epoch: Epoch, _: Kind, _: Place) -> Self {
        match epoch {}
    }

    pub(crate) fn note_release(&self) {
        match self {
            Self::Never(epoch, _) => match *epoch {},
        }
    }
}
