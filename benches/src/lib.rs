//! The costs of Hairline. Each figure has its floor beside it, measured in the same run.
//!
//! The speed of a shared machine varies. So a subject and its floor are timed in turn, batch by batch, and
//! the ratio of their medians counts. No test depends on this crate: times are reported, never asserted.

pub mod around_work;
pub mod cold;
#[cfg(feature = "report")]
pub mod convert;
pub mod cost;
pub mod drain_thread;
pub mod flat_out;
mod floors;
pub mod growth;
pub mod heap;
pub mod instructions;
pub mod lost;
pub mod machine;
pub mod made;
mod rich;
pub mod row;
pub mod saved;
pub mod service;
pub mod size;
pub mod spans;
pub mod stuck;
pub mod tail;
pub mod text;
pub mod timing;
pub mod why;

/// The rows that were measured, or the reason why they could not be.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
