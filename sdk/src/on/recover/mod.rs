//! Completes the trace of a dead process: [`crate::recovery`].
//!
//! ```text
//! output   [head .... complete ....][half written]     <- truncated to the length that the region names
//! region                            [fragments....]    <- appended, by sequence
//!                                                  [tail]
//! ```
//!
//! The region is removed only when the trace is on the disk, and recovery does not change the region. So a
//! recovery that is killed at any point can be repeated with the same result.

mod output;
mod samples;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use hairline_formats::fxt;
use hairline_formats::track_event::TrackUuid;
use hairline_perf::Named;
use hairline_shm::recover as shm;
use hairline_shm::recover::{DeadRegion, Facts, Fragment, Glance, Life, Part, RegionFile, SessionState};
use hairline_shm::{LOSS_REASONS, LossReason, tape_entries};

use crate::on::base::platform::process::Thread;
use crate::on::encode::tail::{BeforeTail, Tail};
use crate::on::encode::{HEAP_TAPE, SAMPLES_TAPE, STATES_TAPE, kept_states, stream};
use crate::on::recover::output::Output;
use crate::options::Format;
use crate::recovery::report::{FoundRegion, ProcessState, RecoverError, RecoverOptions, Recovered};
use crate::summary::Lost;

/// Completes the trace of the dead process whose region is at `path`, and removes the region.
pub(crate) fn recover(path: &Path, options: &RecoverOptions) -> Result<Recovered, RecoverError> {
    let region = RegionFile::open(path)?.lock(options.assume_dead)?;
    let facts = region.facts();
    let mut report = report_of(facts);
    match facts.state {
        SessionState::Active => write(&region, options, &mut report)?,
        SessionState::Closed => report.notes.push("the session had ended: its trace is whole".to_owned()),
        _ => report.notes.push("the session had not begun: nothing was recorded".to_owned()),
    }
    if !options.keep_region {
        region.remove()?;
    }
    Ok(report)
}

/// Writes the trace of a session that had not ended.
fn write(region: &DeadRegion, options: &RecoverOptions, report: &mut Recovered) -> Result<(), RecoverError> {
    let format = format_of(region.facts(), region.path())?;
    let mut output = Output::choose(region, options.to.as_deref(), &mut report.notes)?;
    if region.facts().has_tail && !output.has_original {
        output.abandon();
        report.notes.push("the session had ended, and its trace was complete".to_owned());
        return Ok(());
    }
    report.cut = output.cut;
    let part = if output.has_original { Part::NotInOutput } else { Part::All };
    let written = append(&Source::Dead(region, part), format, &mut output, report);
    end(region.facts(), output, written, report)
}

/// Copies the trace of a running process to `to`.
pub(crate) fn snapshot(path: &Path, to: &Path) -> Result<Recovered, RecoverError> {
    let (glance, format, mut output, notes) = glance_beside_output(path, to)?;
    let facts = glance.facts();
    let mut report = Recovered { notes, ..report_of(facts) };
    if facts.overwrites() && glance.missed() > 0 {
        let note = format!("of {} threads the newest was overwritten while it was read", glance.missed());
        report.notes.push(note);
    }
    if facts.overwrites() && glance.has_gone_round() {
        let note = "the whole ring was overwritten while it was read: threads may be missing";
        report.notes.push(note.to_owned());
    }
    let written = append(&Source::Alive(&glance), format, &mut output, &mut report);
    end(facts, output, written, &mut report)?;
    Ok(report)
}

/// Reads the region and begins the copy of its output, both at one moment. They are read again if the session
/// has rotated its output in between.
fn glance_beside_output(
    path: &Path,
    to: &Path,
) -> Result<(Glance, Format, Output, Vec<String>), RecoverError> {
    const TRIES: u32 = 8;
    let mut tries = 0;
    loop {
        let glance = RegionFile::open(path)?.glance()?;
        let facts = glance.facts();
        let (format, mut notes) = (format_of(facts, path)?, Vec::new());
        let output = Output::copy_of(facts, to, &mut notes)?;
        tries += 1;
        // A region that was removed meanwhile has no newer output.
        let is_same =
            || RegionFile::open(path).map_or(true, |now| now.facts().output_inode == facts.output_inode);
        if facts.overwrites() || output.has_original || tries == TRIES || is_same() {
            return Ok((glance, format, output, notes));
        }
        output.abandon();
    }
}

/// Checks the region's format and stream head. Returns the format.
fn format_of(facts: &Facts, region: &Path) -> Result<Format, RecoverError> {
    let damaged = |problem| RecoverError::NotARegion(format!("{}: {problem}", region.display()).into());
    let format = Format::from_number(facts.format)
        .ok_or_else(|| damaged("unknown trace format; use a newer version of hairline"))?;
    if !stream::is_head(&facts.prelude, u128::from_le_bytes(facts.session)) {
        return Err(damaged("the stream's head is not that of its trace"));
    }
    Ok(format)
}

/// Finishes the output, or abandons it if not everything was written.
fn end(
    facts: &Facts,
    output: Output,
    written: Result<(), RecoverError>,
    report: &mut Recovered,
) -> Result<(), RecoverError> {
    if let Err(e) = written {
        output.abandon();
        return Err(e);
    }
    report.path = Some(output.finish(facts)?);
    Ok(())
}

/// The source of the fragments.
enum Source<'r> {
    /// The region of a dead process, and the part of it to be read.
    Dead(&'r DeadRegion, Part),
    /// A copy of the region of a running process.
    Alive(&'r Glance),
}

/// The fragments that can be read without the output that the session has written.
///
/// The first chunk of a sequence tells the strings and the tracks that the later ones refer to. If it was
/// written to an output that is gone, nobody can read what is left of the sequence.
struct Readable {
    /// Whether the output has what is missing, or each chunk has it.
    is_all: bool,
    /// The present sequence, and whether its first chunk is there.
    sequence: Option<(u32, bool)>,
    /// The sequences that cannot be read, and their records.
    unreadable: (u32, u64),
}

impl Readable {
    fn new(facts: &Facts, output: &Output) -> Self {
        let is_all = output.has_original || facts.overwrites();
        Self { is_all, sequence: None, unreadable: (0, 0) }
    }

    /// Whether the fragment can be read.
    fn has(&mut self, fragment: &Fragment<'_>) -> bool {
        let (is_readable, is_new) = match self.sequence {
            Some((sequence, is_readable)) if sequence == fragment.sequence => (is_readable, false),
            _ => (self.is_all || fragment.index == 0, true),
        };
        self.sequence = Some((fragment.sequence, is_readable));
        if !is_readable {
            self.unreadable.0 += u32::from(is_new);
            self.unreadable.1 += u64::from(fragment.records);
        }
        is_readable
    }
}

impl Source<'_> {
    fn facts(&self) -> &Facts {
        match self {
            Self::Dead(region, _) => region.facts(),
            Self::Alive(glance) => glance.facts(),
        }
    }

    /// Returns the entries of a tape.
    fn tape(&self, number: usize) -> Result<Cow<'_, [u8]>, RecoverError> {
        Ok(match self {
            Self::Dead(region, _) => region.tape(number)?.into(),
            Self::Alive(glance) => glance.tape(number).into(),
        })
    }

    /// Calls `visit` with each fragment, in the order of the output. Returns the number of damaged chunks.
    fn each(
        &self,
        mut visit: impl FnMut(&Fragment<'_>) -> Result<(), RecoverError>,
    ) -> Result<u32, RecoverError> {
        match self {
            Self::Dead(region, part) => {
                let mut fragments = region.fragments(*part)?;
                while let Some(fragment) = fragments.next()? {
                    visit(&fragment)?;
                }
                Ok(fragments.damaged())
            }
            Self::Alive(glance) => glance.each(visit).map(|()| 0),
        }
    }
}

/// Appends the fragments and the tail to the output.
fn append(
    source: &Source<'_>,
    format: Format,
    output: &mut Output,
    report: &mut Recovered,
) -> Result<(), RecoverError> {
    let threads = threads(source)?;
    let states = kept_states::read(tape_entries(&source.tape(STATES_TAPE)?));
    let mut put = |bytes: &[u8]| output.write(bytes);
    // As in a snapshot: a thread that has recorded has a better name in its chunks.
    let names: Vec<Named> =
        states.names.into_iter().filter(|named| !threads.contains(&named.task.tid)).collect();
    report.bytes += stream::put_state_names(format, &names, &states.changes, &mut put)?;
    let chunks = append_fragments(source, format, output, report)?;
    report.bytes += stream::put_states(format, &states.changes, &mut |bytes| output.write(bytes))?;
    if !output.has_original && report.records == 0 && source.facts().output_bytes > 0 {
        return Err(unreadable(source.facts(), report));
    }
    if !source.facts().has_tail || !output.has_original {
        append_samples(source, &threads, output, report)?;
        append_tail(source.facts(), format, chunks, output, report)?;
    }
    // It is whole, but no session has ended it: a later run does not replace it.
    let end = stream::session_end(format, 0, source.facts().last_look);
    report.bytes += end.len() as u64;
    output.write(&end)
}

/// Returns the threads of the fragments.
fn threads(source: &Source<'_>) -> Result<HashSet<u32>, RecoverError> {
    let mut threads = HashSet::new();
    source.each(|fragment| {
        threads.insert(fragment.tid);
        Ok(())
    })?;
    Ok(threads)
}

/// Appends what the session has kept of its samples and of its heap profile.
fn append_samples(
    source: &Source<'_>,
    threads: &HashSet<u32>,
    output: &mut Output,
    report: &mut Recovered,
) -> Result<(), RecoverError> {
    // The chunks that a flight recorder has overwritten had names too, and are gone.
    let is_whole = !source.facts().overwrites();
    let samples = samples::part(&source.tape(SAMPLES_TAPE)?, &|tid| threads.contains(&tid), is_whole);
    for part in [samples, samples::heap_profile(&source.tape(HEAP_TAPE)?, output.has_original)] {
        match part {
            Ok(part) => {
                report.bytes += part.len() as u64;
                output.write(&part)?;
            }
            Err(why) => report.notes.push(why.to_owned()),
        }
    }
    Ok(())
}

/// The error where nothing of a trace can be read: the session has written the rest to an output that is
/// gone.
fn unreadable(facts: &Facts, report: &Recovered) -> RecoverError {
    RecoverError::Unreadable { output: facts.output.clone(), records: report.lost.output }
}

/// Appends the fragments that can be read, and counts the others as lost. Returns the number of fragments.
fn append_fragments(
    source: &Source<'_>,
    format: Format,
    output: &mut Output,
    report: &mut Recovered,
) -> Result<u64, RecoverError> {
    let mut chunks = 0;
    let mut readable = Readable::new(source.facts(), output);
    let mut take = |fragment: &Fragment<'_>| {
        let is_readable = readable.has(fragment);
        if is_readable {
            report.records += u64::from(fragment.records);
            report.bytes += fragment.bytes.len() as u64;
            chunks += 1;
        }
        is_readable
    };
    let damaged = match lost_flow_begins(source, format, output)? {
        None => source.each(|fragment| if take(fragment) { output.write(fragment.bytes) } else { Ok(()) })?,
        Some((mut flows, begun)) => source.each(|fragment| match take(fragment) {
            true => flows.mend(fragment.bytes, |id| !begun.contains(&id), |bytes| output.write(bytes)),
            false => Ok(()),
        })?,
    };
    if damaged > 0 {
        report.notes.push(format!("{damaged} chunks were damaged and are left out"));
    }
    let (sequences, records) = readable.unreadable;
    if sequences > 0 {
        report.lost.output = report.lost.output.saturating_add(records);
        report.notes.push(format!(
            "{records} records of {sequences} threads begin in their middle and are left out: their strings and \
             tracks were in the lost output"
        ));
    }
    Ok(chunks)
}

/// Finds the flows whose begin may be in no file that is left, as in a snapshot: `FlowStarts` replaces the
/// first step of such a flow by a begin. Returns the flows of the fragments, and the ids of those that begin
/// in the output. `None` if all begins are in the trace, or the format needs none.
///
/// Flows that began in another process are mended too: only the process that recorded them can tell them
/// apart.
fn lost_flow_begins(
    source: &Source<'_>,
    format: Format,
    output: &mut Output,
) -> Result<Option<(fxt::FlowStarts, HashSet<u64>)>, RecoverError> {
    let facts = source.facts();
    let is_part = facts.overwrites() || facts.next_output.is_some() || facts.output_inode.is_some();
    if !is_part || format != Format::Fxt {
        return Ok(None);
    }
    let begun = output.flows_begun()?;
    let mut flows = fxt::FlowStarts::default();
    source.each(|fragment| {
        flows.look(fragment.bytes);
        Ok(())
    })?;
    Ok(Some((flows, begun)))
}

/// Appends the tail of the stream.
fn append_tail(
    facts: &Facts,
    format: Format,
    chunks: u64,
    output: &mut Output,
    report: &mut Recovered,
) -> Result<(), RecoverError> {
    let tail = Tail {
        pid: facts.pid,
        process_track: TrackUuid(facts.process_track),
        // The region does not name the drain thread, which writes the tail of a session that ends.
        thread: Thread { pid: facts.pid, tid: facts.pid, name: "main".into() },
        now: facts.last_look,
        lost: report.lost,
        ring: u64::from(facts.chunk_count) * u64::from(facts.chunk_size),
        before: BeforeTail { bytes: output.len, chunks, flushes: 0 },
        refused: Vec::new(), // the region does not tell
    };
    let tail = stream::tail(format, &tail);
    output.write(&tail)?;
    report.bytes += tail.len() as u64;
    Ok(())
}

/// Creates a report with the facts of the region.
fn report_of(facts: &Facts) -> Recovered {
    Recovered {
        pid: facts.pid,
        process_name: facts.process_name.clone(),
        lost: lost(facts),
        ..Recovered::default()
    }
}

fn lost(facts: &Facts) -> Lost {
    let [buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged, kernel_ring] =
        LOSS_REASONS.map(|reason: LossReason| facts.lost(reason));
    Lost { buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged, kernel_ring }
}

/// Finds the regions in `/dev/shm`.
pub(crate) fn find() -> Result<Vec<FoundRegion>, RecoverError> {
    Ok(shm::find()?.into_iter().map(found).collect())
}

/// Returns the other user who has a region of this process.
pub(crate) fn other_user_of(pid: u32) -> Option<u32> {
    shm::other_user_of(pid)
}

fn found(found: shm::Found) -> FoundRegion {
    let shm::Found { path, len, pid, life, facts } = found;
    let process = match life {
        Life::Alive => ProcessState::Alive,
        Life::Dead => ProcessState::Dead,
        Life::Unknown => ProcessState::Unknown,
    };
    let overwrites = facts.as_ref().is_ok_and(Facts::overwrites);
    let (process_name, format, output, unreadable) = match facts {
        Ok(facts) => (facts.process_name, Format::from_number(facts.format), facts.output, None),
        Err(e) => (String::new(), None, None, Some(e.to_string())),
    };
    FoundRegion { path, len, pid, process, process_name, format, output, overwrites, unreadable }
}

impl From<shm::RecoverError> for RecoverError {
    fn from(e: shm::RecoverError) -> Self {
        match e {
            shm::RecoverError::Alive { path: region, pid } => Self::Alive { region, pid },
            shm::RecoverError::Unknown { path: region, pid } => Self::MaybeAlive { region, pid },
            shm::RecoverError::Busy { path: region } => Self::Busy { region },
            shm::RecoverError::Changing { path: region, pid } => Self::Changing { region, pid },
            shm::RecoverError::File { path, source } => Self::Io { path, source },
            other => Self::NotARegion(Box::new(other)),
        }
    }
}
