//! The arguments of an event.

use hairline_formats::trace_event_json::Args;
use hairline_formats::{Entries, Value};

use crate::Event;

/// The arguments of an event, with its log message, correlation id and source location.
pub(super) struct EventArguments<'a>(pub(super) &'a Event<'a>);

impl EventArguments<'_> {
    pub(super) fn args(&self) -> Args<'_> {
        let Event { log, location, correlation, args, .. } = self.0;
        let is_empty = log.is_none() && location.is_none() && correlation.is_none() && args.is_empty();
        if is_empty { Args::None } else { Args::Shown(self) }
    }
}

impl Entries for EventArguments<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        self.0.args.each(&mut |name, value| exact(name.text, value, show));
        if let Some(log) = &self.0.log {
            show("message", Value::Str(log.body));
            show("priority", Value::Str(&format!("{:?}", log.priority).to_lowercase()));
        }
        if let Some(correlation) = self.0.correlation {
            show("correlation_id", Value::Str(correlation));
        }
        if let Some(location) = &self.0.location {
            show("source", Value::Dict(&Location(location)));
        }
    }
}

/// Shows an integer beyond `i64` as text, because trace_processor v52 reads it as -1.
fn exact(name: &str, value: Value<'_>, show: &mut dyn FnMut(&str, Value<'_>)) {
    match value {
        Value::U64(number) | Value::Koid(number) if i64::try_from(number).is_err() => {
            show(name, Value::Str(&number.to_string()));
        }
        Value::Dict(entries) => show(name, Value::Dict(&Exact(entries))),
        Value::Array(entries) => show(name, Value::Array(&Exact(entries))),
        value => show(name, value),
    }
}

struct Exact<'a>(&'a dyn Entries);

impl Entries for Exact<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        self.0.each(&mut |name, value| exact(name, value, show));
    }
}

struct Location<'a>(&'a hairline_formats::track_event::SourceLocation<'a>);

impl Entries for Location<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("file_name", Value::Str(self.0.file));
        if !self.0.function.is_empty() {
            show("function_name", Value::Str(self.0.function));
        }
        if self.0.line > 0 {
            show("line_number", Value::U64(self.0.line.into()));
        }
    }
}
