//! Slices on tracks that the program made.

use events::last_event;

use crate::on::callsite::{Callsite, Epoch, registry};
use crate::on::event::Event;
use crate::on::event::argument::{Argument, Values};
use crate::on::event::extras::Extras;
use crate::on::event::on_track::TrackRef;
use crate::on::event::track::Track;
use crate::on::thread::cold::TrackEnd;
use crate::on::thread::end_arguments::EndArguments;
use crate::on::thread::guards::end_on_track;
use crate::on::thread::{cold, events};

/// An interval on a [`Track`], from the macro to the drop, on whichever thread that is.
#[must_use = "the slice ends when this guard is dropped"]
#[derive(Debug)]
pub struct TrackScope {
    callsite: &'static Callsite,
    /// The session's epoch; 0: there is none, or the filter leaves the slice out.
    epoch: u32,
    recorded: bool,
    track: Option<Track>,
    arguments: Option<Box<EndArguments>>,
}

impl TrackScope {
    /// A slice of which nothing is recorded.
    pub fn none(callsite: &'static Callsite) -> Self {
        Self { callsite, epoch: 0, recorded: false, track: None, arguments: None }
    }

    /// Begins a slice on the track that the options name.
    pub fn begin(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &impl Values,
        extras: &Extras<'_>,
    ) -> Self {
        let word = epoch.get();
        let Some(TrackRef::Track(track)) = extras.track else { return Self::none(callsite) };
        let recorded = begin_on(callsite, word, track, values, extras);
        Self { callsite, epoch: word, recorded, track: Some(track.clone()), arguments: None }
    }

    /// Whether the begin was recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// As [`Scope::arg`](crate::Scope::arg).
    pub fn arg(&mut self, key: &'static str, value: impl Argument) -> &mut Self {
        if self.recorded {
            EndArguments::add(&mut self.arguments, key, &value);
        }
        self
    }
}

impl Drop for TrackScope {
    fn drop(&mut self) {
        if let Some(track) = self.track.take()
            && track.open().pop(self.epoch)
        {
            end_on(&track, self.callsite, self.epoch, self.arguments.take());
        }
    }
}

/// Begins a slice on a track, in the session with this epoch. Whether it was recorded.
fn begin_on(
    callsite: &'static Callsite,
    word: u32,
    track: &Track,
    values: &impl Values,
    extras: &Extras<'_>,
) -> bool {
    let recorded = events::rich(callsite, word, values, extras) != 0;
    track.open().push(word, recorded);
    if recorded {
        track.open().set_last(word, last_event());
    }
    recorded
}

/// Begins a slice on a track, to be ended by [`track_end`].
pub fn track_begin(callsite: &'static Callsite, epoch: Epoch, values: &impl Values, extras: &Extras<'_>) {
    if let Some(TrackRef::Track(track)) = extras.track {
        begin_on(callsite, epoch.get(), track, values, extras);
    }
}

/// A slice begins that is left out, by the filter or since the session stops: its end must not end another one.
pub fn track_left_out(track: &impl AsRef<Track>) {
    let open = track.as_ref().open();
    let active = registry::active_epoch();
    match if active == 0 { open.epoch() } else { active } {
        0 => {}
        epoch => open.push(epoch, false),
    }
}

/// Whether anything was ever begun on the track.
#[inline]
pub fn track_was_used(track: &impl AsRef<Track>) -> bool {
    track.as_ref().open().epoch() != 0
}

/// Ends the slice begun last on a track. Also while its session stops, when callsites are off (`epoch` is `None`) and guards
/// still end what they began: were it passed over, a guard's end would close the slice in its place.
pub fn track_end(
    callsite: &'static Callsite,
    epoch: Option<Epoch>,
    track: &impl AsRef<Track>,
    values: &impl Values,
) {
    let track = track.as_ref();
    let epoch = epoch.map_or_else(|| track.open().epoch(), Epoch::get);
    if epoch != 0 && track.open().pop(epoch) {
        if values.count() == 0 {
            end_on(track, callsite, epoch, None);
            return;
        }
        let unended = Unended { callsite, epoch, track };
        let extras = Extras::new();
        events::with_list(values, |values| {
            let (after, on) = (track.open().last(epoch), Some(TrackRef::Track(track)));
            let event = Event { track: on, after, ..Event::new(callsite, values, &extras) };
            set_ended(track, epoch, cold::end_on_track(epoch, &event));
        });
        std::mem::forget(unended);
    }
}

/// Ends the slice begun last on the track, which is in the trace.
fn end_on(track: &Track, callsite: &'static Callsite, epoch: u32, arguments: Option<Box<EndArguments>>) {
    set_ended(track, epoch, end_on_track(callsite, epoch, TrackRef::Track(track), arguments));
}

fn set_ended(track: &Track, epoch: u32, end: TrackEnd) {
    if let TrackEnd::Recorded(time) = end {
        track.open().set_last(epoch, time);
    }
}

/// Ends a slice without arguments where the code of one of them panics.
struct Unended<'a> {
    callsite: &'static Callsite,
    epoch: u32,
    track: &'a Track,
}

impl Drop for Unended<'_> {
    fn drop(&mut self) {
        end_on(self.track, self.callsite, self.epoch, None);
    }
}

/// A slice that the program may hold across threads.
const _: fn() = || {
    fn sends<T: Send + Sync>() {}
    sends::<TrackScope>();
};
