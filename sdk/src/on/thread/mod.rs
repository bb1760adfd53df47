//! The thread side: from a macro to a committed record.
//!
//! [`hot`] is the path of nearly every event. [`cold`] does the rest: a callsite's first hit, a thread's
//! first event, a full chunk, loss, a long gap between two events, a thread at its end. It records through
//! the thread's [`chunk_writer`].

pub(crate) mod chunk_writer;
pub(crate) mod cold;
pub(crate) mod end_arguments;
pub(crate) mod events;
pub(crate) mod guards;
pub(crate) mod hot;
mod kind;
pub(crate) mod lanes;
pub(crate) mod late;
pub(crate) mod named;
pub(crate) mod open_scope;
pub(crate) mod plain;
pub(crate) mod raw;
#[cfg(feature = "subscriber")]
pub(crate) mod retraction;
pub(crate) mod room;
#[cfg(feature = "subscriber")]
pub(crate) mod slices;
pub(crate) mod slow;
pub(crate) mod starved;
pub(crate) mod valued;
