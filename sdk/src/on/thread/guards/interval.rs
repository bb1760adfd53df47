//! Async intervals.

use hairline_formats::Value;

use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::argument::{Argument, Values};
use crate::on::event::extras::Extras;
use crate::on::event::interval::{Interval, Lane};
use crate::on::event::on_track::{Sealed, TrackRef};
use crate::on::event::position::{Position, TrackAction};
use crate::on::event::{Event, track};
use crate::on::thread::cold::TrackEnd;
use crate::on::thread::end_arguments::EndArguments;
use crate::on::thread::guards::end_on_track;
use crate::on::thread::{cold, events, hot, lanes};

/// An interval on a track of its own. It may end on another thread than it began on.
///
/// [`trace_async!`](crate::trace_async) makes it. With `track: &guard`, events and intervals go below it.
///
/// ```
/// use hairline::{trace_async, trace_instant};
///
/// let mut request = trace_async!("net", "request", id = 7);
/// std::thread::spawn(move || {
///     trace_instant!("net", "retry", track: &request);
///     request.arg("status", 200);
/// })
/// .join()
/// .unwrap();
/// ```
#[must_use = "the interval ends when this guard is dropped"]
#[derive(Debug)]
pub struct AsyncScope {
    interval: Interval,
    arguments: Option<Box<EndArguments>>,
}

impl AsyncScope {
    /// Makes a guard that records nothing.
    #[doc(hidden)]
    pub fn none(callsite: &'static Callsite) -> Self {
        Self { interval: Interval::unrecorded(callsite), arguments: None }
    }

    /// Begins an interval.
    #[doc(hidden)]
    pub fn begin(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &impl Values,
        extras: &Extras<'_>,
    ) -> Self {
        let mut scope = Self::placed(callsite, epoch, extras, None);
        let position = Position {
            after: scope.interval.lane.used_until,
            ..TrackRef::Async(&scope.interval).position(epoch)
        };
        let begun_at = if extras.has_only_track() {
            hot::on_track(this_thread::hot(), callsite, epoch, TrackAction::Begin, position, values)
        } else {
            None
        };
        match begun_at {
            Some(time) => (scope.interval.recorded_in, scope.interval.begun_at) = (Some(epoch), time),
            None => {
                events::with_list(values, |values| scope.begin_cold(epoch, values, extras, None));
            }
        }
        scope
    }

    /// Begins an interval, now or at the time `past`.
    #[cfg(feature = "subscriber")]
    pub(crate) fn begin_at(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &[Value<'_>],
        extras: &Extras<'_>,
        past: Option<u64>,
    ) -> Self {
        let mut scope = Self::placed(callsite, epoch, extras, past);
        scope.begin_cold(epoch, values, extras, past);
        scope
    }

    fn begin_cold(&mut self, epoch: Epoch, values: &[Value<'_>], extras: &Extras<'_>, past: Option<u64>) {
        let (track, after) = (Some(TrackRef::Async(&self.interval)), self.interval.lane.used_until);
        let event = Event { track, after, past, ..Event::new(self.interval.callsite, values, extras) };
        self.interval.recorded_in = cold::event(epoch, &event);
        if self.interval.recorded_in.is_some() {
            self.interval.begun_at = past.unwrap_or_else(events::last_event);
        }
    }

    /// Makes an interval with a track. It is about to begin, now or at the time `past`.
    fn placed(callsite: &'static Callsite, epoch: Epoch, extras: &Extras<'_>, past: Option<u64>) -> Self {
        let mut interval = Interval::unrecorded(callsite);
        match extras.track {
            Some(TrackRef::Track(track)) => interval.parent_track = Some(track.clone()),
            Some(TrackRef::Async(above)) => match above.as_parent_in(epoch) {
                Some(above) => interval.parent_interval = Some(above),
                // It is not in this trace, but its parent may be.
                None => {
                    interval.parent_track = above.parent_track.clone();
                    interval.parent_interval = above.parent_interval_in(epoch);
                }
            },
            None => {}
        }
        interval.epoch = Some(epoch);
        // A lane has one name. A lane that is not shared has no shared lanes below it.
        interval.is_lane_shared =
            extras.name.is_none() && interval.parent_interval.is_none_or(|above| above.shares_lane);
        interval.lane = if interval.is_lane_shared {
            match past {
                None => lanes::take(interval.parent_uuid(), callsite),
                Some(since) => lanes::take_before(interval.parent_uuid(), callsite, since),
            }
        } else {
            Lane { uuid: track::new_uuid(), used_until: 0 }
        };
        Self { interval, arguments: None }
    }

    /// Returns whether the begin was recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.interval.recorded_in.is_some()
    }

    /// As [`Scope::arg`](crate::Scope::arg).
    pub fn arg(&mut self, key: &'static str, value: impl Argument) -> &mut Self {
        if self.interval.recorded_in.is_some() {
            EndArguments::add(&mut self.arguments, key, &value);
        }
        self
    }

    /// Adds arguments to the record of its end.
    #[cfg(feature = "subscriber")]
    pub(crate) fn set_arguments(&mut self, arguments: &[(&str, Value<'_>)]) {
        if self.interval.recorded_in.is_some() {
            let own = &mut self.arguments;
            arguments.iter().for_each(|(key, value)| EndArguments::add_named(own, key, value));
        }
    }
}

impl Drop for AsyncScope {
    fn drop(&mut self) {
        let mut has_ended = true;
        if let Some(epoch) = self.interval.recorded_in {
            let arguments = self.arguments.take();
            match end_on_track(self.interval.callsite, epoch, TrackRef::Async(&self.interval), arguments) {
                TrackEnd::Recorded(time) => self.interval.lane.used_until = time,
                TrackEnd::Over => {}
                TrackEnd::Refused => has_ended = false, // the slice stays open
            }
        }
        if has_ended && self.interval.is_lane_shared {
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

/// The program may hold an interval across threads.
const _: fn() = || {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<AsyncScope>();
};

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::site::CallsiteKind;
    use crate::site::CounterOptions;
    use crate::site::Site;
    use crate::{Format, Session};

    static SITE: Site = Site { file: "f", line: 1, module: "m", counter: CounterOptions::NONE };
    static CALLSITE: Callsite = Callsite::new(CallsiteKind::Scope, "t", "interval", &[], &SITE);

    fn begin() -> AsyncScope {
        AsyncScope::begin(&CALLSITE, CALLSITE.registered_epoch().expect("it is on"), &(), &Extras::new())
    }

    /// The ns by which one thread's clock is behind the other's. The thread idles for longer, so that its
    /// time still advances.
    const BEHIND: u64 = 1_000_000;
    const IDLE: Duration = Duration::from_micros(1500);

    #[test]
    fn an_end_comes_after_its_begin_even_if_the_clock_of_its_thread_is_behind() {
        for format in [Format::Fxt, Format::TrackEvent] {
            let session = Session::builder().output_writer(std::io::sink()).format(format).start();
            let session = session.expect("a session");
            let (send, receive) = mpsc::channel::<AsyncScope>();
            let (set_ready, ready) = mpsc::channel();
            let other = std::thread::spawn(move || {
                (0..2).for_each(|_| drop(begin())); // this thread describes the lane
                set_ready.send(()).expect("the test waits");
                std::thread::sleep(IDLE);
                let interval = receive.recv().expect("an interval");
                let hot = this_thread::hot();
                hot.offset.set(hot.offset.get().wrapping_sub(BEHIND));
                let end = end_on_track(
                    &CALLSITE,
                    interval.interval.recorded_in.expect("it was recorded"),
                    TrackRef::Async(&interval.interval),
                    None,
                );
                let begun_at = interval.interval.begun_at();
                std::mem::forget(interval);
                (begun_at, end)
            });
            ready.recv().expect("the thread runs");
            std::thread::sleep(IDLE);
            send.send(begin()).expect("the thread waits");
            let (begun_at, end) = other.join().expect("no panic");
            assert!(
                matches!(end, TrackEnd::Recorded(time) if time > begun_at),
                "{format:?}: {end:?}, {begun_at}"
            );
            session.stop().expect("no error");
        }
    }
}
