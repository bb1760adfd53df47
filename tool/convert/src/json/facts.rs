//! The facts about a whole trace, stored as members of `otherData`.

use hairline_formats::trace_event_json::Json;
use hairline_formats::{Entries, Value};

use crate::{Clock, Trace};

/// The member with the nanoseconds to add to each time, as text.
///
/// Importers store microseconds as floating point numbers, which are exact to the nanosecond for the first 26
/// days only.
const TIME_OFFSET: &str = "timeOffsetNs";

/// The names of the other members that this crate writes and reads.
const UUID: &str = "uuid";
const WRITER: &str = "writer";
const SYSTEM: &str = "system";
const CLOCKS: &str = "clocks";
const CLOCK_ID: &str = "id";
const CLOCK_TIME: &str = "timeNs";

/// The known facts about the whole trace.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// The nanoseconds to add to each time.
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

    /// Reads a member of `otherData`. Returns whether the member is known.
    pub(super) fn take_member(&mut self, key: &str, value: Json<'_>) -> bool {
        let text = value.as_str();
        match (key, text) {
            (TIME_OFFSET, Some(text)) => text.parse().map(|offset| self.offset = offset).is_ok(),
            (UUID, Some(text)) => {
                self.uuid = u128::from_str_radix(&text.replace('-', ""), 16).ok();
                self.uuid.is_some()
            }
            (WRITER, Some(text)) => {
                self.writer = Some(text.into_owned());
                true
            }
            (SYSTEM, None) => {
                let mut parts = Vec::new();
                value.each_element(|part| parts.extend(part.as_str().map(|part| part.into_owned())));
                self.system = parts.try_into().ok();
                self.system.is_some()
            }
            (CLOCKS, None) => {
                value.each_element(|clock| {
                    let number = |key| clock.get(key)?.as_str()?.parse::<u64>().ok();
                    let id = number(CLOCK_ID).and_then(|id| u32::try_from(id).ok());
                    self.clocks.extend(id.zip(number(CLOCK_TIME)).map(|(id, time)| Clock { id, time }));
                });
                true
            }
            _ => false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.offset == 0 && self.known() == [false; 4]
    }

    /// Stores each fact that is not known yet. Returns whether one was new.
    pub(super) fn take(&mut self, trace: &Trace<'_>) -> bool {
        let before = self.known();
        self.uuid = self.uuid.or(trace.uuid);
        self.writer = self.writer.take().or(trace.writer.map(str::to_owned));
        self.system = self.system.take().or(trace.system.map(|parts| parts.map(str::to_owned)));
        if self.clocks.is_empty() {
            self.clocks.extend_from_slice(trace.clocks);
        }
        self.known() != before
    }

    fn known(&self) -> [bool; 4] {
        [self.uuid.is_some(), self.writer.is_some(), self.system.is_some(), !self.clocks.is_empty()]
    }
}

impl Entries for Facts {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        if self.offset != 0 {
            show(TIME_OFFSET, Value::Str(&self.offset.to_string()));
        }
        if let Some(uuid) = self.uuid {
            show(UUID, Value::Str(&format!("{uuid:032x}")));
        }
        if let Some(writer) = &self.writer {
            show(WRITER, Value::Str(writer));
        }
        if let Some(system) = &self.system {
            show(SYSTEM, Value::Array(&Parts(system)));
        }
        if !self.clocks.is_empty() {
            show(CLOCKS, Value::Array(&Clocks(&self.clocks)));
        }
    }
}

struct Parts<'p>(&'p [String; 4]);

impl Entries for Parts<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        self.0.iter().for_each(|part| show("", Value::Str(part)));
    }
}

struct Clocks<'c>(&'c [Clock]);

impl Entries for Clocks<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        self.0.iter().for_each(|clock| show("", Value::Dict(clock)));
    }
}

impl Entries for Clock {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        // As text, because floating point numbers do not have all digits.
        show(CLOCK_ID, Value::Str(&self.id.to_string()));
        show(CLOCK_TIME, Value::Str(&self.time.to_string()));
    }
}
