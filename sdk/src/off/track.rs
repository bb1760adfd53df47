//! Tracks and flows that are not recorded.

use std::borrow::Cow;

use crate::vocabulary::Ordering;

/// A track that is not recorded.
#[derive(Clone, Debug)]
pub struct Track(());

impl Track {
    /// A root track.
    pub fn new(_: impl Into<Cow<'static, str>>) -> Self {
        Self(())
    }

    /// The track of the process.
    pub fn process() -> Self {
        Self(())
    }

    /// The track of the calling thread.
    pub fn thread() -> Self {
        Self(())
    }

    /// A track below this one.
    #[must_use]
    pub fn child(&self, _: impl Into<Cow<'static, str>>) -> Self {
        Self(())
    }

    /// Would set the order of the tracks below this one.
    #[must_use]
    pub fn ordering(self, _: Ordering) -> Self {
        self
    }

    /// Would set the rank among the siblings.
    #[must_use]
    pub fn rank(self, _: i32) -> Self {
        self
    }

    /// Would set the description.
    #[must_use]
    pub fn description(self, _: impl Into<Cow<'static, str>>) -> Self {
        self
    }

    /// Returns 0.
    #[must_use]
    pub fn uuid(&self) -> u64 {
        0
    }
}

impl AsRef<Track> for Track {
    fn as_ref(&self) -> &Track {
        self
    }
}

pub(super) mod sealed {
    pub trait Sealed {}
}

/// A value of the option `track:`.
pub trait OnTrack: sealed::Sealed {}

impl<T: sealed::Sealed + ?Sized> OnTrack for T {}
impl sealed::Sealed for Track {}
impl<T: sealed::Sealed + ?Sized> sealed::Sealed for &T {}

/// A flow that is not recorded.
#[derive(Clone, Debug, Default)]
pub struct Flow(u64);

impl Flow {
    /// A flow with the id 0.
    #[must_use]
    pub fn new() -> Self {
        Self(0)
    }

    /// The flow with this id.
    #[must_use]
    pub fn from_id(id: u64) -> Self {
        Self(id)
    }

    /// Returns the id: 0 for a flow that [`new`](Self::new) made.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0
    }
}

impl AsRef<Flow> for Flow {
    fn as_ref(&self) -> &Flow {
        self
    }
}
