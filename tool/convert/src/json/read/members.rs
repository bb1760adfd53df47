//! The members of the object form.

use hairline_formats::trace_event_json::Json;

use crate::json::read::pending::Pending;
use crate::json::read::state::State;

impl State {
    pub(super) fn member(&mut self, key: &str, value: Json<'_>) {
        match key {
            // They affect only how a viewer shows times, and which version of its tracer wrote the file.
            "displayTimeUnit" | "schemaVersion" => {}
            "otherData" => {
                let mut known = false;
                value.each_member(|key, value| {
                    if self.facts.take_member(&key, value) {
                        known = true;
                    } else {
                        self.report.add("facts of the trace");
                    }
                });
                if known {
                    self.is_trace = true;
                    self.pending.push_back(Pending::Trace);
                }
            }
            "systemTraceEvents" => self.report.add("traces of the system (systemTraceEvents)"),
            _ => self.report.add("unknown members"),
        }
    }
}
