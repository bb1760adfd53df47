//! Tracks and flows that are not recorded.

use std::borrow::Cow;

use crate::traceparent::{Origin, OwnFlags, Traceparent};
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
pub struct Flow(u64, Origin);

impl Flow {
    /// A flow with the id 0.
    #[must_use]
    pub fn new() -> Self {
        Self(0, Origin::default())
    }

    /// The flow with this id.
    #[must_use]
    pub fn from_id(id: u64) -> Self {
        Self(id, Origin::default())
    }

    /// Returns the id: 0 for a flow that [`new`](Self::new) made.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0
    }

    /// Creates a flow that began in another process, from the [`traceparent`](crate::Traceparent) header that
    /// the process sent. `None` if the header is not valid as W3C Trace Context defines it (levels 1 and 2;
    /// later versions as level 1 demands): a request with such a header is to be served like one without.
    /// Spaces and tabs around the value are ignored.
    ///
    /// ```
    /// use hairline::{Flow, trace_scope};
    ///
    /// let header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    /// let flow = Flow::from_traceparent(header).unwrap_or_default();
    /// trace_scope!("http", "serve", traceparent = header, flow: &flow);
    /// assert!(Flow::from_traceparent("00-0-0-00").is_none());
    /// ```
    #[must_use]
    pub fn from_traceparent(header: impl AsRef<str>) -> Option<Self> {
        let (id, origin) = Origin::parse(header.as_ref().as_bytes())?;
        Some(Self(id, origin))
    }

    /// Returns the header that the flow came with, so that a program passes it on. `None` for a flow without
    /// an id, which [`new`](Self::new) made.
    #[must_use]
    pub fn to_traceparent(&self) -> Option<Traceparent> {
        self.1.header(self.0, OwnFlags::default())
    }

    /// The flow itself: a header that came in goes out as it is, so that others can follow the request.
    #[must_use]
    pub fn child(&self) -> Self {
        self.clone()
    }
}

impl AsRef<Flow> for Flow {
    fn as_ref(&self) -> &Flow {
        self
    }
}
