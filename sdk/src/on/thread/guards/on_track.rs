//! Slices on tracks that the program made.

use events::last_event;

use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch, registry};
use crate::on::event::Event;
use crate::on::event::argument::{Argument, Values};
use crate::on::event::extras::Extras;
use crate::on::event::on_track::TrackRef;
use crate::on::event::position::TrackAction;
use crate::on::event::track::Track;
use crate::on::thread::cold::TrackEnd;
use crate::on::thread::end_arguments::EndArguments;
use crate::on::thread::guards::end_on_track;
use crate::on::thread::open_scope::OpenScope;
use crate::on::thread::{cold, events, hot, slow};

/// An interval on a [`Track`], from the macro to the drop of this guard, on any thread.
///
/// ```
/// use hairline::{Track, scope};
///
/// let gpu = Track::new("gpu");
/// let mut frame = scope!("ui", "frame", track: &gpu);
/// frame.arg("triangles", 1200);
/// ```
#[must_use = "the slice ends when this guard is dropped"]
#[derive(Debug)]
pub struct TrackScope {
    callsite: &'static Callsite,
    /// The epoch in which the slice began, recorded or not; `None` if there is no session, or the filter
    /// excludes the slice.
    epoch: Option<Epoch>,
    /// The epoch in which the begin was recorded.
    recorded_in: Option<Epoch>,
    /// The time of its begin, in ns.
    begun_at: u64,
    /// `None` also for a slice that is neither in the trace nor known to the track: its end would end
    /// another.
    track: Option<Track>,
    /// Whether the track knows of the slice. In a forked child it may not.
    is_known: bool,
    arguments: Option<Box<EndArguments>>,
}

impl TrackScope {
    /// Makes a guard that records nothing.
    #[doc(hidden)]
    pub fn none(callsite: &'static Callsite) -> Self {
        Self {
            callsite,
            epoch: None,
            recorded_in: None,
            begun_at: 0,
            track: None,
            is_known: false,
            arguments: None,
        }
    }

    /// Begins a slice on the track of the options.
    #[doc(hidden)]
    pub fn begin(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &impl Values,
        extras: &Extras<'_>,
    ) -> Self {
        let Some(TrackRef::Track(track)) = extras.track else { return Self::none(callsite) };
        let (recorded_in, is_known) = begin_on(callsite, epoch, track, values, extras);
        let track = (is_known || recorded_in.is_some()).then(|| track.clone());
        let (epoch, begun_at) = (Some(epoch), last_event());
        Self { callsite, epoch, recorded_in, begun_at, track, is_known, arguments: None }
    }

    /// Returns whether the begin was recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.recorded_in.is_some()
    }

    /// As [`Scope::arg`](crate::Scope::arg).
    pub fn arg(&mut self, key: &'static str, value: impl Argument) -> &mut Self {
        if self.recorded_in.is_some() {
            EndArguments::add(&mut self.arguments, key, &value);
        }
        self
    }
}

impl Drop for TrackScope {
    fn drop(&mut self) {
        if let (Some(track), Some(epoch)) = (self.track.take(), self.epoch)
            && (!self.is_known || track.open_slices().pop(epoch))
        {
            let ended = end_on(&track, self.callsite, epoch, self.arguments.take());
            if let TrackEnd::Recorded(time) = ended {
                slow::check(self.callsite, self.begun_at, time);
            }
        }
    }
}

/// Begins a slice on a track, in the session with this epoch. Returns the epoch if the begin was recorded,
/// and whether the track knows of the slice.
fn begin_on(
    callsite: &'static Callsite,
    epoch: Epoch,
    track: &Track,
    values: &impl Values,
    extras: &Extras<'_>,
) -> (Option<Epoch>, bool) {
    let recorded_in = events::rich(callsite, epoch, values, extras).map(OpenScope::epoch);
    let is_known = track.open_slices().push(epoch, recorded_in.map(|_| last_event()));
    (recorded_in, is_known)
}

/// Begins a slice on a track, without arguments and other options. `track_end` ends it.
#[inline(always)]
pub fn track_begin_bare(callsite: &'static Callsite, epoch: Epoch, track: &impl AsRef<Track>) {
    begin_bare(callsite, epoch, track.as_ref());
}

#[inline(never)]
fn begin_bare(callsite: &'static Callsite, epoch: Epoch, track: &Track) {
    match hot::bare_on_track(this_thread::hot(), callsite, epoch, TrackAction::Begin, track) {
        Some(now) => {
            track.open_slices().push(epoch, Some(now));
        }
        None => begin_bare_slow(callsite, epoch, track),
    }
}

#[cold]
#[inline(never)]
fn begin_bare_slow(callsite: &'static Callsite, epoch: Epoch, track: &Track) {
    begin_on(callsite, epoch, track, &(), &Extras::new().own_track(track));
}

/// Ends the slice that was begun last on a track, without arguments.
#[inline(always)]
pub fn track_end_bare(callsite: &'static Callsite, epoch: Option<Epoch>, track: &impl AsRef<Track>) {
    end_bare(callsite, epoch, track.as_ref());
}

#[inline(never)]
fn end_bare(callsite: &'static Callsite, epoch: Option<Epoch>, track: &Track) {
    let open = track.open_slices();
    if let Some(epoch) = epoch.or_else(|| open.epoch())
        && open.pop(epoch)
    {
        match hot::bare_on_track(this_thread::hot(), callsite, epoch, TrackAction::End, track) {
            Some(now) => open.set_last_time(epoch, now),
            None => end_bare_slow(callsite, epoch, track),
        }
    }
}

#[cold]
#[inline(never)]
fn end_bare_slow(callsite: &'static Callsite, epoch: Epoch, track: &Track) {
    end_on(track, callsite, epoch, None);
}

/// Begins a slice on a track. [`track_end`] ends it.
pub(crate) fn track_begin(
    callsite: &'static Callsite,
    epoch: Epoch,
    values: &impl Values,
    extras: &Extras<'_>,
) {
    if let Some(TrackRef::Track(track)) = extras.track {
        begin_on(callsite, epoch, track, values, extras);
    }
}

/// Notes that a slice begins which is not recorded, because of the filter or because the session stops. Its
/// end must not end another slice.
pub fn track_left_out(track: &impl AsRef<Track>) {
    let open = track.as_ref().open_slices();
    if let Some(epoch) = registry::active_epoch().or_else(|| open.epoch()) {
        open.push(epoch, None);
    }
}

/// Returns whether the track ever had a slice or an instant.
#[inline]
pub fn track_was_used(track: &impl AsRef<Track>) -> bool {
    track.as_ref().open_slices().epoch().is_some()
}

/// Ends the slice that was begun last on a track. It does so also while the session stops. Callsites are off
/// then (`epoch` is `None`), but guards still end their slices. Without this end, a guard's end would close
/// the wrong slice.
pub(crate) fn track_end(
    callsite: &'static Callsite,
    epoch: Option<Epoch>,
    values: &impl Values,
    track: &Track,
) {
    if let Some(epoch) = epoch.or_else(|| track.open_slices().epoch())
        && track.open_slices().pop(epoch)
    {
        if values.count() == 0 {
            end_on(track, callsite, epoch, None);
            return;
        }
        let unended = Unended { callsite, epoch, track };
        let extras = Extras::new();
        events::with_list(values, |values| {
            let (after, on) = (track.open_slices().last_time(epoch), Some(TrackRef::Track(track)));
            let event = Event { track: on, after, ..Event::new(callsite, values, &extras) };
            set_ended(track, epoch, &cold::end_on_track(epoch, &event));
        });
        std::mem::forget(unended);
    }
}

/// Ends the slice that was begun last on the track, and that is in the trace.
fn end_on(
    track: &Track,
    callsite: &'static Callsite,
    epoch: Epoch,
    arguments: Option<Box<EndArguments>>,
) -> TrackEnd {
    let ended = end_on_track(callsite, epoch, TrackRef::Track(track), arguments);
    set_ended(track, epoch, &ended);
    ended
}

/// Notes what became of the end of the slice that was begun last on the track.
fn set_ended(track: &Track, epoch: Epoch, end: &TrackEnd) {
    match end {
        TrackEnd::Recorded(time) => track.open_slices().set_last_time(epoch, *time),
        // The slice stays open in the trace. So the next end on the track ends it.
        TrackEnd::Refused => {
            track.open_slices().push(epoch, Some(0));
        }
        TrackEnd::Over | TrackEnd::Lost => {}
    }
}

/// Ends a slice without arguments if the code of an argument panics.
struct Unended<'a> {
    callsite: &'static Callsite,
    epoch: Epoch,
    track: &'a Track,
}

impl Drop for Unended<'_> {
    fn drop(&mut self) {
        end_on(self.track, self.callsite, self.epoch, None);
    }
}

/// The program may hold a slice across threads.
const _: fn() = || {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<TrackScope>();
};
