//! Messages of the `log` crate that tracing-log passes on.
//!
//! They all have the metadata of one of five callsites. Their own target and place are fields. A message gets
//! a callsite of its own by these, as the messages that [`Logger`](crate::Logger) records do.

use std::fmt;

use hairline_formats::Value;
use tracing_core::field::{Field, Visit};
use tracing_core::{Event, Metadata};

use crate::on::bridges::messages::{self, Place};
use crate::on::bridges::tracing::fields::{Fields, MESSAGE, with_scratch};
use crate::on::callsite::registry;
use crate::on::event;
use crate::on::event::extras::Extras;
use crate::on::thread::events;
use crate::spans::Category;
use crate::vocabulary::Level;

const TARGET: &str = "log.target";

/// Returns whether an event with this metadata is a message of `log`.
#[inline]
pub(crate) fn is_message(metadata: &Metadata<'_>) -> bool {
    metadata.target() == "log" && has_own_target(metadata)
}

#[cold]
fn has_own_target(metadata: &Metadata<'_>) -> bool {
    metadata.is_event() && metadata.fields().field(TARGET).is_some()
}

/// Records the message, if the session's filter includes its target.
pub(crate) fn record(event: &Event<'_>, category: Category, level: Level) {
    if registry::active_epoch().is_none() || (level as u8) < registry::active_level() {
        return;
    }
    with_scratch(|fields| {
        event.record(&mut Part { fields, message: false });
        let Some(site) = messages::site(&place_of(fields, category, level), None) else { return };
        let Some(epoch) = site.registered_epoch() else { return };
        // Only now: the message runs code of the program.
        event.record(&mut Part { fields, message: true });
        let extras = Extras::new();
        let message = event::Event::new(site, &[], &extras);
        events::log_message(&message, epoch, level, &fields.message, level != Level::Info);
    });
}

/// Visits the message of an event alone, or all other fields.
struct Part<'f> {
    fields: &'f mut Fields,
    message: bool,
}

impl Part<'_> {
    fn has(&self, field: &Field) -> bool {
        (field.name() == MESSAGE) == self.message
    }
}

impl Visit for Part<'_> {
    fn record_u64(&mut self, field: &Field, value: u64) {
        if self.has(field) {
            self.fields.record_u64(field, value);
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.has(field) {
            self.fields.record_str(field, value);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.has(field) {
            self.fields.record_debug(field, value);
        }
    }
}

fn place_of(fields: &Fields, category: Category, level: Level) -> Place<'_> {
    let mut place = Place { category: "log", file: "", line: 0, module: "" };
    for (name, value) in fields.kept.iter() {
        match (name, value) {
            (TARGET, Value::Str(target)) => place.category = target,
            ("log.file", Value::Str(file)) => place.file = file,
            ("log.line", Value::U64(line)) => place.line = line.try_into().unwrap_or(0),
            ("log.module_path", Value::Str(module)) => place.module = module,
            _ => {}
        }
    }
    if category == Category::Level {
        place.category = level.name();
    }
    place
}
