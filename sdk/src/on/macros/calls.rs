//! The functions with arguments that the macros call.
//!
//! # Builds that are not optimised
//!
//! A generic function is compiled in the user's crate. In a release build this is what makes an event fast:
//! the compiler knows the type of each value. In a build without optimisation it is what makes an event slow:
//! the whole hot path is compiled there, unoptimised, even if Hairline itself is optimised.
//!
//! So with debug assertions the macros pass the values as a slice of [`Value`], and the functions here are
//! not generic. What runs in the user's crate is a load, a branch, the values and one call. `ci/builds.sh`
//! measures it.

use crate::on::bridges::futures::Life;
use crate::on::callsite::{Callsite, Epoch};
#[cfg(debug_assertions)]
use crate::on::event::argument::List;
#[cfg(not(debug_assertions))]
use crate::on::event::argument::Values;
use crate::on::event::extras::Extras;
use crate::on::event::track::Track;
use crate::on::thread::guards::Scope;
use crate::on::thread::guards::interval::AsyncScope;
use crate::on::thread::guards::on_track::{self, TrackScope};
use crate::on::thread::{events, valued};

/// The name of an epoch's type: the end of a slice on a track may have none.
type MaybeEpoch = Option<Epoch>;

/// Defines each function twice: for optimised builds it is generic and inlined, for others it is neither.
macro_rules! calls {
    ($($(#[doc = $doc:literal])+
       fn $name:ident($epoch:ident $(, $argument:ident: $type:ty)*) $(-> $out:ty)? = $target:path;)+) => {$(
        $(#[doc = $doc])+
        #[cfg(not(debug_assertions))]
        #[inline(always)]
        pub fn $name(
            callsite: &'static Callsite,
            epoch: $epoch,
            values: &impl Values,
            $($argument: $type,)*
        ) $(-> $out)? {
            $target(callsite, epoch, values, $($argument),*)
        }

        $(#[doc = $doc])+
        #[cfg(debug_assertions)]
        #[inline(never)]
        pub fn $name(
            callsite: &'static Callsite,
            epoch: $epoch,
            values: &List<'_>,
            $($argument: $type,)*
        ) $(-> $out)? {
            match values.plain() {
                Ok(plain) => $target(callsite, epoch, &plain, $($argument),*),
                Err(nested) => $target(callsite, epoch, &nested, $($argument),*),
            }
        }
    )+};
}

calls! {
    /// Begins a scope with arguments.
    fn scope_with(Epoch) -> Scope = Scope::begin_with;
    /// Begins a scope with a name made at run time.
    fn scope_named(Epoch, name: &str) -> Scope = Scope::begin_named;
    /// Begins a scope with options.
    fn scope_rich(Epoch, extras: &Extras<'_>) -> Scope = Scope::begin_rich;
    /// Records an instant with arguments.
    fn instant_with(Epoch) = valued::instant;
    /// Records the value of a counter.
    fn counter(Epoch) = valued::counter;
    /// Records the value of a counter on a track, without other options.
    fn counter_on(Epoch, track: events::CounterTrack<'_>) = events::counter_on;
    /// Records an instant or the value of a counter, with options.
    fn event_rich(Epoch, extras: &Extras<'_>) = events::event_rich;
    /// Begins a slice on a track, with a guard.
    fn track_scope(Epoch, extras: &Extras<'_>) -> TrackScope = TrackScope::begin;
    /// Begins a slice on a track, without a guard.
    fn track_begin(Epoch, extras: &Extras<'_>) = on_track::track_begin;
    /// Ends the slice that was begun last on a track.
    fn track_end(MaybeEpoch, track: &Track) = on_track::track_end;
    /// Begins an interval on a track of its own.
    fn async_scope(Epoch, extras: &Extras<'_>) -> AsyncScope = AsyncScope::begin;
    /// Begins the life of a future.
    fn life(Epoch, extras: &Extras<'_>) -> Life = Life::begin;
}
