//! How the spans and events of the `tracing` crate are recorded, the same with and without the feature
//! `enable`.

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
    /// close. So do its ancestors that were entered at least twice, or that are not entered on the second
    /// thread. So does a span in which a wait of `hairline-tokio` or the life of a recorded future begins, with
    /// its ancestors. A flow links the span's entries.
    #[default]
    Auto,
    /// Each entry of a span is a slice on its thread, and nothing else is recorded.
    Threads,
    /// Each span is an interval on an async track, from its creation to its close. Its entries are slices,
    /// linked by a flow.
    Lifetimes,
}
