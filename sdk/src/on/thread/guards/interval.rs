//! Async intervals.

use hairline_formats::Value;

use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::argument::{Argument, Values};
use crate::on::event::extras::Extras;
use crate::on::event::interval::{Interval, Lane};
use crate::on::event::on_track::{Sealed, TrackRef};
use crate::on::event::position::{Happens, Position};
use crate::on::event::{Event, track};
use crate::on::thread::cold::TrackEnd;
use crate::on::thread::end_arguments::EndArguments;
use crate::on::thread::guards::end_on_track;
use crate::on::thread::{cold, events, hot, lanes};

/// An interval on a track of its own, which may end on another thread than it began on.
///
/// Made by [`trace_async!`](crate::trace_async). What happens inside of it goes on its track with `track: &guard`.
#[must_use = "the interval ends when this guard is dropped"]
#[derive(Debug)]
pub struct AsyncScope {
    interval: Interval,
    arguments: Option<Box<EndArguments>>,
}

impl AsyncScope {
    /// An interval of which nothing is recorded.
    pub fn none(callsite: &'static Callsite) -> Self {
        Self { interval: Interval::none(callsite), arguments: None }
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
        let position = Position {
            after: scope.interval.lane.used_until,
            ..TrackRef::Async(&scope.interval).place(word)
        };
        let begun_at = if extras.says_no_more() {
            hot::on_track(this_thread::hot(), callsite, word, Happens::Begin, position, values)
        } else {
            None
        };
        match begun_at {
            Some(time) => (scope.interval.word, scope.interval.begun_at) = (word, time),
            None => {
                events::with_list(values, |values| scope.begin_cold(values, extras, None));
            }
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
        let (track, after) = (Some(TrackRef::Async(&self.interval)), self.interval.lane.used_until);
        let event = Event { track, after, past, ..Event::new(self.interval.callsite, values, extras) };
        self.interval.word = cold::event(self.interval.tried, &event);
        if self.interval.word != 0 {
            self.interval.begun_at = past.unwrap_or_else(events::last_event);
        }
    }

    /// One that has its track, and is to begin now or at a time ago.
    fn placed(callsite: &'static Callsite, word: u32, extras: &Extras<'_>, past: Option<u64>) -> Self {
        let mut interval = Interval::none(callsite);
        match extras.track {
            Some(TrackRef::Track(track)) => interval.parent = Some(track.clone()),
            Some(TrackRef::Async(above)) if above.word == word => interval.above = Some(above.as_above()),
            // Not in this trace: what is above it may be.
            Some(TrackRef::Async(above)) => {
                interval.parent = above.parent.clone();
                interval.above = above.above.filter(|above| above.epoch == word);
            }
            None => {}
        }
        interval.tried = word;
        // A track has one name; and below one that is not used again nothing is.
        interval.shared_lane = extras.name.is_none() && interval.above.is_none_or(|above| above.shares_lane);
        interval.lane = if interval.shared_lane {
            match past {
                None => lanes::take(interval.parent_uuid(), callsite),
                Some(since) => lanes::take_before(interval.parent_uuid(), callsite, since),
            }
        } else {
            Lane { uuid: track::new_uuid(), used_until: 0 }
        };
        Self { interval, arguments: None }
    }

    /// Whether the begin was recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.interval.word != 0
    }

    /// As [`Scope::arg`](crate::Scope::arg).
    pub fn arg(&mut self, key: &'static str, value: impl Argument) -> &mut Self {
        if self.interval.word != 0 {
            EndArguments::add(&mut self.arguments, key, &value);
        }
        self
    }

    /// Arguments of its end.
    #[cfg(feature = "subscriber")]
    pub(crate) fn set_arguments(&mut self, arguments: &[(&str, Value<'_>)]) {
        if self.interval.word != 0 {
            let own = &mut self.arguments;
            arguments.iter().for_each(|(key, value)| EndArguments::add_named(own, key, value));
        }
    }
}

impl Drop for AsyncScope {
    fn drop(&mut self) {
        let mut free = true;
        if self.interval.word != 0 {
            let arguments = self.arguments.take();
            match end_on_track(
                self.interval.callsite,
                self.interval.word,
                TrackRef::Async(&self.interval),
                arguments,
            ) {
                TrackEnd::Recorded(time) => self.interval.lane.used_until = time,
                TrackEnd::Over => {}
                TrackEnd::Refused => free = false, // the slice stays open
            }
        }
        if free && self.interval.shared_lane {
            lanes::give_back(self.interval.parent_uuid(), self.interval.callsite, self.interval.lane);
        }
    }
}

impl Sealed for AsyncScope {
    #[allow(private_interfaces)]
    fn track_ref(&self) -> Option<TrackRef<'_>> {
        (self.interval.uuid() != 0).then_some(TrackRef::Async(&self.interval))
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

    use super::*;
    use crate::on::callsite::CounterOptions;
    use crate::on::callsite::Kind;
    use crate::on::callsite::Site;
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
                let hot = this_thread::hot();
                hot.offset.set(hot.offset.get().wrapping_sub(BEHIND));
                let end = end_on_track(
                    &CALLSITE,
                    interval.interval.word,
                    TrackRef::Async(&interval.interval),
                    None,
                );
                let begun_at = interval.interval.begun_at();
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
