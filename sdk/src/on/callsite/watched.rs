//! What a session looks at besides recording events: which slices are slow, and which events have stacks.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::filter::Filter;
use crate::on::callsite::Watch;
use crate::on::callsite::listed::Listed;
use crate::site::CallsiteKind;
use crate::slow::SlowRules;

/// The limits of the running session, or of the last one, in ns.
static HOLD_LIMIT: AtomicU64 = AtomicU64::new(0);
static POLL_LIMIT: AtomicU64 = AtomicU64::new(0);

/// Returns the duration from which a hold of a lock is recorded; 0 if none is.
#[cfg_attr(not(feature = "sync"), allow(dead_code))]
#[inline(always)]
pub(crate) fn hold_limit() -> u64 {
    HOLD_LIMIT.load(Ordering::Relaxed)
}

/// Returns the duration from which a poll of a task is marked.
#[inline]
pub(crate) fn poll_limit() -> u64 {
    POLL_LIMIT.load(Ordering::Relaxed)
}

/// What a session looks at besides recording events.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// Which slices are slow; `None` if the session does nothing at them.
    pub(crate) slow: Option<SlowRules>,
    /// Whether slow slices have stacks.
    pub(crate) slow_stacks: bool,
    /// The categories whose events have stacks.
    pub(crate) stacks: Option<Filter>,
    /// The duration from which a hold of a lock is a slice, in ns; 0 if none is.
    pub(crate) hold_limit: u64,
    /// The duration from which a poll of a task is marked, in ns.
    pub(crate) poll_limit: u64,
}

impl Watched {
    /// Makes its limits those of the running session.
    pub(super) fn set_limits(&self) {
        HOLD_LIMIT.store(self.hold_limit, Ordering::Relaxed);
        POLL_LIMIT.store(self.poll_limit, Ordering::Relaxed);
    }

    /// Returns what it looks at, at a callsite.
    pub(super) fn watch(&self, callsite: &Listed) -> Watch {
        let stacks = callsite.stack || self.asks_for_stacks(callsite);
        let are_there = cfg!(feature = "sampling"); // without it, nothing is to be looked at
        Watch::new(self.slow_after(callsite), are_there && self.slow_stacks, are_there && stacks)
    }

    /// Whether the filter of the events that have stacks includes this one.
    pub(super) fn asks_for_stacks(&self, callsite: &Listed) -> bool {
        let is_event = matches!(callsite.kind, CallsiteKind::Scope | CallsiteKind::Instant);
        let stacks = self.stacks.as_ref().filter(|_| is_event && callsite.is_filtered);
        stacks.is_some_and(|filter| includes(filter, callsite))
    }

    /// Returns the duration from which a slice of the callsite is slow, in ns; 0 if none is.
    fn slow_after(&self, callsite: &Listed) -> u64 {
        let Some(rules) = self.slow.as_ref().filter(|_| callsite.kind == CallsiteKind::Scope) else {
            return 0;
        };
        let rule = rules.limit(callsite.categories(), callsite.name);
        rule.map_or(callsite.slow_after, |limit| limit.as_nanos().try_into().unwrap_or(u64::MAX))
    }
}

/// Whether a filter includes one of the callsite's categories.
pub(super) fn includes(filter: &Filter, callsite: &Listed) -> bool {
    let mut categories = callsite.categories().peekable();
    match categories.peek() {
        None => filter.matches(""),
        Some(_) => categories.any(|category| filter.matches(category)),
    }
}
