//! What is left of a trace when its process is killed, aborts or crashes, and what recovery makes of it.

mod blocking;
#[cfg(feature = "command")]
mod closed;
#[cfg(feature = "command")]
mod commands;
#[cfg(feature = "command")]
mod copies;
mod crowds;
mod ends;
mod forking;
mod forks;
mod hostile;
mod kept;
#[cfg(feature = "command")]
mod listening;
mod lives;
mod moments;
mod names;
#[cfg(feature = "command")]
mod namespaces;
mod others;
mod outputs;
mod privilege;
mod program;
#[cfg(feature = "command")]
mod restart;
mod restarts;
mod rotated_jobs;
mod rotation;
mod starts;
#[cfg(feature = "command")]
mod strangers;
mod torture;
mod traced;
mod unloaded;
