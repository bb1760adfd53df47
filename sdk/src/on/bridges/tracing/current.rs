//! The life of the innermost span that this thread has entered, for what is no span and goes below it: the
//! wait of an async request, the life of a future.
//!
//! ```text
//! async track   [ request .............................. ]     begun with the wait, at the time of the first entry
//!                  [ wait: cache .......... ]
//! thread 1     [ request ]               [ request ]
//! ```
//!
//! In [`Mode::Auto`] a span has no life until a later entry shows that it waits. What begins here has to be
//! below it already: so the life begins now, and so do those of the spans around it.

use std::sync::Arc;

use tracing_core::{Dispatch, dispatcher};

#[cfg(feature = "tracing")]
use crate::on::bridges::tracing::layer::Branches;
use crate::on::bridges::tracing::life::SpanLife;
use crate::on::bridges::tracing::span::VisitIn;
use crate::on::bridges::tracing::{Subscriber, stack};
use crate::spans::Mode;

/// Returns the life of the innermost span that this thread has entered, if it has entered more than so many.
/// Begins it if it has none yet.
#[inline]
pub(crate) fn innermost_life(above: usize) -> Option<Arc<SpanLife>> {
    if stack::len() > above { find(above) } else { None }
}

#[cold]
#[inline(never)]
fn find(above: usize) -> Option<Arc<SpanLife>> {
    let mut innermost = None;
    dispatcher::get_default(|subscriber| {
        visit_current(subscriber, &mut |mode, parent, known| {
            let place = stack::place_of(known.id);
            if mode == Mode::Auto {
                known.span.begin_life_if_async(parent, place, 1);
            }
            if above == 0 || place.is_some_and(|at| at >= above) {
                innermost = known.span.life().or_else(|| innermost.take());
            }
        });
    });
    innermost
}

/// Visits the branch of the span that is the subscriber's current one. The subscriber says which: the ids on
/// this thread's stack may be those of several.
fn visit_current(subscriber: &Dispatch, visit: &mut VisitIn<'_>) {
    let current = subscriber.current_span();
    let Some(id) = current.id() else { return };
    if let Some(own) = subscriber.downcast_ref::<Subscriber>() {
        own.visit_open(id, visit);
    }
    #[cfg(feature = "tracing")]
    if let Some(branches) = subscriber.downcast_ref::<Branches>() {
        branches.visit(subscriber, id, visit);
    }
}
