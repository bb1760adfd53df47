//! What the recorder and the command tell of a recording, in the trace itself.

use hairline_convert::{Categories, Event, EventKind};
use hairline_formats::Value;

use crate::text::one_line;

/// The longest reason that is shown, in characters.
const LONGEST: usize = 400;

/// What is not recorded if the trace has no stack samples: of a session, and of the command.
pub(crate) const NO_SAMPLES_BY: [&str; 2] = ["stack samples", "stack samples by the command"];

/// Whether an event is such a remark. It is no event of the program: its time says nothing.
#[inline]
pub(crate) fn is_remark(event: &Event<'_>) -> bool {
    event.kind == EventKind::Instant
        && matches!(event.categories, Categories::One(category) if category.text == "hairline")
}

/// Calls `each` with what an event says is not recorded, and why.
pub(crate) fn not_recorded(event: &Event<'_>, mut each: impl FnMut(&str, String)) {
    if event.name.text != "not recorded" || !is_remark(event) {
        return;
    }
    event.args.each(&mut |what, why| {
        if let Value::Str(why) | Value::Interned { text: why, .. } = why {
            each(what.text, one_line(&why.chars().take(LONGEST).collect::<String>()));
        }
    });
}
