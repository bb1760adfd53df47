//! What comes of a thread that is to get a timer.

/// A thread of this process that may get a timer.
#[derive(Debug)]
pub(crate) enum Found<T> {
    Timer(T),
    /// It blocks the signal.
    Blocks,
    /// It has ended meanwhile.
    Ended,
}
