//! What the recording was to have, and the system refused, as the trace tells of it: who was just refused it
//! needs no advice to record it.

use hairline_convert::Event;

use crate::remark::{NO_SAMPLES_BY, not_recorded};

/// The limit for sentences about parts.
const MOST: usize = 8;

/// The sentences that say why, and what helps.
#[derive(Debug, Default)]
pub(super) struct Refused {
    pub(super) states: Option<String>,
    pub(super) samples: Option<String>,
    /// What is recorded in part.
    pub(super) parts: Vec<String>,
}

impl Refused {
    pub(super) fn add(&mut self, event: &Event<'_>) {
        not_recorded(event, |what, why| match what {
            "thread states" | "thread states by the command" => self.states = Some(why),
            _ if NO_SAMPLES_BY.contains(&what) => self.samples = Some(why),
            "all thread states" | "all stack samples" | "all stacks of waits" if self.parts.len() < MOST => {
                self.parts.push(why);
            }
            _ => {}
        });
    }
}
