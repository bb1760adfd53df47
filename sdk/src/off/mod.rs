//! The SDK without the feature `enable`: the same names and signatures, and nothing is recorded.

mod callsite;
mod event;
mod futures;
mod guards;
pub(crate) mod heap;
#[cfg(feature = "sync")]
pub(crate) mod locks;
mod macros;
#[cfg(feature = "metrics")]
pub(crate) mod measures;
#[cfg(feature = "log")]
pub(crate) mod messages;
#[cfg(feature = "recovery")]
pub(crate) mod recover;
mod session;
#[cfg(feature = "subscriber")]
pub(crate) mod tracing;
mod track;

pub use callsite::{Callsite, Key};
pub use event::{Argument, Extras, argument, number};
#[cfg(feature = "futures")]
pub use futures::TraceStream;
pub use futures::{Life, TraceFuture, Traced, TracedTask, future_arg};
pub use guards::{AsyncScope, Scope, TrackScope};
#[cfg(feature = "sync")]
pub use locks::{is_sample_due, note, session};
pub use session::{Listening, Registered, Session, expand_path, listen};
pub use track::{Flow, OnTrack, Track};
