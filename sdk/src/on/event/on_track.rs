//! The track that an event is on.

pub(crate) use sealed::Sealed;

use crate::on::event::interval::Interval;
use crate::on::event::position::{InFxt, Position};
use crate::on::event::track::{Track, TrackKind};

/// A track that an event is on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TrackRef<'a> {
    Track(&'a Track),
    Async(&'a Interval),
}

impl TrackRef<'_> {
    /// Whether it is a track in the session with this epoch.
    pub(crate) fn is_of(self, epoch: u32) -> bool {
        match self {
            Self::Track(_) => true,
            Self::Async(scope) => scope.is_of(epoch),
        }
    }

    pub(crate) fn uuid(self) -> u64 {
        match self {
            Self::Track(track) => track.uuid(),
            Self::Async(scope) => scope.uuid(),
        }
    }

    /// The same, for the hot path of the session with this epoch.
    pub(crate) fn place(self, epoch: u32) -> Position {
        let in_fxt = match self {
            Self::Async(scope) if scope.is_plain() => InFxt::Interval,
            Self::Track(track) if matches!(track.place(), TrackKind::Thread(_)) => InFxt::Thread,
            _ => InFxt::Blob,
        };
        let after = match self {
            Self::Async(scope) => scope.begun_at(),
            Self::Track(track) => track.open().last(epoch),
        };
        Position { uuid: self.uuid(), after, in_fxt }
    }
}

mod sealed {
    use crate::on::event::on_track::TrackRef;

    pub trait Sealed {
        /// None: an interval that is not recorded at all, and so no track.
        #[doc(hidden)]
        #[allow(private_interfaces)] // nobody outside can name the trait
        fn track_ref(&self) -> Option<TrackRef<'_>>;
    }
}

/// What `track:` takes: a [`Track`], or a guard of [`trace_async!`](crate::trace_async).
pub trait OnTrack: sealed::Sealed {}

impl<T: sealed::Sealed + ?Sized> OnTrack for T {}

impl sealed::Sealed for Track {
    #[allow(private_interfaces)]
    fn track_ref(&self) -> Option<TrackRef<'_>> {
        Some(TrackRef::Track(self))
    }
}

impl<T: sealed::Sealed + ?Sized> sealed::Sealed for &T {
    #[allow(private_interfaces)]
    fn track_ref(&self) -> Option<TrackRef<'_>> {
        (**self).track_ref()
    }
}
