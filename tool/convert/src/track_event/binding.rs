//! The flow that a legacy event is bound to.

use hairline_formats::track_event::FlowDirection;

use crate::FlowStep;

/// A flow of [`Event::bound`](crate::Event::bound), as in a legacy event.
pub(crate) fn binding((id, step): (u64, FlowStep)) -> (u64, FlowDirection) {
    let comes = step != FlowStep::Begin;
    let goes = matches!(step, FlowStep::Begin | FlowStep::Step);
    (id, FlowDirection { comes, goes })
}
