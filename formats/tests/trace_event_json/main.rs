//! Trace Event Format: written events are read back, and any input is read without harm.

#[path = "../common/mod.rs"]
mod common;
mod corpus;
mod malformed;
mod roundtrip;
mod writing;

use common::{Broken, Owned, Slow, text, unsigned, value};
use hairline_formats::trace_event_json::{
    Args, Event, Id, Id2, InstantScope, Item, Json, JsonReader, JsonWriter, Metadata, Phase, TimeUnit,
    put_event, put_value,
};
use hairline_formats::{DecodeError, DecodeErrorKind, Entries, Value};
use proptest::prelude::*;

/// Reads a whole trace: a line for each item or error, an event in the form in which this crate writes it.
fn lines(trace: impl std::io::Read) -> Vec<String> {
    let mut reader = JsonReader::new(trace);
    let mut all = Vec::new();
    loop {
        match reader.next() {
            Ok(Some((offset, item))) => all.push(format!("{offset} {}", line(&item))),
            Ok(None) => break,
            Err(e) => all.push(e.to_string()),
        }
    }
    assert!(reader.next().unwrap().is_none(), "there is nothing after the end");
    all
}

fn line(item: &Item<'_>) -> String {
    match item {
        Item::Event(event) => {
            let mut out = Vec::new();
            put_event(&mut out, event);
            let skipped = if event.skipped > 0 { format!(" +{}", event.skipped) } else { String::new() };
            String::from_utf8(out).unwrap() + &skipped
        }
        Item::Member { key, value } => format!("{key}: {value:?}"),
        other => format!("{other:?}"),
    }
}

/// Reads one event and passes it to `check`.
fn with_event(event: &str, check: impl FnOnce(&Event<'_>)) {
    let trace = format!("[{event}");
    match JsonReader::new(trace.as_bytes()).next().unwrap().unwrap() {
        (1, Item::Event(event)) => check(&event),
        other => panic!("{other:?}"),
    }
}
