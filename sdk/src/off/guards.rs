//! The guards of slices and intervals that are not recorded.

use std::marker::PhantomData;

use crate::off::callsite::{Callsite, Epoch};
use crate::off::event::{Argument, Extras, Values};
use crate::off::track::{Flow, sealed};

/// The guard of a slice on one thread that is not recorded.
#[must_use = "the scope ends when this guard is dropped; for code with an `.await` use `#[trace]` or `traced`"]
#[derive(Debug)]
pub struct Scope(PhantomData<*const ()>);

/// The guard of a slice on a track that is not recorded.
#[must_use = "the slice ends when this guard is dropped"]
#[derive(Debug)]
pub struct TrackScope(());

/// The guard of an interval that is not recorded.
#[must_use = "the interval ends when this guard is dropped"]
#[derive(Debug)]
pub struct AsyncScope(());

macro_rules! guards {
    ($($guard:ident: $field:expr;)*) => {$(
        impl $guard {
            /// A guard that records nothing.
            #[doc(hidden)]
            #[inline(always)]
            pub fn none(_: &'static Callsite) -> Self {
                Self($field)
            }

            /// Whether the begin was recorded: `false`.
            #[inline]
            #[must_use]
            pub fn is_recorded(&self) -> bool {
                false
            }

            /// Would add an argument to the end.
            #[inline(always)]
            pub fn arg(&mut self, _: &'static str, _: impl Argument) -> &mut Self {
                self
            }
        }

        impl Drop for $guard {
            #[inline(always)]
            fn drop(&mut self) {} // so that lints accept an explicit `drop(guard)`, as with the feature on
        }
    )*};
}

guards! {
    Scope: PhantomData;
    TrackScope: ();
    AsyncScope: ();
}

// There is no `Epoch`, so none of these functions can be called.

impl Scope {
    /// Would begin a scope.
    #[doc(hidden)]
    pub fn begin(_: &'static Callsite, epoch: Epoch) -> Self {
        match epoch {}
    }

    /// Would begin a scope with arguments.
    #[doc(hidden)]
    pub fn begin_with(_: &'static Callsite, epoch: Epoch, _: &impl Values) -> Self {
        match epoch {}
    }

    /// Would begin a scope with options.
    #[doc(hidden)]
    pub fn begin_rich(_: &'static Callsite, epoch: Epoch, _: &impl Values, _: &Extras<'_>) -> Self {
        match epoch {}
    }

    /// Would begin a scope with a flow.
    #[doc(hidden)]
    pub fn begin_flow(_: &'static Callsite, epoch: Epoch, _: &Flow) -> Self {
        match epoch {}
    }
}

impl TrackScope {
    /// Would begin a slice on a track.
    #[doc(hidden)]
    pub fn begin(_: &'static Callsite, epoch: Epoch, _: &impl Values, _: &Extras<'_>) -> Self {
        match epoch {}
    }
}

impl AsyncScope {
    /// Would begin an interval.
    #[doc(hidden)]
    pub fn begin(_: &'static Callsite, epoch: Epoch, _: &impl Values, _: &Extras<'_>) -> Self {
        match epoch {}
    }
}

impl sealed::Sealed for AsyncScope {}
impl sealed::Sealed for std::sync::Arc<AsyncScope> {}
