//! The life of a span that waits.

use std::sync::{Arc, OnceLock};

use crate::on::bridges::tracing::fields::Visited;
use crate::on::callsite::Callsite;
use crate::on::event::interval::{Interval, Lasting};
use crate::on::thread::guards::interval::AsyncScope;

/// An interval on an async track. It ends with its last owner: the span itself, the life of a child, a wait
/// inside, or a thread that is recording below it.
#[derive(Debug)]
pub(crate) struct SpanLife {
    callsite: &'static Callsite,
    pub(crate) interval: AsyncScope,
    /// The values for the record of its end.
    late: OnceLock<Arc<Visited>>,
}

impl SpanLife {
    pub(crate) fn new(callsite: &'static Callsite, interval: AsyncScope) -> Self {
        Self { callsite, interval, late: OnceLock::new() }
    }

    /// Sets the values for the record of its end.
    pub(crate) fn end_with(&self, late: Arc<Visited>) {
        let _ = self.late.set(late);
    }
}

impl Lasting for SpanLife {
    fn interval(&self) -> &Interval {
        self.interval.interval()
    }
}

impl Drop for SpanLife {
    fn drop(&mut self) {
        let late = self.late.take();
        if let Some(late) = &late {
            late.show_all(self.callsite, |values| self.interval.set_arguments(values));
        }
        Visited::keep_memory(late);
    }
}
