//! What the object form says of the trace as a whole.

use hairline_formats::trace_event_json::Json;

use super::{Ready, State};
use crate::json::{TIME_OFFSET, facts};
use crate::{Clock, Trace};

#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Nanoseconds that all times are to be taken later.
    pub(super) offset: i64,
    uuid: Option<u128>,
    writer: Option<String>,
    system: Option<[String; 4]>,
    clocks: Vec<Clock>,
}

impl Facts {
    pub(super) fn trace(&self) -> Trace<'_> {
        Trace {
            uuid: self.uuid,
            writer: self.writer.as_deref(),
            system: self.system.as_ref().map(|parts| parts.each_ref().map(String::as_str)),
            clocks: &self.clocks,
        }
    }

    /// Takes a member of `otherData`; false if it is none that is known.
    fn take(&mut self, key: &str, value: Json<'_>) -> bool {
        let text = value.as_str();
        match (key, text) {
            (TIME_OFFSET, Some(text)) => text.parse().map(|offset| self.offset = offset).is_ok(),
            (facts::UUID, Some(text)) => {
                self.uuid = u128::from_str_radix(&text.replace('-', ""), 16).ok();
                self.uuid.is_some()
            }
            (facts::WRITER, Some(text)) => {
                self.writer = Some(text.into_owned());
                true
            }
            (facts::SYSTEM, None) => {
                let mut parts = Vec::new();
                value.each_element(|part| parts.extend(part.as_str().map(|part| part.into_owned())));
                self.system = parts.try_into().ok();
                self.system.is_some()
            }
            (facts::CLOCKS, None) => {
                value.each_element(|clock| {
                    let number = |key| clock.get(key)?.as_str()?.parse::<u64>().ok();
                    let id = number(facts::CLOCK_ID).and_then(|id| u32::try_from(id).ok());
                    self.clocks
                        .extend(id.zip(number(facts::CLOCK_TIME)).map(|(id, time)| Clock { id, time }));
                });
                true
            }
            _ => false,
        }
    }
}

impl State {
    pub(super) fn member(&mut self, key: &str, value: Json<'_>) {
        match key {
            "displayTimeUnit" => {} // how a viewer shows times, not what they are
            "otherData" => {
                let mut known = false;
                value.each_member(|key, value| {
                    if self.facts.take(&key, value) {
                        known = true;
                    } else {
                        self.report.add("facts of the trace");
                    }
                });
                if known {
                    self.ready.push_back(Ready::Trace);
                }
            }
            "systemTraceEvents" => self.report.add("traces of the system (systemTraceEvents)"),
            _ => self.report.add("members that nobody knows"),
        }
    }
}
