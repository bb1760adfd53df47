//! The names that most programs use: `use hairline::prelude::*`.
//!
//! The prelude has all macros, `#[trace]`, [`Session`], [`Flow`], [`Track`], [`Level`], [`Unit`], the guards
//! of slices and intervals, and the traits that add `traced` to futures and (feature `futures`) to streams.
//! It is the same without the feature `enable`.
//!
//! ```
//! use hairline::prelude::*;
//!
//! fn request(bytes: u64, flow: &Flow) {
//!     trace_scope!("net", "request", bytes, flow: flow);
//!     trace_counter!("net", "received", bytes, unit: Unit::Bytes);
//! }
//!
//! # request(512, &Flow::new());
//! ```
//!
//! # Beside the crate `tracing`
//!
//! Two names are also names of `tracing`: `trace` and `Level`. An explicit import shadows a glob import. So
//! import the names of `tracing` one by one, and write those of this crate with their path:
//!
//! ```
//! use hairline::prelude::*;
//! use tracing::{Level, info, trace};
//!
//! #[hairline::trace]                          // `trace` is the macro of `tracing`
//! fn load() {
//!     trace!("loading");
//!     trace_log!(hairline::Level::Info, "app", "loading");
//!     info!(enabled = tracing::enabled!(Level::DEBUG));
//! }
//! # load();
//! ```
//!
//! With two glob imports, the compiler calls a name that is in both ambiguous where the program uses it: an
//! error (E0659), or for some names a warning that will become one. All other names work. An explicit import
//! of the name that the program means decides:
//!
//! ```
//! use hairline::prelude::*;
//! use hairline::{Level, trace};
//! use tracing::*;
//!
//! #[trace]
//! fn load() {
//!     trace_log!(Level::Info, "app", "loading");
//!     info!("loading");
//! }
//! # load();
//! ```

#[cfg(feature = "futures")]
pub use crate::TraceStream;
pub use crate::{
    AsyncScope, Flow, Level, Scope, Session, TraceFuture, Track, TrackScope, Unit, scope, trace, trace_async,
    trace_begin, trace_counter, trace_end, trace_future, trace_instant, trace_log, trace_scope, trigger,
};
