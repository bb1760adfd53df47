//! Writes events of intervals: of all tracks that are not threads.
//!
//! Threads write to such a track from their own chunks, and chunks follow each other in the file in any
//! order. So an end may precede its begin in the file, and a step of a flow may precede the flow's begin. An
//! `e` needs the category of its `b`, and only the first point of a flow has no `flow_in`. So the events wait
//! in a window and are written in order of time, as [`slices`](crate::slices) reads them.
//!
//! Behind the window, in its order:
//! * an end finds its begin by the open slices of its track;
//! * an end without an open slice has the category of all slices of its track, if they have the same one, or
//!   waits until the first of them comes.

use std::borrow::Cow;
use std::io::{self, Write};

use hairline_formats::trace_event_json::{self as json, Id, Id2, InstantScope, Phase};

use crate::json::write::flows::Flows;
use crate::json::write::held::Held;
use crate::json::write::stacks::frame_id;
use crate::json::write::state::{JsonWriter, finished};
use crate::json::write::tracks::{Instants, Interval};
use crate::window::LONGEST;
use crate::{Event, EventKind, Report, StringId};

/// The limit for the texts of waiting events, in bytes.
const MOST_TEXT: usize = 1 << 24;

/// The limit for ends that wait for the first begin of their track.
const MOST_EARLY: usize = 1 << 16;

const DOUBTFUL: &str = "events of tracks that come more than 65,536 events too late, on tracks with slices \
     of several categories, where their slices may have other ends";
const NO_CATEGORY: &str = "ends of intervals without their category, which importers do not find";

impl<W: Write> JsonWriter<W> {
    /// Adds an event to the window, and writes the earliest ones if too many wait.
    pub(super) fn hold(&mut self, event: &Event<'_>, ts: i64) -> io::Result<()> {
        let frame = event.stack().and_then(|stack| self.frames.add(stack, &mut self.report));
        let held = Held::new(event, ts, &self.categories, frame, &mut self.report);
        self.intervals.text += held.text_len();
        self.intervals.window.push(held);
        while self.intervals.window.len() > LONGEST || self.intervals.text > MOST_TEXT {
            self.write_earliest()?;
        }
        Ok(())
    }

    /// Writes all events that wait, because no later event belongs to their tracks.
    pub(super) fn finish_intervals(&mut self) -> io::Result<()> {
        while self.write_earliest()? {}
        for track in self.tracks.with_early_ends() {
            let Some((interval, _)) = self.tracks.interval_mut(track) else { continue };
            let early = std::mem::take(&mut interval.slices.early);
            early.iter().try_for_each(|end| self.of_interval(end, None))?;
        }
        self.intervals.early = 0;
        Ok(())
    }

    /// Returns whether there was one.
    fn write_earliest(&mut self) -> io::Result<bool> {
        let Some(held) = self.intervals.window.pop() else { return Ok(false) };
        self.intervals.text -= held.text_len();
        let Some((interval, categories)) = self.tracks.interval_mut(held.track) else { return Ok(true) };
        let slices = &mut interval.slices;
        let is_late = slices.latest.is_some_and(|latest| held.ts < latest);
        slices.latest = slices.latest.max(Some(held.ts));
        match held.kind {
            EventKind::Begin => {
                let own = categories.number(held.categories());
                if slices.open.last().is_some_and(|around| *around != own) {
                    self.report.add("slices with another category than the enclosing slice, shown beside it");
                }
                match &mut slices.ahead {
                    (count, until) if *count > 0 && held.ts < *until => *count -= 1,
                    _ => slices.open.push(own),
                }
                slices.has_many |= slices.category.is_some_and(|category| category != own);
                slices.category.get_or_insert(own);
                self.report.add_many(DOUBTFUL, u64::from(is_late && slices.has_many));
                let early = std::mem::take(&mut slices.early);
                self.intervals.early -= early.len();
                self.of_interval(&held, None)?;
                early.iter().try_for_each(|end| self.of_interval(end, own))?;
            }
            EventKind::End => {
                self.report.add_many(DOUBTFUL, u64::from(is_late && slices.has_many));
                let mut category = slices.open.pop();
                if category.is_none() && held.categories().is_empty() {
                    slices.ahead = (slices.ahead.0 + 1, slices.ahead.1.max(held.ts));
                    category = slices.category.filter(|_| !slices.has_many);
                    if category.is_none() && slices.category.is_none() && self.intervals.early < MOST_EARLY {
                        self.intervals.early += 1;
                        slices.early.push(held);
                        return Ok(true);
                    }
                    self.report.add_many(NO_CATEGORY, u64::from(category.is_none()));
                }
                self.of_interval(&held, category.flatten())?;
            }
            _ => self.of_interval(&held, None)?,
        }
        Ok(true)
    }

    /// Writes an event. An end has the category of its begin, if that is known.
    fn of_interval(&mut self, held: &Held, category: Option<StringId>) -> io::Result<()> {
        let Some((interval, categories)) = self.tracks.interval_mut(held.track) else { return Ok(()) };
        let Some(output) = &mut self.output else { return finished() };
        let ph = match interval_phase(held.kind, interval.instants) {
            Ok(ph) => ph,
            Err(reason) => {
                self.report.add(reason);
                return Ok(());
            }
        };
        let mut written = json::Event {
            name: held.name().into(),
            cat: category.map_or(held.categories(), |category| categories.get(category)).into(),
            ph: Some(ph),
            ts: Some(held.ts),
            args: held.args(),
            sf: frame_id(held.frame),
            ..interval.event()
        };
        match ph {
            Phase::AsyncEnd => {}
            Phase::Instant => {
                // An instant has no id: its scope identifies it.
                (written.id, written.id2) = (None, Id2::default());
                written.s = Some(match interval.instants {
                    Instants::Process => InstantScope::Process,
                    _ => InstantScope::Global,
                });
                let flows = held.further + held.flow.iter().len();
                self.report.add_many("flows through instants without a thread", flows as u64);
            }
            _ => bind(&mut written, held, &mut self.flows, &mut self.report),
        }
        output.event(&written)?;
        let EventKind::Complete { duration } = held.kind else { return Ok(()) };
        output.event(&json::Event {
            name: written.name,
            cat: written.cat,
            ph: Some(Phase::AsyncEnd),
            ts: Some(held.ts.saturating_add(duration)),
            ..interval.event()
        })
    }
}

impl Interval {
    /// The members that all events of an interval share.
    fn event(&self) -> json::Event<'_> {
        let id = Some(Id::Text(Cow::Borrowed(&self.id)));
        let (id, id2) = match self.pid {
            Some(_) => (None, Id2 { local: id, global: None }),
            None => (id, Id2::default()),
        };
        // Importers ignore an interval without a process id.
        let pid = Some(Id::Number(self.pid.unwrap_or(0).into()));
        json::Event { pid, id, id2, scope: Cow::Borrowed(&self.scope), ..json::Event::default() }
    }
}

/// The phase of an event of an interval. The error describes why there is none.
fn interval_phase(kind: EventKind, instants: Instants) -> Result<Phase, &'static str> {
    match kind {
        EventKind::Begin | EventKind::Complete { .. } => Ok(Phase::AsyncBegin),
        EventKind::End => Ok(Phase::AsyncEnd),
        EventKind::Instant if instants == Instants::Interval => Ok(Phase::AsyncInstant),
        EventKind::Instant => Ok(Phase::Instant),
        EventKind::Flow { .. } => Err("flow points without a thread"),
        EventKind::Counter(_) => Err("counter values on tracks that are not counters"),
    }
}

/// Binds an event of an interval to its first flow. JSON has room for one.
fn bind(written: &mut json::Event<'_>, held: &Held, flows: &mut Flows, report: &mut Report) {
    if let Some((flow, role)) = held.flow
        && let Some((phase, number)) = flows.of_interval(flow, role, report)
    {
        written.bind_id = Some(Id::Text(format!("{:#x}", BOUND + number).into()));
        written.flow_in = phase != Phase::FlowStart;
        written.flow_out = phase != Phase::FlowEnd;
    }
    report.add_many("further flows through slices without a thread", held.further as u64);
}

/// Added to the flow ids of intervals. Importers number the flows of threads from 0.
const BOUND: u64 = 1 << 40;
