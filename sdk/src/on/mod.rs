//! The SDK with the feature `enable`, in layers, whose order is in `ci/layers.txt`.

pub(crate) mod base;
pub(crate) mod bridges;
pub(crate) mod callsite;
pub(crate) mod encode;
pub(crate) mod event;
pub(crate) mod lifecycle;
pub(crate) mod macros;
pub(crate) mod prune;
#[cfg(feature = "recovery")]
pub(crate) mod recover;
pub(crate) mod session;
pub(crate) mod thread;
pub(crate) mod traced;

pub(crate) use bridges::heap;
#[cfg(feature = "sync")]
pub(crate) use bridges::locks;
#[cfg(feature = "log")]
pub(crate) use bridges::log as messages;
#[cfg(feature = "metrics")]
pub(crate) use bridges::metrics as measures;
#[cfg(feature = "sync")]
pub use bridges::tasks::{is_sample_due, note, session};
#[cfg(feature = "subscriber")]
pub(crate) use bridges::tracing;
#[cfg(feature = "sync")]
pub use bridges::{hooked::HookedTasks, roots::Root};
pub use lifecycle::listen::{Listening, listen};
pub use lifecycle::session::Session;
pub use lifecycle::traced::Registered;
pub use session::placeholders::expand_path;

/// One test at a time has a session.
#[cfg(test)]
pub(crate) static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
