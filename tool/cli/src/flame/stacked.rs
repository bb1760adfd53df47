//! Stacks and what they weigh.

use std::collections::HashMap;

use crate::outcome::Outcome;

/// Weights by stack.
pub(super) type Weights = HashMap<String, i64>;

/// The stacks of a trace.
pub(super) struct Stacked {
    /// The name of the trace in messages.
    pub(super) name: String,
    pub(super) weights: Weights,
    pub(super) outcome: Outcome,
}
