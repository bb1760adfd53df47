//! What other programs of the machine took meanwhile, as `hairline record --sched` tells it in the trace.

use hairline_convert::Event;

use crate::explain::locks::number;
use crate::explain::shares::percent;
use crate::remark::is_remark;
use crate::table::plain;
use crate::text::one_line;

/// The limit for processes.
const MOST: usize = 8;

/// The CPU time of each process by its name, and how long it was counted, in nanoseconds.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    of: i64,
    by: Vec<(String, i64)>,
}

impl Neighbours {
    pub(super) fn add(&mut self, event: &Event<'_>) {
        if event.name.text != "other processes" || !is_remark(event) {
            return;
        }
        event.args.each(&mut |name, value| {
            let Some(time) = number(&value).and_then(|time| i64::try_from(time).ok()) else { return };
            if name.text == "recorded" {
                self.of = time;
            } else if self.by.len() < MOST {
                self.by.push((one_line(name.text).to_string(), time));
            }
        });
    }

    /// How long they were counted, and the CPU time of each, if the trace has that.
    pub(super) fn all(&self) -> Option<(i64, &[(String, i64)])> {
        (self.of > 0).then_some((self.of, &self.by))
    }

    /// Says which took most.
    pub(super) fn sentence(&self) -> Option<String> {
        let one = |(name, time): &(String, i64)| format!("`{}` {}", plain(name), percent(*time, self.of));
        let most: Vec<_> = self.by.iter().take(3).map(one).collect();
        let most = most.join(", ");
        (self.of > 0 && !most.is_empty())
            .then(|| format!("Of the whole recording, other programs had cores for: {most}."))
    }
}
