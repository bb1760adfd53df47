//! Looks at the process's mappings and the names of its threads, of which signals tell nothing.

use std::time::{Duration, Instant};

use hairline_perf::{Record, Stamp};
use hairline_stacks::Profile;

use crate::on::base::platform::process;

/// The least time between two looks, and the most.
const BETWEEN: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

/// When to look.
#[derive(Debug)]
pub(super) struct Looks {
    last: Option<Instant>,
    /// The last look for code that was not known.
    last_for_code: Option<Instant>,
    /// Whether the next look comes soon: a thread is called as the one that has started it at first.
    is_due: bool,
}

/// Of what samples are that the profile does not know.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct New {
    code: bool,
    thread: bool,
}

impl New {
    /// Before the first sample: the threads have other names soon.
    pub(super) const AT_FIRST: Self = Self { code: false, thread: true };

    pub(super) fn add(&mut self, profile: &Profile, record: &Record<'_>, stamp: Stamp) {
        self.code |= !profile.knows_code(record, stamp);
        self.thread |= !profile.knows_thread(record, stamp);
    }
}

impl Default for Looks {
    fn default() -> Self {
        Self { last: None, last_for_code: None, is_due: true }
    }
}

impl Looks {
    /// Looks, if it is time.
    pub(super) fn look(&mut self, profile: &mut Profile, new: New, is_last: bool) {
        let [least, most] = BETWEEN;
        let after = if new.thread || new.code || self.is_due { least } else { most };
        let is_over = |last: Option<Instant>, time| last.is_none_or(|last| last.elapsed() >= time);
        // A library was loaded, or there is code that no file has, which stays unknown.
        let is_for_code = new.code && is_over(self.last_for_code, least);
        if is_last || is_for_code || is_over(self.last, after) {
            let now = Some(Instant::now());
            self.last = now;
            self.last_for_code = if new.code { now } else { self.last_for_code };
            self.is_due = profile.add_present(process::id()) || new.thread || new.code;
        }
    }
}
