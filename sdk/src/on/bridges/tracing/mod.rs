//! Spans and events of the `tracing` crate, in the trace.
//!
//! ```text
//! Metadata ──> site: a callsite like that of a macro           sites.rs
//! span ──────> what is known of it                             span.rs
//! enter, exit ─> slices on the thread, from its own stack      span.rs, stack.rs
//! entered again ─> a life on an async track, from the first    span.rs
//!                  entry to the close; the entries are polls
//! ```
//!
//! [`Subscriber`] keeps its spans itself (slots.rs); [`layer`](fn@layer) goes with tracing-subscriber's registry, and asks it only
//! for what has no room in its own tables (cells.rs).

#[cfg(feature = "tracing")]
mod cells;
mod fields;
#[cfg(feature = "tracing")]
mod layer;
mod sites;
mod slots;
mod span;
mod stack;
mod subscriber;

#[cfg(feature = "tracing")]
pub use crate::on::bridges::tracing::layer::{Layer, layer};
pub use crate::on::bridges::tracing::subscriber::Subscriber;

/// What the category of a span or an event is. Feature `subscriber`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// Its target: where it does not say another, the path of its module.
    #[default]
    Target,
    /// Its level: `trace`, `debug`, `info`, `warn` or `error`.
    Level,
}

/// How spans are shown. Feature `subscriber`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Mode {
    /// A span is a slice on the thread that enters it. One that is entered again, which an async span is, has a life on
    /// an async track besides, from its first entry to its close; a flow links its entries from then on.
    #[default]
    Auto,
    /// Every entry is a slice on its thread, and nothing else.
    Threads,
    /// Every span has a life on an async track, from its creation to its close, and its entries are slices, linked by a
    /// flow.
    Lifetimes,
}
