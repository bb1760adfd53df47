//! Records the spans and events of the `tracing` crate.
//!
//! ```text
//! Metadata ──> a callsite like that of a macro                 sites.rs
//! span ──────> its fields and its state                        span.rs
//! enter, exit ─> slices on the thread, from its own stack      span.rs, stack.rs
//!                  those above many others                      far.rs
//!                  left on another thread                       elsewhere.rs
//! third entry, or second thread ─> an interval on an async     span.rs
//!                  track, from the first entry to the close
//! a wait or a future's life inside ─> the same interval        current.rs
//! each entry ─> a step of the span's flow                      span.rs
//! message of `log` ─> an event of its own target and place      forwarded.rs
//! the field `traceparent` ─> a flow from, or to, another       requests.rs
//!                  process
//! the entry in which a future is dropped ─> nothing            span.rs, thread/retraction.rs
//! ```
//!
//! [`Subscriber`] stores its spans in `slots`. [`layer`](fn@layer) works with tracing-subscriber's registry,
//! whose ids find the layer's spans: in tables of the threads (`cells`), and beyond them in slots too
//! (`distant.rs`).

#[cfg(feature = "tracing")]
mod cells;
mod current;
#[cfg(feature = "tracing")]
mod distant;
mod elsewhere;
mod far;
mod fields;
#[cfg(feature = "tracing")]
mod filters;
mod forwarded;
mod interest;
mod kept;
#[cfg(feature = "tracing")]
mod layer;
mod life;
pub(crate) mod log_level;
mod requests;
mod sites;
mod slots;
mod span;
mod stack;
mod subscriber;

pub(crate) use crate::on::bridges::tracing::current::innermost_life;
#[cfg(feature = "tracing")]
pub use crate::on::bridges::tracing::layer::{Layer, layer};
pub(crate) use crate::on::bridges::tracing::stack::len as entered_spans;
pub use crate::on::bridges::tracing::subscriber::Subscriber;
use crate::on::lifecycle::env;
use crate::spans::Mode;

impl Mode {
    /// Returns the mode that `HAIRLINE_MODE` requests, else this one. An unknown name is reported when the
    /// session starts.
    fn or_environments(self) -> Self {
        match env::mode() {
            Ok(Some("auto")) => Self::Auto,
            Ok(Some("threads")) => Self::Threads,
            Ok(Some("lifetimes")) => Self::Lifetimes,
            _ => self,
        }
    }
}
