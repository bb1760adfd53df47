//! Records the spans and events of the `tracing` crate.
//!
//! ```text
//! Metadata ──> a callsite like that of a macro                 sites.rs
//! span ──────> its fields and its state                        span.rs
//! enter, exit ─> slices on the thread, from its own stack      span.rs, stack.rs
//! third entry, or second thread ─> an interval on an async     span.rs
//!                  track, from the first entry to the close
//! each entry ─> a step of the span's flow                      span.rs
//! the field `traceparent` ─> a flow from, or to, another       requests.rs
//!                  process
//! the entry in which a future is dropped ─> nothing            span.rs, thread/retraction.rs
//! ```
//!
//! [`Subscriber`] stores its spans itself (`slots`). [`layer`](fn@layer) works with tracing-subscriber's
//! registry, and stores in it only the spans that its own tables (`cells`) have no room for.

#[cfg(feature = "tracing")]
mod cells;
mod fields;
#[cfg(feature = "tracing")]
mod layer;
mod requests;
mod sites;
mod slots;
mod span;
mod stack;
mod subscriber;

#[cfg(feature = "tracing")]
pub use crate::on::bridges::tracing::layer::{Layer, layer};
pub use crate::on::bridges::tracing::subscriber::Subscriber;
use crate::on::lifecycle::env;

/// The category of spans and events. Feature `subscriber`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// The target. By default this is the module path.
    #[default]
    Target,
    /// The level: `trace`, `debug`, `info`, `warn` or `error`.
    Level,
}

/// How spans are recorded. Feature `subscriber`.
///
/// If the environment requests the session, its variable `HAIRLINE_MODE` (`auto`, `threads` or `lifetimes`)
/// replaces the mode that the program sets.
///
/// ```
/// use hairline::{Category, Mode, Subscriber};
///
/// let subscriber = Subscriber::new().mode(Mode::Threads).category(Category::Level);
/// tracing::subscriber::with_default(subscriber, || {
///     tracing::info_span!("request").in_scope(|| {}); // a slice of the category `info`
/// });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// Each entry of a span is a slice on its thread. A span that is entered a third time, or on a second
    /// thread (a future that waits), also gets an interval on an async track, from its first entry to its
    /// close. So do its ancestors that were entered at least twice. A flow links the span's entries.
    #[default]
    Auto,
    /// Each entry of a span is a slice on its thread, and nothing else is recorded.
    Threads,
    /// Each span is an interval on an async track, from its creation to its close. Its entries are slices,
    /// linked by a flow.
    Lifetimes,
}

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
