//! Items to FXT.
//!
//! | item | form |
//! |---|---|
//! | names of processes and threads | kernel objects |
//! | slices, instants and flows of threads; counters of processes | their own records |
//! | async intervals | async records with an id that is unique in the trace |
//! | log messages | log records, and an instant with the text as an argument, because importers ignore log records |
//! | other tracks, other counters, several values at one moment | TrackEvent packets in Perfetto blobs: see [`blob`] |
//! | thread states | context switches and wakeups: see [`scheduling`] |
//! | stack samples and their symbols | packets in Perfetto blobs |
//! | losses | provider events, and an instant that importers show |
//! | foreign records of FXT | copies |

mod arguments;
mod blob;
mod brief;
mod flows;
mod lasting;
mod open;
mod output;
mod record;
mod scheduled;
mod scheduling;
mod short;
mod state;
mod strings;
mod threads;
mod tracks;

pub use state::FxtWriter;

use std::io::{self, Write};

use hairline_formats::Value;
use hairline_formats::fxt::{self, StringRef};

use crate::fxt::write::strings::Strings as OutputStrings;
use crate::fxt::write::tracks::OutputTrackKind;
use crate::report::{LATE_THREADS, STACKS, STATES};
use crate::{
    BriefEvent, Categories, Copied, Event, EventKind, Item, Loss, Report, Strings, Trace, TraceFormat, Track,
    TrackId, TrackKind,
};

const NS: u64 = 1_000_000_000;

/// The limit for losses before the first event.
const MOST_EARLY_LOSSES: usize = 1 << 10;

/// Negative ids, which some tracers make of addresses, are such ids too.
const CUT_IDS: &str = "process and thread ids beyond 32 bits, which importers cut";

impl<W: Write> FxtWriter<W> {
    /// Starts the section of a provider, with empty tables.
    fn start(&mut self, provider: &str) {
        let out = &mut self.output.bytes;
        if self.provider == 0 {
            fxt::magic(out);
        } else if self.provider_name == provider {
            return;
        }
        self.provider += 1;
        provider.clone_into(&mut self.provider_name);
        fxt::provider_info(out, self.provider, provider);
        fxt::initialization(out, NS);
        self.strings = OutputStrings::default();
        self.threads.clear(&mut self.tracks);
    }

    fn trace(&mut self, trace: &Trace<'_>) {
        // With a system, `writer` is the program that wrote packets. Such packets may be part of a provider's
        // section.
        if let Some(writer) = trace.writer
            && (self.provider == 0 || trace.system.is_none())
        {
            self.start(writer);
        }
        self.put_about_trace(trace);
    }

    fn track(&mut self, track: &Track) {
        let renumbered = self.pids.renumbered(track, &mut self.report);
        let track = renumbered.as_ref().unwrap_or(track);
        let was_slices =
            self.tracks.get(track.id).is_some_and(|kept| matches!(kept.kind, OutputTrackKind::Slices));
        self.report.add_many(STATES, u64::from(track.kind == TrackKind::States && !was_slices));
        if was_slices && matches!(track.kind, TrackKind::Thread { .. }) {
            self.report.add(LATE_THREADS);
        }
        self.tracks.set(track);
        if let TrackKind::Process { pid: id, .. } | TrackKind::Thread { tid: id, .. } = track.kind {
            self.report.add_many(CUT_IDS, u64::from(u32::try_from(id).is_err()));
        }
        if matches!(&track.kind, TrackKind::Process { command_line, .. } if !command_line.is_empty()) {
            self.put_command_line(track);
        }
        if track.name.is_empty() {
            return;
        }
        if let TrackKind::Thread { tid, .. } = track.kind {
            self.scheduled.with_track.insert(tid);
        }
        let (kind, koid, process) = match track.kind {
            TrackKind::Process { pid, .. } => (fxt::KERNEL_OBJECT_PROCESS, pid, None),
            TrackKind::Thread { pid, tid } => (fxt::KERNEL_OBJECT_THREAD, tid, Some(pid)),
            _ => return,
        };
        let process = process.map(|pid| (StringRef::Inline("process"), Value::Koid(pid)));
        let name = StringRef::Inline(&track.name);
        fxt::kernel_object(&mut self.output.bytes, kind, koid, name, process.as_slice());
    }

    #[inline]
    fn event(&mut self, event: &Event<'_>) {
        if !self.short(event) {
            self.any_event(event);
        }
    }

    #[inline(never)]
    fn any_event(&mut self, event: &Event<'_>) {
        let time = u64::try_from(event.time).unwrap_or_else(|_| {
            self.report.add("times before 0, which became 0");
            0
        });
        self.last_time = Some(time);
        self.report.add_many(STACKS, event.stack().is_some().into());
        let is_counter = matches!(event.kind, EventKind::Counter(_));
        match self.tracks.get(event.track).map(|track| &track.kind) {
            Some(OutputTrackKind::Thread { .. }) if !is_counter => self.thread_event(event, time),
            Some(OutputTrackKind::Async { .. }) if !is_counter => self.async_event(event, time),
            Some(OutputTrackKind::Counter { is_plain: true, .. }) => self.counter_event(event, time),
            Some(_) => self.blob_event(event, time),
            None => self.report.add("events on unknown tracks left out"),
        }
        if !event.extra_counters.is_empty() {
            self.put_extra_counters(event, time);
        }
    }

    fn loss(&mut self, loss: &Loss) {
        fxt::provider_event(&mut self.output.bytes, self.provider, fxt::PROVIDER_EVENT_BUFFER_FULL);
        // Importers ignore the provider event, so known details are written as an instant too.
        if *loss == Loss::default() {
            return;
        }
        let own = loss.time.and_then(|time| u64::try_from(time).ok());
        match own.or(self.last_time) {
            Some(time) => self.put_loss(loss, time),
            None if self.early_losses.len() < MOST_EARLY_LOSSES => self.early_losses.push(*loss),
            None => self.report.add("losses before the first event left out"),
        }
    }

    /// Writes the losses before the first event, at its time. Time 0 would make the trace as long as the
    /// machine has been running.
    #[cold]
    fn put_early_losses(&mut self, time: i64) {
        let time = u64::try_from(time).unwrap_or(0);
        for loss in std::mem::take(&mut self.early_losses) {
            self.put_loss(&loss, time);
        }
    }

    fn put_loss(&mut self, loss: &Loss, time: u64) {
        let is_thread = |id: &TrackId| {
            matches!(self.tracks.get(*id).map(|t| &t.kind), Some(OutputTrackKind::Thread { .. }))
        };
        let track = loss.track.filter(is_thread).or(self.tracks.any_thread);
        let thread = self.thread_ref(track);
        self.args.clear();
        if loss.events > 0 {
            let Self { args, strings, output, report, .. } = self;
            args.add("lost".into(), Value::U64(loss.events), strings, &mut output.bytes, report);
        }
        let shown = Event {
            name: "events lost".into(),
            categories: Categories::One("hairline".into()),
            ..Event::new(0, TrackId(0), EventKind::Instant)
        };
        self.put_record(fxt::EventKind::Instant, time, thread, &shown, shown.name, None);
    }

    fn foreign(&mut self, what: &'static str, format: TraceFormat, bytes: &[u8]) {
        // Importers refuse a trace with a record that is too large or incomplete.
        let is_good = bytes.len().is_multiple_of(8) && bytes.len() / 8 <= fxt::MAX_RECORD_WORDS;
        if format == TraceFormat::Fxt && is_good {
            self.output.bytes.extend_from_slice(bytes);
        } else {
            self.report.add(what);
        }
    }
}

/// The time of an item that has one.
fn time_of(item: &Item<'_>) -> Option<i64> {
    match item {
        Item::Event(event) => Some(event.time),
        Item::Scheduling(scheduling) => scheduling.changes.first().map(|change| change.time),
        Item::Sample(sample) => Some(sample.time),
        _ => None,
    }
}

impl<W: Write> crate::stream::TraceWriter for FxtWriter<W> {
    fn write(&mut self, item: &Item<'_>) -> io::Result<()> {
        if self.provider == 0 && !matches!(item, Item::Trace(Trace { writer: Some(_), .. })) {
            self.start("hairline");
        }
        if !self.early_losses.is_empty()
            && let Some(time) = time_of(item)
        {
            self.put_early_losses(time);
        }
        match item {
            Item::Trace(trace) => self.trace(trace),
            Item::Track(track) => self.track(track),
            Item::Event(event) => self.event(event),
            Item::Loss(loss) => self.loss(loss),
            Item::Scheduling(scheduling) => self.scheduling(scheduling),
            Item::Sample(sample) => self.sample(sample),
            Item::Heap(_) => self.report.add("call stacks of heap profiles left out"),
            Item::Symbols(symbols) => {
                self.stacks.put_symbols(&mut self.packets, symbols);
                self.put_blob();
            }
            Item::Copied(Copied { format: TraceFormat::Fxt, bytes }) => {
                self.output.bytes.extend_from_slice(bytes);
            }
            Item::Copied(_) => {}
            Item::Foreign { what, format, bytes } => self.foreign(what, *format, bytes),
        }
        self.output.settle()
    }

    fn write_briefs(&mut self, briefs: &[BriefEvent], strings: &Strings) -> io::Result<()> {
        if self.provider == 0 && !briefs.is_empty() {
            self.start("hairline");
        }
        if let Some(first) = briefs.first()
            && !self.early_losses.is_empty()
        {
            self.put_early_losses(first.time);
        }
        for mut of_track in briefs.chunk_by(|one, next| one.track == next.track) {
            while let Some(brief) = of_track.first() {
                let written = self.short_briefs(of_track, strings);
                of_track = &of_track[written..];
                if written == 0 {
                    of_track = &of_track[1..];
                    brief.event(strings).iter().for_each(|event| self.event(event));
                }
                self.output.settle()?;
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.provider == 0 {
            self.start("hairline");
        }
        self.put_early_losses(0); // there is no event
        self.finish_scheduling();
        self.lasting.finish();
        self.write_points(i64::MAX);
        let never_came = self.waiting.drain().map(|(_, flows)| flows.len() as u64).sum();
        self.report.add_many("flows to slices that never came left out", never_came);
        let alone = self.tracks.ends_without_begin() as u64;
        self.report.add_many("ends of intervals without a begin left out", alone);
        let what =
            "slices that a complete slice around them ends last of all, for which importers show no end";
        self.report.add_many(what, self.tracks.closed_around());
        self.output.finish()
    }

    fn report(&self) -> &Report {
        &self.report
    }
}
