//! What Hairline costs, each figure beside its floor, measured in the same run.
//!
//! A shared machine's speed wanders, so a subject and its floor are timed in turn, batch by batch, and
//! what counts is the ratio of their medians. Nothing here fails a test: times are reported, never asserted.

pub mod cold;
pub mod convert;
pub mod cost;
pub mod growth;
pub mod machine;
pub mod made;
pub mod row;
pub mod size;
pub mod spans;
pub mod tail;
pub mod timing;
pub mod writer;

/// What is measured, or why it could not be.
pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;
