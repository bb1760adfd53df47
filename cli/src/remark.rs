//! What the recorder and the command tell of a recording, in the trace itself.

use hairline_convert::{Categories, Event, EventKind};

/// Whether an event is such a remark. It is no event of the program: its time says nothing.
#[inline]
pub(crate) fn is_remark(event: &Event<'_>) -> bool {
    event.kind == EventKind::Instant
        && matches!(event.categories, Categories::One(category) if category.text == "hairline")
}
