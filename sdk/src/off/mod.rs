//! The SDK without the feature `enable`: the same names, and nothing behind them.

mod macros;
#[cfg(feature = "log")]
pub(crate) mod messages;
pub(crate) mod recover;
pub(crate) mod session;
mod vocabulary;

use std::marker::PhantomData;

pub use session::Session;
pub use vocabulary::Life;
#[cfg(feature = "futures")]
pub use vocabulary::TraceStream;
#[cfg(feature = "serde")]
pub use vocabulary::serialize;
pub use vocabulary::{
    AsyncScope, Bytes, Flow, Interned, Koid, MapKey, OnTrack, TraceFuture, Traced, Track, TrackScope, bytes,
    interned, koid,
};

/// What an event could carry.
pub trait Argument {}
impl<T: ?Sized> Argument for T {}

/// An interval that is not recorded.
#[must_use = "the scope ends when this guard is dropped"]
#[derive(Debug)]
pub struct Scope(PhantomData<*const ()>);

impl Scope {
    /// Nothing is recorded.
    #[inline(always)]
    pub fn none() -> Self {
        Self(PhantomData)
    }

    /// Whether the begin was recorded: no.
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

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {} // so that an explicit `drop(scope)` is as fine as with the feature on
}
