//! Async intervals.

use std::sync::Arc;

use hairline_formats::Value;
use hairline_formats::track_event::TrackUuid;

use crate::on::base::platform::process;
use crate::on::base::this_thread;
use crate::on::callsite::{Callsite, Epoch};
use crate::on::event::argument::{Argument, Values};
use crate::on::event::extras::Extras;
use crate::on::event::interval::{Interval, Lane, Lasting, Owner};
use crate::on::event::on_track::{Sealed, TrackRef};
use crate::on::event::position::{InFxt, Position, TrackAction};
use crate::on::event::track::Track;
use crate::on::event::{Event, track};
use crate::on::thread::cold::TrackEnd;
use crate::on::thread::end_arguments::EndArguments;
use crate::on::thread::guards::end_on_track;
use crate::on::thread::{cold, events, hot, lanes, slow};

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
    pub(crate) arguments: Option<Box<EndArguments>>,
    /// The parent, which ends after this interval.
    above: Option<Arc<dyn Lasting>>,
}

impl AsyncScope {
    /// Makes a guard that records nothing.
    #[doc(hidden)]
    #[inline]
    pub fn none(callsite: &'static Callsite) -> Self {
        Self { interval: Interval::unrecorded(callsite), arguments: None, above: None }
    }

    /// Begins an interval.
    #[doc(hidden)]
    #[inline] // the guard is made where the caller has it: it is not copied
    pub fn begin(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &impl Values,
        extras: &Extras<'_>,
    ) -> Self {
        let mut scope = Self::none(callsite);
        scope.begin_now(epoch, values, extras);
        scope
    }

    /// Begins an interval that is a track in FXT, as in TrackEvent: its children can nest below it.
    pub(crate) fn begin_as_track(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &impl Values,
        extras: &Extras<'_>,
    ) -> Self {
        let mut scope = Self::none(callsite);
        scope.interval.is_always_track = true;
        scope.begin_now(epoch, values, extras);
        scope
    }

    /// Whether it is in the trace of the session with this epoch.
    #[cfg(feature = "futures")]
    pub(crate) fn is_recorded_in(&self, epoch: Epoch) -> bool {
        self.interval.is_recorded_in(epoch)
    }

    /// Records a slice of `callsite` on the lane of this interval, from the time `since` to now. There are no
    /// other children of the interval on its lane meanwhile.
    pub(crate) fn record_since(&self, callsite: &'static Callsite, epoch: Epoch, since: u64) {
        let mut child = Interval::unrecorded(callsite);
        child.epoch = Some(epoch);
        child.parent_interval = self.interval.as_parent_in(epoch);
        let since = since.max(self.interval.last_time() + 1); // the time of another thread
        let (is_nested, past) = child.nest_on(&self.interval, Some(since));
        let Some(past) = past.filter(|_| is_nested) else { return };
        child.begun_at = past;
        let track = TrackRef::Async(&child);
        let mut used_until = child.lane.used_until;
        if hot::bare_in_past(this_thread::hot(), callsite, epoch, track.position(epoch), past)
            || begin_in_past(callsite, epoch, track, past)
        {
            match end_on_track(callsite, epoch, track, None) {
                TrackEnd::Recorded(time) => used_until = time,
                TrackEnd::Over | TrackEnd::Lost => {}
                TrackEnd::Refused => return, // it stays open
            }
        }
        self.interval.nested.close(used_until);
    }

    /// Records a slice of `callsite` with a name of its own from `since` to now, not before `until`, on a lane
    /// below `parent` that no other interval uses meanwhile.
    #[cfg_attr(not(feature = "sync"), allow(dead_code))]
    pub(crate) fn record_past(
        callsite: &'static Callsite,
        epoch: Epoch,
        (name, values): (&str, &[Value<'_>]),
        (parent, lane): (Track, &mut Lane),
        (since, until): (u64, u64),
    ) {
        if lane.uuid == TrackUuid(0) {
            *lane = Lane { uuid: track::new_uuid(), used_until: 0 };
        }
        let since = since.max(lane.used_until + 1); // the end before has the time of another clock
        let mut interval = Interval::unrecorded(callsite);
        interval.epoch = Some(epoch);
        interval.parent_track = Some(parent);
        (interval.lane, interval.is_lane_shared) = (*lane, true);
        let extras = Extras::new().name(name);
        let track = Some(TrackRef::Async(&interval));
        let event = Event { track, past: Some(since), ..Event::new(callsite, values, &extras) };
        interval.recorded_in = cold::event(epoch, &event);
        if interval.recorded_in.is_none() {
            return;
        }
        interval.begun_at = until.max(since); // its end comes after that
        lane.used_until = interval.begun_at;
        match end_on_track(callsite, epoch, TrackRef::Async(&interval), None) {
            TrackEnd::Recorded(time) => {
                lane.used_until = time;
                slow::check(callsite, since, time);
            }
            TrackEnd::Over | TrackEnd::Lost => {}
            TrackEnd::Refused => lane.uuid = TrackUuid(0), // the slice stays open
        }
    }

    /// Begins an interval without arguments and options.
    #[doc(hidden)]
    #[inline] // as `begin`
    pub fn begin_bare(callsite: &'static Callsite, epoch: Epoch) -> Self {
        let mut scope = Self::none(callsite);
        scope.begin_bare_now(epoch);
        scope
    }

    #[inline(never)]
    fn begin_bare_now(&mut self, epoch: Epoch) {
        let interval = &mut self.interval;
        interval.epoch = Some(epoch);
        interval.is_lane_shared = true;
        interval.lane = lanes::take(process::track_uuid(), interval.callsite);
        let Lane { uuid, used_until } = interval.lane;
        let position = Position { uuid, after: used_until, in_fxt: InFxt::Interval };
        let (hot, callsite) = (this_thread::hot(), interval.callsite);
        match hot::bare_at(hot, callsite, epoch, TrackAction::Begin, position) {
            Some(time) => (interval.recorded_in, interval.begun_at) = (Some(epoch), time),
            None => self.begin_cold(epoch, &[], &Extras::new(), None),
        }
    }

    #[inline(never)]
    fn begin_now(&mut self, epoch: Epoch, values: &impl Values, extras: &Extras<'_>) {
        self.place_now(epoch, extras);
        let position = Position {
            after: self.interval.lane.used_until,
            ..TrackRef::Async(&self.interval).position(epoch)
        };
        let callsite = self.interval.callsite;
        let begun_at = if extras.has_only_track() {
            let not_begun = NotBegun(self);
            let begun_at = hot::on_track(callsite, epoch, TrackAction::Begin, position, values);
            std::mem::forget(not_begun);
            begun_at
        } else {
            None
        };
        match begun_at {
            Some(time) => (self.interval.recorded_in, self.interval.begun_at) = (Some(epoch), time),
            None => {
                events::with_list(values, |values| self.begin_cold(epoch, values, extras, None));
            }
        }
    }

    /// As [`begin_as_track`](Self::begin_as_track), now or at the time `past`.
    #[cfg(any(feature = "subscriber", feature = "sync"))]
    pub(crate) fn begin_at(
        callsite: &'static Callsite,
        epoch: Epoch,
        values: &[Value<'_>],
        extras: &Extras<'_>,
        past: Option<u64>,
    ) -> Self {
        let mut scope = Self::none(callsite);
        scope.set_parent(epoch, extras);
        scope.interval.is_always_track = true;
        let past = scope.place(past);
        scope.begin_cold(epoch, values, extras, past);
        scope
    }

    #[inline(never)]
    fn begin_cold(&mut self, epoch: Epoch, values: &[Value<'_>], extras: &Extras<'_>, past: Option<u64>) {
        let (track, after) = (Some(TrackRef::Async(&self.interval)), self.interval.lane.used_until);
        let event = Event { track, after, past, ..Event::new(self.interval.callsite, values, extras) };
        let not_begun = NotBegun(self);
        let recorded_in = cold::event(epoch, &event);
        if recorded_in.is_some() {
            std::mem::forget(not_begun);
            self.interval.begun_at = past.unwrap_or_else(events::last_event);
            self.interval.recorded_in = recorded_in;
        }
    }

    /// Gives a new interval its parent and a lane. It is about to begin.
    fn place_now(&mut self, epoch: Epoch, extras: &Extras<'_>) {
        self.set_parent(epoch, extras);
        self.place(None);
    }

    /// Gives a new interval its parent.
    #[inline(always)]
    fn set_parent(&mut self, epoch: Epoch, extras: &Extras<'_>) {
        let interval = &mut self.interval;
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
        self.above = extras.owner.map(Owner::share);
    }

    /// Gives the interval a lane. It is about to begin, now or at the time `past`. Returns the time of its
    /// begin if that is in the past.
    #[inline(always)]
    fn place(&mut self, past: Option<u64>) -> Option<u64> {
        let interval = &mut self.interval;
        if let Some(above) = &self.above
            && let (true, past) = interval.nest_on(above.interval(), past)
        {
            return past;
        }
        interval.lane = if interval.is_lane_shared {
            match past {
                None => lanes::take(interval.parent_uuid(), interval.callsite),
                Some(since) => lanes::take_before(interval.parent_uuid(), interval.callsite, since),
            }
        } else {
            Lane { uuid: track::new_uuid(), used_until: 0 }
        };
        past
    }

    /// Lets the next child of the parent use the parent's lane.
    fn leave_lane(&self, used_until: u64) {
        if let Some(above) = &self.above {
            above.interval().nested.close(used_until);
        }
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

/// Records a begin at a time of the past. Returns whether it was recorded.
#[cold]
#[inline(never)]
fn begin_in_past(callsite: &'static Callsite, epoch: Epoch, track: TrackRef<'_>, past: u64) -> bool {
    let extras = Extras::new();
    let event = Event { track: Some(track), past: Some(past), ..Event::new(callsite, &[], &extras) };
    cold::event(epoch, &event).is_some()
}

/// Leaves the parent's lane to the next child if the interval has no begin: that was lost, or the code of an
/// argument panicked.
struct NotBegun<'a>(&'a AsyncScope);

impl Drop for NotBegun<'_> {
    fn drop(&mut self) {
        let interval = &self.0.interval;
        if interval.is_nested {
            self.0.leave_lane(interval.lane.used_until);
        }
    }
}

impl Drop for AsyncScope {
    fn drop(&mut self) {
        let mut has_ended = true;
        if let Some(epoch) = self.interval.recorded_in {
            if self.interval.nested.is_open() {
                self.end_stuck_child(epoch);
            }
            let arguments = self.arguments.take();
            match self.end(epoch, arguments) {
                TrackEnd::Recorded(time) => {
                    self.interval.lane.used_until = time;
                    slow::check(self.interval.callsite, self.interval.begun_at, time);
                }
                TrackEnd::Over | TrackEnd::Lost => {}
                TrackEnd::Refused => has_ended = false, // the slice stays open
            }
        } else if self.interval.is_nested {
            return; // `NotBegun` has left the lane
        }
        let Interval { lane, .. } = self.interval;
        if has_ended && self.interval.is_nested {
            self.leave_lane(lane.used_until);
        } else if has_ended && self.interval.is_lane_shared {
            lanes::give_back(self.interval.parent_uuid(), self.interval.callsite, lane);
        }
    }
}

impl AsyncScope {
    fn end(&self, epoch: Epoch, arguments: Option<Box<EndArguments>>) -> TrackEnd {
        end_on_track(self.interval.callsite, epoch, TrackRef::Async(&self.interval), arguments)
    }

    /// Ends the slice of a child whose own end was refused. All owners of this interval are gone, so no child
    /// is left. An end closes the slice that began last: without this one, the child would take this
    /// interval's end.
    #[cold]
    fn end_stuck_child(&self, epoch: Epoch) {
        if let TrackEnd::Recorded(time) = self.end(epoch, None) {
            self.interval.nested.close(time);
        }
    }
}

impl Lasting for AsyncScope {
    fn interval(&self) -> &Interval {
        &self.interval
    }
}

impl Sealed for AsyncScope {
    #[allow(private_interfaces)]
    fn track_ref(&self) -> Option<TrackRef<'_>> {
        (self.interval.uuid() != TrackUuid(0)).then_some(TrackRef::Async(&self.interval))
    }
}

impl Sealed for Arc<AsyncScope> {
    #[allow(private_interfaces)]
    fn track_ref(&self) -> Option<TrackRef<'_>> {
        (**self).track_ref()
    }

    #[allow(private_interfaces)]
    fn owner(&self) -> Option<&dyn Owner> {
        Some(self)
    }
}

/// A value of up to 128 bytes is moved by a few instructions, a larger one by a call of `memcpy`.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<AsyncScope>() <= 128);

/// The program may hold an interval across threads.
const _: fn() = || {
    fn is_send_and_sync<T: Send + Sync>() {}
    is_send_and_sync::<AsyncScope>();
};

#[cfg(test)]
mod tests {
    use std::sync::{PoisonError, mpsc};
    use std::time::Duration;

    use super::*;
    use crate::on::TURN;
    use crate::on::callsite::Key;
    use crate::on::thread::guards::on_track::{TrackScope, track_begin, track_end};
    use crate::site::CallsiteKind;
    use crate::site::Site;
    use crate::{Format, Session};

    static SITE: Site = Site { file: "f", line: 1, module: "m", ..Site::NOWHERE };
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
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
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
                let begun_at = interval.interval.begun_at;
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

    // track     o [ ....     the instant; the slice of the other thread begins after it
    // interval [  o ]        the instant; the other thread ends the interval after it
    #[test]
    fn a_slice_comes_after_an_instant_of_its_track_even_if_the_clock_of_its_thread_is_behind() {
        static INSTANT: Callsite = Callsite::new(CallsiteKind::Instant, "t", "instant", &[], &SITE);
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        for format in [Format::Fxt, Format::TrackEvent] {
            let session = Session::builder().output_writer(std::io::sink()).format(format).start();
            let session = session.expect("a session");
            let track = Track::new("queue");
            let (send, receive) = mpsc::channel::<(AsyncScope, [u64; 2])>();
            let (set_ready, ready) = mpsc::channel();
            let of_other = track.clone();
            let other = std::thread::spawn(move || {
                let epoch = CALLSITE.registered_epoch().expect("it is on");
                let slice = || TrackScope::begin(&CALLSITE, epoch, &(), &Extras::new().track(&of_other));
                let _first = (begin(), of_other.child("another")); // this thread has a chunk
                set_ready.send(()).expect("the test waits");
                let (interval, instants) = receive.recv().expect("an interval");
                let hot = this_thread::hot();
                hot.offset.set(hot.offset.get().wrapping_sub(BEHIND));
                let begun = slice();
                let begun_at = events::last_event();
                drop((begun, interval));
                ([begun_at, events::last_event()], instants)
            });
            ready.recv().expect("the thread runs");
            std::thread::sleep(IDLE);
            let epoch = INSTANT.registered_epoch().expect("it is on");
            let interval = begin();
            let instant = |extras: &Extras<'_>| {
                events::rich(&INSTANT, epoch, &(), extras).expect("it is recorded");
                events::last_event()
            };
            let instants = [instant(&Extras::new().track(&track)), instant(&Extras::new().track(&interval))];
            send.send((interval, instants)).expect("the thread waits");
            let (slices, instants) = other.join().expect("no panic");
            assert!(
                slices[0] > instants[0] && slices[1] > instants[1],
                "{format:?}: {slices:?}, {instants:?}"
            );
            session.stop().expect("no error");
        }
    }

    // request  [ ............. ]
    // query      [ ......           its end is refused: the slice ends with the request
    #[test]
    fn a_child_whose_end_is_refused_ends_with_its_parent() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        for format in [Format::Fxt, Format::TrackEvent] {
            let session = Session::builder().output_writer(std::io::sink()).format(format).start();
            let session = session.expect("a session");
            let pool = Track::new("pool");
            let epoch = CALLSITE.registered_epoch().expect("it is on");
            let extras = Extras::new().track(&pool); // a lane in FXT too
            let parent = Arc::new(AsyncScope::begin(&CALLSITE, epoch, &(), &extras));
            let child = AsyncScope::begin(&CALLSITE, epoch, &(), &Extras::new().track(&parent));
            assert!(child.interval.is_nested, "{format:?}");
            let busy = this_thread::hot().busy();
            drop(child);
            drop(busy);
            assert!(parent.interval.nested.is_open(), "{format:?}");
            drop(parent);
            let summary = session.stop().expect("no error");
            assert_eq!((summary.records, summary.lost.reentrant), (4, 1), "{format:?}");
        }
    }

    /// An argument whose code panics when it is written.
    struct Panics;

    impl Argument for Panics {
        type Held<'a> = u64;
        fn hold(&self) -> u64 {
            panic!("in the program's own code")
        }
    }

    // request  [ ........ ]
    // query       [             its argument panics: it has no record, and the lane is free again
    #[test]
    fn a_child_whose_argument_panics_leaves_the_lane_of_its_parent() {
        static KEYS: [Key; 1] = [Key::new("list")];
        static PANICS: Callsite = Callsite::new(CallsiteKind::Scope, "t", "panics", &KEYS, &SITE);
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        for format in [Format::Fxt, Format::TrackEvent] {
            let session = Session::builder().output_writer(std::io::sink()).format(format).start();
            let session = session.expect("a session");
            let pool = Track::new("pool");
            let epoch = CALLSITE.registered_epoch().expect("it is on");
            let parent = Arc::new(AsyncScope::begin(&CALLSITE, epoch, &(), &Extras::new().track(&pool)));
            let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let epoch = PANICS.registered_epoch().expect("it is on");
                let (list, below) = ([Panics], Extras::new().track(&parent));
                AsyncScope::begin(&PANICS, epoch, &(list.hold(), ()), &below)
            }));
            assert!(panicked.is_err() && !parent.interval.nested.is_open(), "{format:?}");
            drop(parent);
            let summary = session.stop().expect("no error");
            assert_eq!((summary.records, summary.lost.total()), (2, 0), "{format:?}");
        }
    }

    // this thread, inside of an event   [   ]       refused, and so is its end
    // another thread                      [ ...     a slice on the same track, which ends later
    #[test]
    fn the_end_of_a_refused_slice_ends_no_slice_of_another_thread() {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        for format in [Format::Fxt, Format::TrackEvent] {
            let session = Session::builder().output_writer(std::io::sink()).format(format).start();
            let session = session.expect("a session");
            let epoch = CALLSITE.registered_epoch().expect("it is on");
            let elsewhere = |track: &Track| {
                let begin = || TrackScope::begin(&CALLSITE, epoch, &(), &Extras::new().track(track));
                std::thread::scope(|threads| threads.spawn(begin).join().expect("no panic"))
            };
            let (one, two) = (Track::new("one"), Track::new("two"));
            let busy = this_thread::hot().busy();
            let refused = TrackScope::begin(&CALLSITE, epoch, &(), &Extras::new().track(&one));
            track_begin(&CALLSITE, epoch, &(), &Extras::new().track(&two));
            let others = [elsewhere(&one), elsewhere(&two)];
            drop(refused);
            track_end(&CALLSITE, Some(epoch), &(), &two);
            drop(busy);
            drop(others);
            assert_eq!(session.stop().expect("no error").records, 4, "{format:?}");
        }
    }
}
