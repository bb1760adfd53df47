//! The tables `thread`, `process` and `trace`.

use std::io;

use hairline_convert::sampled::Samples;
use hairline_convert::{Event, Item, Trace, TrackKind};
use hairline_formats::Value;
use hairline_formats::track_event::fields::clock;

use crate::args::hexadecimal;
use crate::owners::Owners;
use crate::rows::Rows;
use crate::schema::{VERSION, process, thread, trace};
use crate::source::Sink;
use crate::summary::{Facts, Summary};

/// The name of the event at the end of a trace by Hairline that shows all losses by reason.
const LOST: &str = "lost in all";
/// Its arguments, with their columns.
const REASONS: [(&str, usize); 8] = [
    ("buffer full", trace::lost_buffer_full),
    ("re-entrant", trace::lost_reentrant),
    ("too large", trace::lost_too_large),
    ("thread exit", trace::lost_thread_exit),
    ("output", trace::lost_output),
    ("arguments", trace::lost_arguments),
    ("damaged chunks", trace::lost_damaged),
    ("kernel ring full", trace::lost_kernel_ring),
];

impl Facts {
    /// Notes the facts in an item.
    pub(crate) fn item(&mut self, item: &Item<'_>) {
        match item {
            Item::Trace(trace) => self.trace(trace),
            Item::Loss(loss) => {
                self.losses += 1;
                self.lost_events = self.lost_events.saturating_add(loss.events);
            }
            _ => {}
        }
    }

    fn trace(&mut self, trace: &Trace<'_>) {
        self.uuid = self.uuid.or(trace.uuid);
        if let Some(writer) = trace.writer.filter(|_| self.writer.is_none()) {
            self.writer = Some(writer.to_owned());
        }
        if let Some(system) = trace.system.filter(|_| self.system.is_none()) {
            self.system = Some(system.map(str::to_owned));
        }
        let Some(own) = trace.clocks.first() else { return };
        self.clock = self.clock.or(Some(own.id));
        let real = trace.clocks.iter().find(|reading| reading.id == clock::REALTIME);
        if let Some(real) = real.filter(|_| self.since_1970.is_none()) {
            self.since_1970 = Some(real.time.wrapping_sub(own.time).cast_signed());
        }
    }

    /// Notes the times of an event.
    #[inline]
    pub(crate) fn event(&mut self, time: i64, end: i64) {
        let (first, last) = self.span.unwrap_or((time, end));
        self.span = Some((first.min(time), last.max(end)));
    }

    /// Notes the losses by reason, if an instant shows them.
    pub(crate) fn losses_by_reason(&mut self, event: &Event<'_>) {
        if event.name.text != LOST {
            return;
        }
        event.args.each(&mut |name, value| {
            let count = match value {
                Value::U64(count) => count,
                Value::I64(count) => u64::try_from(count).unwrap_or(0),
                _ => return,
            };
            if REASONS.iter().any(|(reason, _)| *reason == name.text) {
                match self.lost.iter_mut().find(|(reason, _)| reason == name.text) {
                    Some((_, all)) => *all = all.saturating_add(count),
                    None => self.lost.push((name.text.to_owned(), count)),
                }
            }
        });
    }
}

/// Makes the rows of `thread`.
pub(crate) fn put_threads(owners: &Owners, rows: &mut Rows, sink: &mut dyn Sink) -> io::Result<()> {
    for track in owners.all_threads() {
        let owner = owners.of_track(track);
        rows.int(thread::id, i64::from(track));
        rows.int(thread::tid, owner.tid.unwrap_or(0));
        rows.text(thread::name, owners.name(track));
        rows.opt_int(thread::process, owner.process.map(i64::from));
        rows.opt_int(thread::pid, owner.pid);
        rows.text(thread::process_name, owner.process.map_or("", |process| owners.name(process)));
        rows.opt_bool(thread::is_main, owner.pid.map(|pid| owner.tid == Some(pid)));
        rows.end_row(sink)?;
    }
    Ok(())
}

/// Makes the rows of `process`.
pub(crate) fn put_processes(owners: &Owners, rows: &mut Rows, sink: &mut dyn Sink) -> io::Result<()> {
    for track in owners.all_processes() {
        let Some(TrackKind::Process { pid, command_line, .. }) = owners.kind(track) else { continue };
        rows.int(process::id, i64::from(track));
        rows.int(process::pid, pid.cast_signed());
        rows.text(process::name, owners.name(track));
        rows.text(process::command_line, &command_line.join(" "));
        rows.end_row(sink)?;
    }
    Ok(())
}

/// Makes the row of `trace`.
pub(crate) fn put_trace(
    summary: &Summary,
    samples: &Samples,
    rows: &mut Rows,
    sink: &mut dyn Sink,
) -> io::Result<()> {
    let facts = &summary.facts;
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    rows.int(trace::schema, i64::from(VERSION));
    rows.opt_text(trace::uuid, facts.uuid_text().as_deref());
    rows.opt_text(trace::host, facts.system.as_ref().map(|system| system.join(" ")).as_deref());
    rows.opt_text(trace::executable, facts.executable.as_deref());
    let build_id = facts.executable.as_deref().and_then(|name| samples.build_id(name));
    rows.opt_text(trace::build_id, build_id.map(hexadecimal).as_deref());
    rows.opt_text(trace::writer, facts.writer.as_deref());
    rows.opt_int(trace::clock, facts.clock.map(i64::from));
    rows.opt_int(trace::since_1970, facts.since_1970);
    rows.opt_int(trace::start, facts.span.map(|(start, _)| start));
    rows.opt_int(trace::end, facts.span.map(|(_, end)| end));
    rows.int(trace::events, count(facts.events));
    rows.opt_bool(trace::is_whole, Some(summary.stopped.is_none()));
    rows.int(trace::losses, count(facts.losses));
    rows.int(trace::lost_events, count(facts.lost_events));
    for (reason, column) in REASONS {
        let lost = facts.lost.iter().find(|(known, _)| known == reason);
        rows.opt_int(column, lost.map(|(_, lost)| count(*lost)));
    }
    let all = |is_defect: bool| {
        let of = summary.report.iter().filter(|(what, _)| summary.report.is_defect(what) == is_defect);
        of.map(|(_, count)| count).sum::<u64>()
    };
    let own: u64 = summary.left_out.iter().map(|(_, count)| count).sum();
    rows.int(trace::defects, count(all(true)));
    rows.int(trace::left_out, count(all(false).saturating_add(own)));
    rows.end_row(sink)
}
