//! Prepares events: everything except what an item borrows from the record.

use std::io::Read;

use hairline_formats::Value;
use hairline_formats::fxt::{self, ThreadRef};
use hairline_formats::track_event::CounterValue;

use crate::fxt::read::current::{Current, StringForm, resolved};
use crate::fxt::read::prepared::Prepared;
use crate::fxt::read::reason::{DAMAGED, Reason, TIME, TOO_MANY_TRACKS, UNKNOWN_STRING, UNKNOWN_THREAD};
use crate::fxt::read::state::{FxtReader, Step};
use crate::fxt::read::tables::Tables;
use crate::fxt::read::tracks::{Tracks, numbered};
use crate::starts::LATE;
use crate::{Context, EventKind, FlowStep};

/// The index of the track that a thread reference means.
#[inline]
pub(super) fn thread_slot(
    tables: &mut Tables,
    tracks: &mut Tracks,
    reference: ThreadRef,
    context: &mut Context,
) -> Result<u32, Reason> {
    let thread = tables.thread(reference).ok_or(UNKNOWN_THREAD)?;
    if let Some(slot) = thread.track {
        return Ok(slot);
    }
    let slot = tracks.thread(thread.process, thread.thread, context).ok_or(TOO_MANY_TRACKS)?;
    tables.set_track(reference, slot);
    Ok(slot)
}

/// The process in the kernel object of a thread.
pub(super) fn process_of(args: fxt::Arguments<'_>, tables: &Tables) -> Option<u64> {
    args.flatten().find_map(|(name, value)| match resolved(value, tables) {
        Value::Koid(koid) if tables.string(name)?.text == "process" => Some(koid),
        _ => None,
    })
}

impl<R: Read> FxtReader<R> {
    /// Prepares an event.
    pub(super) fn event(&mut self, context: &mut Context) -> Result<Step, Reason> {
        let Current { records, tables } = &mut self.current;
        let event = records.event().map_err(|_| DAMAGED)?;
        let event = event.ok_or(Reason("events of unknown kinds left out"))?;
        let time = tables.rate().ns(event.timestamp).ok_or(TIME)?;
        if !tables.has_string(event.name) || !tables.has_string(event.category) {
            return Err(UNKNOWN_STRING);
        }
        let payload = event.payload.unwrap_or(0);
        let flow = |step| EventKind::Flow { id: context.flow(payload), step, to_next: false, lasts: false };
        let (kind, opened) = match event.kind {
            fxt::EventKind::Counter => return self.counter(time, context),
            fxt::EventKind::Instant => (EventKind::Instant, None),
            fxt::EventKind::DurationBegin => (EventKind::Begin, None),
            fxt::EventKind::DurationEnd => (EventKind::End, None),
            fxt::EventKind::DurationComplete => {
                let duration = tables.rate().ns(payload).ok_or(TIME)? - time;
                if duration < 0 {
                    return Err(Reason("slices that end before they begin left out"));
                }
                (EventKind::Complete { duration }, None)
            }
            fxt::EventKind::AsyncBegin => (EventKind::Begin, Some(1)),
            fxt::EventKind::AsyncInstant => (EventKind::Instant, Some(0)),
            fxt::EventKind::AsyncEnd => (EventKind::End, Some(-1)),
            fxt::EventKind::FlowBegin => (flow(FlowStep::Begin), None),
            fxt::EventKind::FlowStep => (flow(FlowStep::Step), None),
            fxt::EventKind::FlowEnd => (flow(FlowStep::End), None),
        };
        // An end closes the innermost slice, whatever its name. Other formats look for a begin of that name,
        // so it is omitted.
        let (name, category) = match event.kind {
            fxt::EventKind::DurationEnd => (StringForm::Empty, StringForm::Empty),
            _ => (event.name.into(), event.category.into()),
        };
        let track = match opened {
            Some(opened) => {
                // The event belongs to no thread, but importers show its process.
                let thread = tables.thread(event.thread).ok_or(UNKNOWN_THREAD)?;
                self.tracks.process(thread.process, context).ok_or(TOO_MANY_TRACKS)?;
                let name = tables.string(event.name).ok_or(UNKNOWN_STRING)?;
                let name = numbered(name, &mut context.strings);
                self.tracks.interval(name, payload, time, opened, context).ok_or(TOO_MANY_TRACKS)?
            }
            None => {
                let slot = thread_slot(tables, &mut self.tracks, event.thread, context)?;
                self.tracks.id(slot)
            }
        };
        let is_log = event.kind == fxt::EventKind::Instant && self.log.is_met_by(time, track);
        if !is_log && let Some((time, track)) = self.log.take() {
            self.held = true;
            return Ok(Step::Log(time, track));
        }
        if let EventKind::Complete { duration } = kind {
            self.report.add_many(LATE, u64::from(self.starts.is_late(track, time, duration)));
        }
        self.prepared = Prepared { time, track, kind, name, category, is_log };
        Ok(Step::Event)
    }

    /// Prepares the next value of a counter record.
    fn counter(&mut self, time: i64, context: &mut Context) -> Result<Step, Reason> {
        let Current { records, tables } = &mut self.current;
        let Ok(Some(event)) = records.event() else {
            return Err(DAMAGED);
        };
        let thread = tables.thread(event.thread).ok_or(UNKNOWN_THREAD)?;
        let name = numbered(tables.string(event.name).ok_or(UNKNOWN_STRING)?, &mut context.strings);
        let mut args = event.args();
        for _ in 0..self.given {
            args.next();
        }
        while let Some(arg) = args.next() {
            self.given += 1;
            let Some((series, value)) = arg.ok().and_then(|(series, value)| {
                Some((tables.string(series)?, counter_value(&resolved(value, tables))?))
            }) else {
                self.report.add_defects("counter values that are not numbers left out", 1);
                continue;
            };
            let series = numbered(series, &mut context.strings);
            let number = event.payload.unwrap_or(0);
            let track = self.tracks.counter(thread.process, name, series, number, context);
            self.held = args.next().is_some();
            self.prepared = Prepared {
                time,
                track: track.ok_or(TOO_MANY_TRACKS)?,
                kind: EventKind::Counter(value),
                name: event.name.into(),
                category: event.category.into(),
                is_log: false,
            };
            return Ok(Step::Event);
        }
        Ok(Step::Nothing)
    }
}

fn counter_value(value: &Value<'_>) -> Option<CounterValue> {
    Some(match *value {
        Value::I64(value) => CounterValue::Int(value),
        Value::U64(value) => {
            i64::try_from(value).map_or(CounterValue::Double(value as f64), CounterValue::Int)
        }
        Value::F64(value) => CounterValue::Double(value),
        _ => return None,
    })
}
