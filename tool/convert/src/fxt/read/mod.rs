//! FXT to items.
//!
//! `FxtReader::step` reads each record once. It stores definitions in tables, and prepares the item of an
//! event without borrowing. The item then borrows from the record, which stays in the buffer until the next
//! one. The descriptions of new tracks precede the item ([`tracks`]).
//!
//! | record | item |
//! |---|---|
//! | provider info | the trace's writer |
//! | kernel object of a process or thread | its track, with its name |
//! | event | an event; for a counter with several values, one event for each |
//! | log record | part of the next instant with the same time, otherwise an instant: see [`log`] |
//! | Perfetto blob | the items of its packets: see [`blobs`] |
//! | provider event | a loss |
//! | scheduling | changes of thread states, with a copy of the record: see [`scheduling`] |
//! | backtrace | a stack sample with a copy, or a copy alone: see [`profile`]; modules and mappings: copies |
//! | other objects and blobs | foreign items, with times in nanoseconds: see [`foreign`] |

mod blobs;
mod brief;
mod current;
mod foreign;
mod intervals;
mod log;
mod plain;
mod prepare;
mod prepared;
mod profile;
mod rate;
mod reason;
mod scheduling;
mod state;
mod tables;
mod tracks;

pub use state::FxtReader;

use std::io::Read;

use hairline_formats::fxt::{self, EventKind, Record};
use hairline_formats::{DecodeError, DecodeErrorKind};

use crate::fxt::read::current::Current;
use crate::fxt::read::profile::Profile;
use crate::fxt::read::rate::Rate;
use crate::fxt::read::reason::{DAMAGED, Reason, TIME, TOO_MANY_TRACKS, UNKNOWN_STRING};
use crate::fxt::read::state::Step;
use crate::fxt::read::tables::Tables;
use crate::report::NOT_UTF8;
use crate::{
    BriefEvent, BriefUse, Context, Copied, Detailed, Error, EventDetails, Item, Loss, Report, Sample,
    Scheduling, StateChange, Trace, TraceFormat,
};

const TOO_MANY_PROVIDERS: &str = "providers whose tables were dropped";

impl<R: Read> FxtReader<R> {
    /// Advances to the next record, unless the current one is held. Returns `false` at the end.
    fn advance(&mut self) -> Result<bool, DecodeError> {
        if std::mem::take(&mut self.held) {
            return Ok(true);
        }
        self.given = 0;
        let Some(offset) = self.current.records.advance()? else {
            return Ok(false);
        };
        self.position = offset;
        Ok(true)
    }

    /// Adds what is counted elsewhere, after the last record or the error that ends the trace.
    #[cold]
    fn end(&mut self) {
        let records = &self.current.records;
        self.report.add_zeros(&mut self.zeros, records.zeros());
        self.report.add_many(NOT_UTF8, records.wrong_texts() - self.wrong_texts);
        self.wrong_texts = records.wrong_texts();
        self.blobs.close(&mut self.report);
    }

    /// Reads the next record.
    fn step(&mut self, context: &mut Context) -> Result<Step, DecodeError> {
        self.log.forget_emitted();
        if !self.advance()? {
            return Ok(self.log.take().map_or(Step::End, |(time, track)| Step::Log(time, track)));
        }
        if !self.started {
            self.start()?;
        }
        let step = match self.log.take_unless(self.current.is(EventKind::Instant)) {
            Some((time, track)) => {
                self.held = true;
                Ok(Step::Log(time, track))
            }
            None if self.current.is_event() => self.event(context),
            None => self.other(context),
        };
        Ok(step.unwrap_or_else(|Reason(reason)| {
            self.report.add(reason);
            Step::Lost(1)
        }))
    }

    /// Checks that the trace begins with the magic number.
    fn start(&mut self) -> Result<(), DecodeError> {
        if !matches!(self.current.records.record(), Ok(Record::Magic)) {
            let kind = DecodeErrorKind::Unexpected("the magic number of FXT");
            return Err(DecodeError { offset: self.position, kind });
        }
        self.started = true;
        Ok(())
    }

    /// Reads any record except an event.
    fn other(&mut self, context: &mut Context) -> Result<Step, Reason> {
        let Current { records, tables } = &mut self.current;
        let record = records.record().map_err(|_| DAMAGED)?;
        match record {
            Record::Magic => {}
            Record::ProviderInfo { id, name } => {
                self.report.add_many(TOO_MANY_PROVIDERS, (!tables.new_provider(id)).into());
                name.clone_into(&mut self.provider);
                return Ok(Step::Provider);
            }
            Record::ProviderSection { id } => {
                self.report.add_many(TOO_MANY_PROVIDERS, (!tables.section(id)).into());
            }
            // The record has neither a thread nor a time.
            Record::ProviderEvent { event: fxt::PROVIDER_EVENT_BUFFER_FULL, .. } => {
                return Ok(Step::Lost(0));
            }
            Record::ProviderEvent { .. } => self.report.add("provider events of unknown kinds left out"),
            Record::Initialization { ticks_per_second } => match Rate::new(ticks_per_second) {
                Some(rate) => tables.set_rate(rate),
                None => self.report.add("clocks without a rate left out"),
            },
            Record::String { index, value } => {
                self.report.add_many(NOT_UTF8, std::str::from_utf8(value).is_err().into());
                if index != 0 && !tables.set_string(index, value, &mut context.strings) {
                    self.report.add("strings beyond 16 MiB left out");
                }
            }
            Record::Thread { index, process, thread } => {
                if index != 0 {
                    tables.set_thread(index, process, thread);
                }
            }
            Record::KernelObject { object_type, koid, name, args }
                if [fxt::KERNEL_OBJECT_PROCESS, fxt::KERNEL_OBJECT_THREAD].contains(&object_type) =>
            {
                let name = tables.string(name).ok_or(UNKNOWN_STRING)?;
                let process = prepare::process_of(args, tables).unwrap_or(0);
                let slot = match object_type {
                    fxt::KERNEL_OBJECT_PROCESS => self.tracks.process(koid, context),
                    _ => self.tracks.thread(process, koid, context),
                };
                self.tracks.set_name(slot.ok_or(TOO_MANY_TRACKS)?, name);
            }
            Record::Log { timestamp, thread, message } => {
                self.report.add_many(NOT_UTF8, std::str::from_utf8(message).is_err().into());
                let time = tables.rate().ns(timestamp).ok_or(TIME)?;
                let slot = prepare::thread_slot(tables, &mut self.tracks, thread, context)?;
                self.log.set(time, self.tracks.id(slot), message);
            }
            Record::Blob { kind: fxt::BLOB_PERFETTO, bytes, .. } => {
                if !self.blobs.push(bytes) {
                    self.report.add("Perfetto blobs that hold no packets left out");
                }
            }
            record => {
                let state = (&mut self.changes, &mut self.profile);
                return copied(&mut self.own, state, &mut self.report, &record, tables);
            }
        }
        Ok(Step::Nothing)
    }
}

/// Reads a record that a writer of FXT copies.
fn copied(
    own: &mut Vec<u8>,
    (changes, profile): (&mut Vec<StateChange>, &mut Profile),
    report: &mut Report,
    record: &Record<'_>,
    tables: &Tables,
) -> Result<Step, Reason> {
    let Some(what) = foreign::put(own, record, tables)? else {
        report.add("records of unknown kinds left out");
        return Ok(Step::Nothing);
    };
    if scheduling::put(changes, record, tables)? {
        return Ok(Step::Scheduling);
    }
    match record {
        Record::Module(module) => profile.module(module, tables)?,
        Record::Mmap(mmap) => profile.mmap(mmap, tables)?,
        Record::Backtrace(backtrace) => {
            profile.backtrace(backtrace, tables)?;
            return Ok(if profile.is_repeated() { Step::Copied } else { Step::Sample });
        }
        _ => return Ok(Step::Foreign(what)),
    }
    Ok(Step::Copied)
}

fn copy(bytes: &[u8]) -> Copied<'_> {
    Copied { format: TraceFormat::Fxt, bytes }
}

impl<R: Read> crate::stream::TraceReader for FxtReader<R> {
    fn next<'s>(&'s mut self, context: &'s mut Context) -> Result<Option<Item<'s>>, Error> {
        loop {
            if let Some(slot) = self.tracks.undescribed() {
                return Ok(Some(Item::Track(self.tracks.track(slot))));
            }
            if self.blobs.has_packets() {
                let item = self.blobs.next(&mut self.tracks, context, &mut self.report);
                if let Item::Sample(sample) = &item {
                    self.profile.came_in_packets(sample);
                }
                return Ok(Some(item));
            }
            if let Some(plain) = self.plain() {
                return Ok(Some(Item::Event(plain.event(&self.current))));
            }
            let step = match self.ready.take() {
                Some(step) => step,
                None => match self.step(context) {
                    Ok(step) => step,
                    Err(e) => {
                        self.end();
                        return Err(e.into());
                    }
                },
            };
            if self.tracks.has_undescribed() {
                self.ready = Some(step);
                continue;
            }
            return Ok(Some(match step {
                Step::Nothing => continue,
                Step::End => {
                    self.end();
                    return Ok(None);
                }
                Step::Event => {
                    return Ok(Some(Item::Event(self.prepared.event(&self.current, self))));
                }
                Step::Log(time, track) => Item::Event(self.log.event(time, track)),
                Step::Foreign(what) => Item::Foreign { what, format: TraceFormat::Fxt, bytes: &self.own },
                Step::Scheduling => {
                    let copy = Some(copy(&self.own));
                    Item::Scheduling(Scheduling { changes: &self.changes, copy, others: 0 })
                }
                Step::Sample => Item::Sample(Sample { copy: Some(copy(&self.own)), ..self.profile.sample() }),
                Step::Copied => Item::Copied(copy(&self.own)),
                Step::Provider => Item::Trace(Trace { writer: Some(&self.provider), ..Trace::default() }),
                Step::Lost(events) => Item::Loss(Loss { events, ..Loss::default() }),
            }));
        }
    }

    fn briefs(&mut self, wanted: BriefUse, _: &mut Context, briefs: &mut Vec<BriefEvent>) {
        briefs.clear();
        self.read_briefs(wanted, briefs);
    }

    fn report(&self) -> &Report {
        &self.report
    }

    fn position(&self) -> u64 {
        self.position
    }
}

/// The details of an instant with a log message.
impl<R: Read> Detailed for FxtReader<R> {
    fn details(&self) -> EventDetails<'_> {
        EventDetails { log: Some(self.log.log(&self.current)), ..EventDetails::default() }
    }
}
