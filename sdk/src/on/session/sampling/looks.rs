//! Looks at the process's mappings and the names of its threads, of which signals tell nothing.

use std::time::{Duration, Instant};

use hairline_stacks::Profile;

use crate::on::base::platform::process;

/// The least time between two looks, and the most.
const BETWEEN: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// When to look.
#[derive(Debug)]
pub(super) struct Looks {
    last: Option<Instant>,
    /// Whether the next look comes soon: a thread is called as the one that has started it at first.
    is_due: bool,
}

impl Default for Looks {
    fn default() -> Self {
        Self { last: None, is_due: true }
    }
}

impl Looks {
    /// Looks, if it is time. `has_new`: there was a sample of a thread or of code that the profile does not know.
    pub(super) fn look(&mut self, profile: &mut Profile, has_new: bool, is_last: bool) {
        let [least, most] = BETWEEN;
        let after = if has_new || self.is_due { least } else { most };
        if is_last || self.last.is_none_or(|last| last.elapsed() >= after) {
            self.last = Some(Instant::now());
            self.is_due = profile.add_present(process::id()) || has_new;
        }
    }
}
