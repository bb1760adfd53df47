//! What was looked at, what was found, and what to do.

use std::fmt;

use serde_json::{Value, json};

/// Whether a finding explains an empty trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Good,
    /// Something is missing, or worth to know. Events are recorded without it.
    Remark,
    /// A reason for an empty trace.
    Wrong,
}

/// A finding.
#[derive(Debug)]
pub(super) struct Finding {
    subject: &'static str,
    pub(super) state: State,
    found: String,
    /// What to do. Empty if nothing is to be done.
    advice: String,
}

impl Finding {
    pub(super) fn good(subject: &'static str, found: impl Into<String>) -> Self {
        Self { subject, state: State::Good, found: found.into(), advice: String::new() }
    }

    pub(super) fn remark(subject: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, state: State::Remark, found: found.into(), advice: advice.into() }
    }

    pub(super) fn wrong(subject: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: State::Wrong, ..Self::remark(subject, found, advice) }
    }

    pub(super) fn is_good(&self) -> bool {
        self.state == State::Good
    }

    /// Whether both are about the same fact.
    pub(super) fn is_again(&self, other: &Self) -> bool {
        (self.subject, &self.found) == (other.subject, &other.found)
    }

    /// The finding for other programs.
    pub(super) fn json(&self) -> Value {
        let advice = Some(&self.advice).filter(|advice| !advice.is_empty());
        json!({"subject": self.subject, "state": self.state.name(), "found": self.found, "advice": advice})
    }
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Remark => "note",
            Self::Wrong => "wrong",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:5}  {}: {}", self.state.name(), self.subject, self.found)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, "; {}", self.advice) }
    }
}
