//! Items to JSON.
//!
//! ```text
//! {"displayTimeUnit":"ns",
//! "otherData":{"timeOffsetNs":"...", ...},          what is known of the trace before its first event
//! "traceEvents":[
//! {"name":"thread_name","ph":"M", ...},             tracks, before the first event after they were told of
//! {"name":"read","ph":"X","ts":1.5, ...}
//! ],
//! "lostEvents":3}                                   if events are missing
//! ```
//!
//! | track | events |
//! |---|---|
//! | thread | B E X i, with s t f for flows |
//! | process, async, any other | b n e with an id of its own, flows by `bind_id`; instants of a process, or of everything, are i |
//! | counter | C |
//!
//! An async interval is known by its category too: an `e` has that of the `b`, whatever the item says.
//!
//! **Times.** Where the first event is later than floating point numbers of microseconds can say to the nanosecond, times are written
//! less an offset, which `otherData` has and the [reader](super::Reader) adds again.

mod event;
mod flows;
mod labels;
mod lanes;
mod plain;

use std::io::{self, Write};

use hairline_formats::trace_event_json::{self as json, Id, InstantScope, Json, Phase, TimeUnit};
use hairline_formats::{Entries, Value};

use super::{TIME_OFFSET, facts};
use crate::{Clock, Item, Loss, Report, Source, Trace};
use flows::Flows;
use labels::Labels;
use lanes::{Lane, Lanes};

/// Writes Trace Event JSON, in the object form.
#[derive(Debug)]
pub struct Writer<W> {
    /// None once it is finished.
    output: Option<json::Writer<W>>,
    /// What times are written less; None before the first event.
    offset: Option<i64>,
    facts: Facts,
    lanes: Lanes,
    labels: Labels,
    flows: Flows,
    lost: u64,
    /// What is missing before the first event, at a time that is not known: it is told with that, whose time the others go by.
    lost_before: Option<u64>,
    /// The time of the last event.
    last: i64,
    /// Categories with commas between them.
    categories: String,
    report: Report,
}

/// What is known of the trace as a whole.
#[derive(Debug, Default)]
struct Facts {
    offset: i64,
    uuid: Option<u128>,
    writer: Option<String>,
    system: Option<[String; 4]>,
    clocks: Vec<Clock>,
}

/// The importer's times are exact below this, in nanoseconds: 26 days.
const EXACT: i64 = 1 << 51;

/// So much earlier than the first event in the file may others be: a day.
const EARLIER: i64 = 86_400_000_000_000;

const SECOND: i64 = 1_000_000_000;

impl<W: Write> Writer<W> {
    /// Writes to `output`, which needs no buffer.
    pub fn new(output: W) -> Self {
        Self {
            output: Some(json::Writer::object(output)),
            offset: None,
            facts: Facts::default(),
            lanes: Lanes::default(),
            labels: Labels::default(),
            flows: Flows::default(),
            lost: 0,
            lost_before: None,
            last: 0,
            categories: String::new(),
            report: Report::default(),
        }
    }

    fn output(&mut self) -> io::Result<&mut json::Writer<W>> {
        self.output.as_mut().map_or_else(finished, Ok)
    }

    /// A time as it is written; None, which is counted, if it is before all that can be.
    fn time(&mut self, time: i64) -> Option<i64> {
        let time = time.checked_sub(self.offset.unwrap_or(0)).filter(|time| *time >= 0);
        if time.is_none() {
            self.report.add("events of a time before 0");
        }
        time
    }

    /// Writes what stands before the events, and tells of tracks that are new.
    #[inline]
    fn begin(&mut self, first: i64) -> io::Result<()> {
        if self.offset.is_some() && !self.lanes.has_untold() { Ok(()) } else { self.tell(first) }
    }

    #[cold] // as often as there are tracks
    fn tell(&mut self, first: i64) -> io::Result<()> {
        if self.offset.is_none() {
            let offset = if first < EXACT { 0 } else { (first - EARLIER) / SECOND * SECOND };
            (self.offset, self.facts.offset) = (Some(offset), offset);
            let output = self.output.as_mut().map_or_else(finished, Ok)?;
            output.display_time_unit(TimeUnit::Nanoseconds)?;
            if !self.facts.is_empty() {
                output.member("otherData", &Value::Dict(&self.facts))?;
            }
        }
        let Some(output) = &mut self.output else { return Ok(()) };
        self.lanes.tell(|event| output.event(event))?;
        match self.lost_before.take() {
            Some(events) => self.show_loss(&Loss { events, ..Loss::default() }, first),
            None => Ok(()),
        }
    }

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

    fn show_loss(&mut self, loss: &Loss, time: i64) -> io::Result<()> {
        let Some(ts) = self.time(time) else { return Ok(()) };
        let thread = loss.track.and_then(|track| match self.lanes.get(track) {
            Some(Lane::Thread { pid, tid, .. }) => Some((*pid, *tid)),
            _ => None,
        });
        self.output()?.event(&json::Event {
            name: "events lost".into(),
            cat: "hairline".into(),
            ph: Some(Phase::Instant),
            ts: Some(ts),
            pid: thread.map(|(pid, _)| Id::Number(pid.into())),
            tid: thread.map(|(_, tid)| Id::Number(tid.into())),
            s: thread.is_none().then_some(InstantScope::Global),
            args: json::Args::List(&[("lost", Value::U64(loss.events))]),
            ..json::Event::default()
        })
    }

    fn foreign(&mut self, what: &'static str, source: Source, bytes: &[u8]) -> io::Result<()> {
        if source != Source::Json {
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

impl<W: Write> crate::Writer for Writer<W> {
    fn write(&mut self, item: &Item<'_>) -> io::Result<()> {
        match item {
            Item::Trace(trace) => self.trace(trace),
            Item::Track(track) => self.lanes.add(track, &mut self.report),
            Item::Event(event) => return self.event(event),
            Item::Loss(loss) => return self.loss(loss),
            Item::Foreign { what, source, bytes } => return self.foreign(what, *source, bytes),
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.begin(self.last)?;
        self.finish_flows()?;
        let lost = self.lost;
        let mut output = self.output.take().map_or_else(finished, Ok)?;
        if lost > 0 {
            output.member("lostEvents", &Value::U64(lost))?;
        }
        output.finish()?.flush()
    }

    fn report(&self) -> &Report {
        &self.report
    }
}

fn finished<T>() -> io::Result<T> {
    Err(io::Error::other("the trace is finished"))
}

impl Facts {
    fn is_empty(&self) -> bool {
        self.offset == 0 && self.known() == [false; 4]
    }

    /// Takes note of the first of each. Whether there was something new.
    fn take(&mut self, trace: &Trace<'_>) -> bool {
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
            show(facts::UUID, Value::Str(&format!("{uuid:032x}")));
        }
        if let Some(writer) = &self.writer {
            show(facts::WRITER, Value::Str(writer));
        }
        if let Some(system) = &self.system {
            show(facts::SYSTEM, Value::Array(&Parts(system)));
        }
        if !self.clocks.is_empty() {
            show(facts::CLOCKS, Value::Array(&Clocks(&self.clocks)));
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
        // As text: floating point numbers do not have all of its digits.
        show(facts::CLOCK_ID, Value::Str(&self.id.to_string()));
        show(facts::CLOCK_TIME, Value::Str(&self.time.to_string()));
    }
}
