//! Items to JSON.
//!
//! ```text
//! {"displayTimeUnit":"ns",
//! "otherData":{"timeOffsetNs":"...", ...},          facts about the trace, known before its first event
//! "traceEvents":[
//! {"name":"thread_name","ph":"M", ...},             a new track, before the next event
//! {"name":"read","ph":"X","ts":1.5, ...}
//! ],
//! "lostEvents":3}                                   if events are missing
//! ```
//!
//! | track | events |
//! |---|---|
//! | thread | B E X i, with s t f for flows |
//! | process, async, any other | b n e with an id, flows with `bind_id`; instants of a process or of the trace are i |
//! | counter | C |
//!
//! The category is part of an async interval's identity, so an `e` has the category of its `b`. In a trace of
//! several threads it may precede its `b`: see [`intervals`].
//!
//! **Times.** Importers store microseconds as floating point numbers. If the first event is too late for
//! exact nanoseconds, an offset is subtracted from all times. `otherData` has the offset, and the
//! [reader](crate::JsonReader) adds it.

mod arguments;
mod event;
mod first_threads;
mod flows;
mod held;
mod intervals;
mod labels;
mod plain;
mod stacks;
mod state;
mod tracks;

pub use state::JsonWriter;

use std::io::{self, Write};

use hairline_formats::Value;
use hairline_formats::trace_event_json::Json;

use crate::json::write::state::finished;
use crate::{Copied, Item, Loss, Report, Scheduling, Trace, TraceFormat};

impl<W: Write> JsonWriter<W> {
    fn trace(&mut self, trace: &Trace<'_>) {
        let takes = self.facts.take(trace);
        if takes && self.offset.is_some() {
            self.report.add("facts of the trace that came after its first event");
        }
    }

    fn loss(&mut self, loss: &Loss) -> io::Result<()> {
        self.lost = self.lost.saturating_add(loss.events.max(1));
        if self.offset.is_none() && loss.time.is_none() {
            self.lost_before = Some(self.lost_before.unwrap_or(0).saturating_add(loss.events));
            return Ok(());
        }
        let time = loss.time.unwrap_or(self.last);
        self.begin(time)?;
        self.show_loss(loss, time)
    }

    fn foreign(&mut self, what: &'static str, format: TraceFormat, bytes: &[u8]) -> io::Result<()> {
        if format != TraceFormat::Json {
            self.report.add(what);
            return Ok(());
        }
        self.begin(self.last)?;
        let event = std::str::from_utf8(bytes).ok().and_then(Json::new);
        match event {
            Some(event) if self.offset == Some(0) => self.output()?.json(event),
            _ => {
                self.report.add(what);
                Ok(())
            }
        }
    }
}

impl<W: Write> crate::stream::TraceWriter for JsonWriter<W> {
    fn write(&mut self, item: &Item<'_>) -> io::Result<()> {
        match item {
            Item::Trace(trace) => self.trace(trace),
            Item::Track(track) => {
                if self.tracks.changes_interval(track) {
                    self.finish_intervals()?;
                }
                self.tracks.add(track, &mut self.report);
            }
            Item::Event(event) => return self.event(event),
            Item::Loss(loss) => return self.loss(loss),
            Item::Scheduling(scheduling) => {
                self.report.add_many("thread states left out", scheduling.changes.len() as u64);
                self.report.add_many(Scheduling::OTHERS, scheduling.others);
            }
            Item::Sample(_) => self.report.add("stack samples left out"),
            Item::Heap(_) => self.report.add("call stacks of heap profiles left out"),
            Item::Symbols(_) => self.report.add("functions of stack samples left out"),
            Item::Copied(Copied { format: TraceFormat::Json, bytes }) => {
                return self.foreign("", TraceFormat::Json, bytes);
            }
            Item::Copied(_) => {}
            Item::Foreign { what, format, bytes } => return self.foreign(what, *format, bytes),
        }
        Ok(())
    }

    fn next_input(&mut self) -> io::Result<()> {
        self.finish_intervals()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.begin(self.last)?;
        self.finish_intervals()?;
        self.finish_flows()?;
        let lost = self.lost;
        let mut output = self.output.take().map_or_else(finished, Ok)?;
        if lost > 0 {
            output.member("lostEvents", &Value::U64(lost))?;
        }
        if !self.frames.is_empty() {
            output.member("stackFrames", &Value::Dict(&self.frames))?;
        }
        output.finish()?.flush()
    }

    fn report(&self) -> &Report {
        &self.report
    }
}
