//! The `track:` of an event.

pub(crate) use sealed::Sealed;

use hairline_formats::track_event::TrackUuid;

use crate::on::callsite::Epoch;
use crate::on::event::interval::{Interval, Owner};
use crate::on::event::position::{InFxt, Position};
use crate::on::event::track::{Track, TrackKind};

/// The track that an event is on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TrackRef<'a> {
    Track(&'a Track),
    Async(&'a Interval),
}

impl TrackRef<'_> {
    /// Whether this is a track in the session with this epoch.
    pub(crate) fn is_of(self, epoch: Epoch) -> bool {
        match self {
            Self::Track(_) => true,
            Self::Async(interval) => interval.is_of(epoch),
        }
    }

    pub(crate) fn uuid(self) -> TrackUuid {
        match self {
            Self::Track(track) => track.track_uuid(),
            Self::Async(interval) => interval.uuid(),
        }
    }

    /// Returns the position on the track, for the hot path of the session with this epoch.
    pub(crate) fn position(self, epoch: Epoch) -> Position {
        let in_fxt = match self {
            Self::Async(interval) if interval.is_plain() => InFxt::Interval,
            Self::Track(track) if matches!(track.kind(), TrackKind::Thread(_)) => InFxt::Thread,
            _ => InFxt::Blob,
        };
        let after = match self {
            Self::Async(interval) => interval.last_time(),
            Self::Track(track) => track.open_slices().last_time(epoch),
        };
        Position { uuid: self.uuid(), after, in_fxt }
    }

    /// Notes the time of an instant on the track, in the session with this epoch. A slice that begins or ends
    /// after it, on another thread, must be later.
    pub(crate) fn set_instant_time(self, epoch: Epoch, time: u64) {
        match self {
            Self::Async(interval) => interval.nested.set_used_until(time),
            Self::Track(track) => track.open_slices().set_instant_time(epoch, time),
        }
    }
}

mod sealed {
    use crate::on::event::interval::Owner;
    use crate::on::event::on_track::TrackRef;

    pub trait Sealed {
        /// Returns the track. `None` for an interval that is not recorded at all, and so is no track.
        #[doc(hidden)]
        #[allow(private_interfaces)] // code outside of this crate cannot name the trait
        fn track_ref(&self) -> Option<TrackRef<'_>>;

        /// Returns the owner of the interval, if a child may become another one.
        #[doc(hidden)]
        #[allow(private_interfaces)]
        fn owner(&self) -> Option<&dyn Owner> {
            None
        }
    }
}

/// A value for `track:`: a [`Track`], or a guard of [`trace_async!`](crate::trace_async), or an
/// [`Arc`](std::sync::Arc) of such a guard.
///
/// ```
/// use hairline::{OnTrack, Track, trace_async, trace_instant};
///
/// fn note(place: &impl OnTrack) {
///     trace_instant!("jobs", "note", track: place);
/// }
///
/// note(&Track::process());
/// note(&trace_async!("jobs", "job"));
/// ```
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

    #[allow(private_interfaces)]
    fn owner(&self) -> Option<&dyn Owner> {
        (**self).owner()
    }
}
