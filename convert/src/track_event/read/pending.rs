//! What is to be given out next.

use crate::model::Loss;

/// What is to be given out next. What it says stands in the state.
#[derive(Debug)]
pub(super) enum Pending {
    Track(u32),
    Event,
    Loss(Loss),
    Uuid(u128),
    System,
    Clocks,
    Foreign(&'static str),
}
