//! The SDK with the feature `enable`.

pub(crate) mod argument;
pub(crate) mod callsite;
pub(crate) mod clock;
mod env;
pub(crate) mod extras;
mod files;
pub(crate) mod flow;
mod fork;
mod lanes;
pub(crate) mod links;
pub(crate) mod lock;
pub(crate) mod macros;
mod made;
#[cfg(feature = "log")]
pub(crate) mod messages;
pub(crate) mod nested;
mod own_thread;
mod process;
mod process_wide;
pub(crate) mod recover;
mod registry;
#[cfg(feature = "serde")]
pub(crate) mod serialize;
pub(crate) mod session;
mod signals;
mod sync;
mod system;
pub(crate) mod thread;
pub(crate) mod traced;
#[cfg(feature = "subscriber")]
pub(crate) mod tracing;
pub(crate) mod track;
mod tree;
pub(crate) mod unfinished;
