//! The arguments of an event.

use std::cell::Cell;

use hairline_formats::trace_event_json::Args;
use hairline_formats::{Entries, Value};

use crate::{Event, EventDetails};

/// The arguments of an event, with its log message, correlation id and source location.
pub(super) struct EventArguments<'a> {
    event: &'a Event<'a>,
    cut: Cell<u64>,
}

impl<'a> EventArguments<'a> {
    pub(super) fn new(event: &'a Event<'a>) -> Self {
        Self { event, cut: Cell::new(0) }
    }

    /// The number of arguments that were cut when they were written, because they are nested too deeply.
    pub(super) fn cut(&self) -> u64 {
        self.cut.get()
    }

    pub(super) fn args(&self) -> Args<'_> {
        let EventDetails { log, location, correlation, stack_weight, .. } = self.event.details();
        let is_empty = log.is_none() && location.is_none() && correlation.is_none() && stack_weight.is_none();
        let is_empty = is_empty && self.event.args.is_empty();
        if is_empty { Args::None } else { Args::Shown(self) }
    }
}

impl Entries for EventArguments<'_> {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        self.event.args.each(&mut |name, value| {
            if value.is_too_deep() {
                self.cut.set(self.cut.get() + 1);
            }
            exact(name.text, value, show);
        });
        if let Some(log) = self.event.log() {
            show("message", Value::Str(log.body));
            show("priority", Value::Str(&format!("{:?}", log.priority).to_lowercase()));
        }
        if let Some(correlation) = self.event.correlation() {
            show("correlation_id", Value::Str(correlation));
        }
        if let Some(location) = &self.event.location() {
            show("source", Value::Dict(&Location(location)));
        }
        if let Some(weight) = self.event.details().stack_weight {
            show("callstack_weight", Value::F64(weight));
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
