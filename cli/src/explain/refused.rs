//! What the recording was to have, and the system refused, as the trace tells of it: who was just refused it
//! needs no advice to record it.

use hairline_convert::Event;
use hairline_formats::Value;

use crate::remark::is_remark;
use crate::text::one_line;

/// The longest sentence that is shown, in characters.
const LONGEST: usize = 400;

/// The sentences that say why, and what helps.
#[derive(Debug, Default)]
pub(super) struct Refused {
    pub(super) states: Option<String>,
    pub(super) samples: Option<String>,
}

impl Refused {
    pub(super) fn add(&mut self, event: &Event<'_>) {
        if event.name.text != "not recorded" || !is_remark(event) {
            return;
        }
        event.args.each(&mut |what, why| {
            let (Value::Str(why) | Value::Interned { text: why, .. }) = why else { return };
            let refused = match what.text {
                "thread states" | "thread states by the command" => &mut self.states,
                "stack samples" | "stack samples by the command" => &mut self.samples,
                _ => return,
            };
            *refused = Some(one_line(why).chars().take(LONGEST).collect());
        });
    }
}
