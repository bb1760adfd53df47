//! Async intervals.

use hairline_formats::Value;

use super::super::super::argument::{Argument, Values};
use super::super::super::callsite::{Callsite, Epoch};
use super::super::super::extras::Extras;
use super::super::super::lanes::{self, Lane};
use super::super::super::process;
use super::super::super::track::{self, Track, TrackRef};
use super::super::cold::{self, TrackEnd};
use super::super::end_arguments::EndArguments;
use super::super::event::Event;
use super::super::hot::{self, Happens, Place};
use super::end_on_track;

/// An async interval that another one lies below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Above {
    pub(crate) uuid: u64,
    epoch: u32,
    pub(crate) parent_uuid: u64,
    pub(crate) name: &'static str,
    shares_lane: bool,
    /// Whether FXT has records for it, so that it is no track until something lies below it.
    pub(crate) is_plain: bool,
}

/// An interval on a track of its own, which may end on another thread than it began on.
///
/// Made by [`trace_async!`](crate::trace_async). What happens inside of it goes on its track with `track: &guard`.
#[must_use = "the interval ends when this guard is dropped"]
#[derive(Debug)]
pub struct AsyncScope {
    callsite: &'static Callsite,
    /// The epoch its begin was recorded in; 0 = it was not.
    word: u32,
    /// The epoch in which it began, recorded or not.
    tried: u32,
    /// When it began, if it is recorded: what happens in it comes after that, on whichever thread.
    begun_at: u64,
    /// Its track; 0: there is none.
    lane: Lane,
    /// Whether the track may be used again.
    shared_lane: bool,
    /// The track above, as far as it is one that the program made.
    parent: Option<Track>,
    /// The async interval above, if it is in the trace.
    above: Option<Above>,
    arguments: Option<Box<EndArguments>>,
}

impl AsyncScope {
    /// An interval of which nothing is recorded.
    pub fn none(callsite: &'static Callsite) -> Self {
        let lane = Lane { uuid: 0, used_until: 0 };
        Self {
            callsite,
            word: 0,
            tried: 0,
            begun_at: 0,
            lane,
            shared_lane: false,
            parent: None,
            above: None,
            arguments: None,
        }
    }

    /// Begins an interval.
    pub fn begin(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &impl Values,
        extras: &Extras<'_>,
    ) -> Self {
        let word = epoch.get();
        let mut scope = Self::placed(callsite, word, extras, None);
        let place = Place { after: scope.lane.used_until, ..TrackRef::Async(&scope).place(word) };
        let begun_at = if extras.says_no_more() {
            hot::on_track(hot::hot(), callsite, word, Happens::Begin, place, values)
        } else {
            None
        };
        match begun_at {
            Some(time) => (scope.word, scope.begun_at) = (word, time),
            None => super::super::with_list(values, |values| scope.begin_cold(values, extras, None)),
        }
        scope
    }

    /// Begins an interval, now or at a time ago.
    #[cfg(feature = "subscriber")]
    pub(crate) fn begin_at(
        callsite: &'static Callsite,
        word: u32,
        values: &[Value<'_>],
        extras: &Extras<'_>,
        past: Option<u64>,
    ) -> Self {
        let mut scope = Self::placed(callsite, word, extras, past);
        scope.begin_cold(values, extras, past);
        scope
    }

    fn begin_cold(&mut self, values: &[Value<'_>], extras: &Extras<'_>, past: Option<u64>) {
        let (track, after) = (Some(TrackRef::Async(self)), self.lane.used_until);
        let event = Event { track, after, past, ..Event::new(self.callsite, values, extras) };
        self.word = cold::event(self.tried, &event);
        if self.word != 0 {
            self.begun_at = past.unwrap_or_else(super::super::last_event);
        }
    }

    /// One that has its track, and is to begin now or at a time ago.
    fn placed(callsite: &'static Callsite, word: u32, extras: &Extras<'_>, past: Option<u64>) -> Self {
        let mut scope = Self::none(callsite);
        match extras.track {
            Some(TrackRef::Track(track)) => scope.parent = Some(track.clone()),
            Some(TrackRef::Async(above)) if above.word == word => scope.above = Some(above.as_above()),
            // Not in this trace: what is above it may be.
            Some(TrackRef::Async(above)) => {
                scope.parent = above.parent.clone();
                scope.above = above.above.filter(|above| above.epoch == word);
            }
            None => {}
        }
        scope.tried = word;
        // A track has one name; and below one that is not used again nothing is.
        scope.shared_lane = extras.name.is_none() && scope.above.is_none_or(|above| above.shares_lane);
        scope.lane = if scope.shared_lane {
            match past {
                None => lanes::take(scope.parent_uuid(), callsite),
                Some(since) => lanes::take_before(scope.parent_uuid(), callsite, since),
            }
        } else {
            Lane { uuid: track::new_uuid(), used_until: 0 }
        };
        scope
    }

    /// Whether the begin was recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.word != 0
    }

    /// As [`Scope::arg`](crate::Scope::arg).
    pub fn arg(&mut self, key: &'static str, value: impl Argument) -> &mut Self {
        if self.word != 0 {
            EndArguments::add(&mut self.arguments, key, &value);
        }
        self
    }

    /// Arguments of its end.
    #[cfg(feature = "subscriber")]
    pub(crate) fn set_arguments(&mut self, arguments: &[(&str, Value<'_>)]) {
        if self.word != 0 {
            let own = &mut self.arguments;
            arguments.iter().for_each(|(key, value)| EndArguments::add_named(own, key, value));
        }
    }

    pub(crate) fn uuid(&self) -> u64 {
        self.lane.uuid
    }

    /// Whether its track is one that later intervals use too, so that it is to be described once.
    pub(crate) fn shares_lane(&self) -> bool {
        self.shared_lane
    }

    /// When it began; 0 if that is not in the trace.
    pub(crate) fn begun_at(&self) -> u64 {
        self.begun_at
    }

    pub(crate) fn callsite(&self) -> &'static Callsite {
        self.callsite
    }

    /// Whether it began in the session with this epoch. In another one it is no track: its lane is somebody else's there.
    pub(crate) fn is_of(&self, epoch: u32) -> bool {
        self.tried == epoch
    }

    /// Whether it is in the trace of the session with this epoch.
    pub(crate) fn is_recorded_in(&self, epoch: u32) -> bool {
        self.word == epoch
    }

    /// What lies below it needs to know of it.
    fn as_above(&self) -> Above {
        Above {
            uuid: self.lane.uuid,
            epoch: self.word,
            parent_uuid: self.parent_uuid(),
            name: self.callsite.name(),
            shares_lane: self.shared_lane,
            is_plain: self.is_plain(),
        }
    }

    /// The interval above, if it is in the trace of the session with this epoch.
    pub(crate) fn above_in(&self, epoch: u32) -> Option<Above> {
        self.above.filter(|above| above.epoch == epoch)
    }

    pub(crate) fn parent(&self) -> Option<&Track> {
        self.parent.as_ref()
    }

    /// The track above. In a session that it did not begin in, what lies above it there counts for nothing.
    pub(crate) fn parent_uuid_in(&self, epoch: u32) -> u64 {
        let above = self.above_in(epoch).map(|above| above.uuid);
        above.or_else(|| self.parent.as_ref().map(Track::uuid)).unwrap_or_else(process::track_uuid)
    }

    fn parent_uuid(&self) -> u64 {
        self.parent_uuid_in(self.above.map_or(0, |above| above.epoch))
    }

    /// Whether it belongs to the process and nothing else, and has its callsite's name.
    pub(crate) fn is_plain(&self) -> bool {
        self.parent.is_none() && self.above.is_none() && self.shared_lane
    }
}

impl Drop for AsyncScope {
    fn drop(&mut self) {
        let mut free = true;
        if self.word != 0 {
            let arguments = self.arguments.take();
            match end_on_track(self.callsite, self.word, TrackRef::Async(self), arguments) {
                TrackEnd::Recorded(time) => self.lane.used_until = time,
                TrackEnd::Over => {}
                TrackEnd::Refused => free = false, // the slice stays open
            }
        }
        if free && self.shared_lane {
            lanes::give_back(self.parent_uuid(), self.callsite, self.lane);
        }
    }
}

/// An interval that the program may hold across threads.
const _: fn() = || {
    fn sends<T: Send + Sync>() {}
    sends::<AsyncScope>();
};

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::super::super::super::callsite::{CounterOptions, Kind, Site};
    use super::*;
    use crate::{Format, Session};

    static SITE: Site = Site { file: "f", line: 1, module: "m", counter: CounterOptions::NONE };
    static CALLSITE: Callsite = Callsite::new(Kind::Scope, "t", "interval", &[], &SITE);

    fn begin() -> AsyncScope {
        AsyncScope::begin(&CALLSITE, CALLSITE.registered_epoch().expect("it is on"), &(), &Extras::new())
    }

    /// ns that one clock is behind the other, and the time that its thread was idle before, so that its time goes on all the same.
    const BEHIND: u64 = 1_000_000;
    const IDLE: Duration = Duration::from_micros(1500);

    #[test]
    fn an_end_comes_after_its_begin_by_a_clock_that_is_behind() {
        for format in [Format::Fxt, Format::TrackEvent] {
            let session = Session::builder().output_writer(std::io::sink()).format(format).start();
            let session = session.expect("a session");
            let (give, take) = mpsc::channel::<AsyncScope>();
            let (tell, told) = mpsc::channel();
            let other = std::thread::spawn(move || {
                (0..2).for_each(|_| drop(begin())); // the lane is described here
                tell.send(()).expect("somebody waits");
                std::thread::sleep(IDLE);
                let interval = take.recv().expect("an interval");
                let hot = hot::hot();
                hot.offset.set(hot.offset.get().wrapping_sub(BEHIND));
                let end = end_on_track(&CALLSITE, interval.word, TrackRef::Async(&interval), None);
                let begun_at = interval.begun_at();
                std::mem::forget(interval);
                (begun_at, end)
            });
            told.recv().expect("it lives");
            std::thread::sleep(IDLE);
            give.send(begin()).expect("it waits");
            let (begun_at, end) = other.join().expect("no panic");
            assert!(
                matches!(end, TrackEnd::Recorded(time) if time > begun_at),
                "{format:?}: {end:?}, {begun_at}"
            );
            session.stop().expect("no error");
        }
    }
}
