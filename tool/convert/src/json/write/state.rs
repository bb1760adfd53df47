//! The state of a JSON writer.

use std::io::{self, Write};

use hairline_formats::Value;
use hairline_formats::trace_event_json::{self as json, Id, InstantScope, Phase, TimeUnit};

use crate::json::facts::Facts;
use crate::json::write::flows::Flows;
use crate::json::write::held::Waiting;
use crate::json::write::labels::Labels;
use crate::json::write::stacks::StackFrames;
use crate::json::write::tracks::{OutputTrack, Tracks};
use crate::{Loss, Report};

/// Writes Trace Event JSON in the object form.
///
/// ```
/// use hairline_convert::{Event, EventKind, Item, JsonWriter, Track, TrackId, TrackKind, TraceWriter};
///
/// let mut json = Vec::new();
/// let mut writer = JsonWriter::new(&mut json);
/// let thread = TrackId(0);
/// writer.write(&Item::Track(Track::new(thread, TrackKind::Thread { pid: 7, tid: 8 })))?;
/// let begin = Event { name: "read".into(), ..Event::new(1_500, thread, EventKind::Begin) };
/// writer.write(&Item::Event(begin))?;
/// writer.finish()?;
/// drop(writer);
/// assert!(String::from_utf8(json)?.contains(r#""name":"read","ph":"B","ts":1.5,"#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JsonWriter<W> {
    /// `None` when the trace is finished.
    pub(super) output: Option<json::JsonWriter<W>>,
    /// The nanoseconds subtracted from each time; `None` before the first event.
    pub(super) offset: Option<i64>,
    pub(super) facts: Facts,
    pub(super) tracks: Tracks,
    pub(super) labels: Labels,
    pub(super) flows: Flows,
    pub(super) intervals: Waiting,
    pub(super) frames: StackFrames,
    pub(super) lost: u64,
    /// Events lost at an unknown time before the first event. The loss is written with the first event,
    /// because the first time written decides the offset.
    pub(super) lost_before: Option<u64>,
    /// The time of the latest event.
    pub(super) last: i64,
    /// The categories of the current event, separated by commas.
    pub(super) categories: String,
    pub(super) report: Report,
}

/// Importers store times below this limit exactly. In nanoseconds: 26 days.
const EXACT: i64 = 1 << 51;

/// Other events may be earlier than the first event in the file by this much: a day.
const EARLIER: i64 = 86_400_000_000_000;

const SECOND: i64 = 1_000_000_000;

const MOVED: &str = "move of all times to about a day, because JSON holds times of up to 26 days; \
     otherData.timeOffsetNs has the rest, which only Hairline adds again";

const EARLY: &str = "events long before the others, moved to time 0 of the output";
const INEXACT: &str = "times beyond 26 days, which importers of JSON round";

impl<W: Write> JsonWriter<W> {
    /// Creates a writer. `output` needs no buffer.
    pub fn new(output: W) -> Self {
        Self {
            output: Some(json::JsonWriter::object(output)),
            offset: None,
            facts: Facts::default(),
            tracks: Tracks::default(),
            labels: Labels::default(),
            flows: Flows::default(),
            intervals: Waiting::default(),
            frames: StackFrames::default(),
            lost: 0,
            lost_before: None,
            last: 0,
            categories: String::new(),
            report: Report::default(),
        }
    }

    pub(super) fn output(&mut self) -> io::Result<&mut json::JsonWriter<W>> {
        self.output.as_mut().map_or_else(finished, Ok)
    }

    /// A time relative to the offset. An event before it, and one that is beyond the times that importers hold
    /// exactly, is counted.
    pub(super) fn time(&mut self, time: i64) -> i64 {
        let time = time.saturating_sub(self.offset.unwrap_or(0));
        if !(0..EXACT).contains(&time) {
            self.report.add(if time < 0 { EARLY } else { INEXACT });
        }
        time.max(0)
    }

    /// Writes the head of the trace if it is missing, and the descriptions of new tracks.
    #[inline]
    pub(super) fn begin(&mut self, first: i64) -> io::Result<()> {
        if self.offset.is_some() && !self.tracks.has_undescribed() { Ok(()) } else { self.describe(first) }
    }

    #[cold] // runs once for each new track
    fn describe(&mut self, first: i64) -> io::Result<()> {
        if self.offset.is_none() {
            let offset = if first < EXACT { 0 } else { (first - EARLIER) / SECOND * SECOND };
            (self.offset, self.facts.offset) = (Some(offset), offset);
            self.report.add_many(MOVED, u64::from(offset != 0));
            let output = self.output.as_mut().map_or_else(finished, Ok)?;
            output.display_time_unit(TimeUnit::Nanoseconds)?;
            if !self.facts.is_empty() {
                output.member("otherData", &Value::Dict(&self.facts))?;
            }
        }
        let Some(output) = &mut self.output else { return Ok(()) };
        self.tracks.describe(|event| output.event(event))?;
        match self.lost_before.take() {
            Some(events) => self.show_loss(&Loss { events, ..Loss::default() }, first),
            None => Ok(()),
        }
    }

    pub(super) fn show_loss(&mut self, loss: &Loss, time: i64) -> io::Result<()> {
        let ts = self.time(time);
        let thread = loss.track.and_then(|track| match self.tracks.get(track) {
            Some(OutputTrack::Thread { pid, tid, .. }) => Some((*pid, *tid)),
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
}

pub(super) fn finished<T>() -> io::Result<T> {
    Err(io::Error::other("the trace is finished"))
}
