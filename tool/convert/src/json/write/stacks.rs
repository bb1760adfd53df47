//! The call stacks of events: an event has the id of its innermost frame, and each frame that of its caller.

use std::collections::{HashMap, hash_map::Entry};
use std::num::NonZeroU32;
use std::sync::Arc;

use hairline_formats::trace_event_json::Id;
use hairline_formats::{Entries, Value};

use crate::{Report, Stack};

/// The limit for frames, some 150 bytes each, because they are written at the end.
const MOST_FRAMES: usize = 1 << 18;

const TOO_MANY: &str = "call stacks of events left out: they have more than 262,144 different frames";
const ADDRESSES: &str = "addresses and build ids of call stacks left out";

/// The members of `stackFrames`.
#[derive(Debug, Default)]
pub(super) struct StackFrames {
    numbers: HashMap<Frame, NonZeroU32>,
    all: Vec<Frame>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    caller: Option<NonZeroU32>,
    name: Arc<str>,
    module: Arc<str>,
}

impl StackFrames {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds the frames that are new, and returns the number of the innermost one.
    pub(super) fn add(&mut self, stack: &dyn Stack, report: &mut Report) -> Option<NonZeroU32> {
        let (mut caller, mut is_whole, mut has_more) = (None, true, false);
        stack.each(&mut |frame| {
            has_more |= !frame.build_id.is_empty() || !frame.function.is_empty() && frame.address != 0;
            let frame = Frame { caller, name: frame.to_string().into(), module: frame.module.into() };
            match self.numbers.entry(frame) {
                Entry::Occupied(known) => caller = Some(*known.get()),
                Entry::Vacant(_) if !is_whole || self.all.len() >= MOST_FRAMES => is_whole = false,
                Entry::Vacant(new) => {
                    self.all.push(new.key().clone());
                    #[allow(clippy::cast_possible_truncation)] // there are fewer than 2^18
                    let number = NonZeroU32::new(self.all.len() as u32);
                    caller = number.map(|number| *new.insert(number));
                }
            }
        });
        report.add_many(TOO_MANY, u64::from(!is_whole));
        report.add_many(ADDRESSES, u64::from(is_whole && has_more));
        caller.filter(|_| is_whole)
    }
}

/// The member of an event.
pub(super) fn frame_id(number: Option<NonZeroU32>) -> Option<Id<'static>> {
    number.map(|number| Id::Number(number.get().into()))
}

impl Entries for StackFrames {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        for (place, frame) in self.all.iter().enumerate() {
            show(&(place + 1).to_string(), Value::Dict(frame));
        }
    }
}

impl Entries for Frame {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("name", Value::Str(&self.name));
        show("category", Value::Str(&self.module));
        if let Some(caller) = self.caller {
            show("parent", Value::U64(caller.get().into()));
        }
    }
}
