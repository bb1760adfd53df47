//! Makes a whole trace of what a dead process left: [`crate::recovery`].
//!
//! ```text
//! the output's file  [head ........ whole ........][half written]      <- cut to what the region says is whole
//! the region                                       [fragments....]     <- appended, by sequence
//!                                                                [tail]
//! ```
//!
//! The region is removed only when the trace is on the disk, and nothing that it says changes: killed anywhere, the same run
//! again does the same.

mod failure;
mod place;
mod prune;

use std::collections::HashSet;
use std::path::Path;

use hairline_formats::fxt;
use hairline_shm::recover as shm;
use hairline_shm::recover::{DeadRegion, Facts, Fragment, Glance, Life, Part, RegionFile, SessionState};
use hairline_shm::{LOSS_REASONS, LossReason};

use crate::on::base::platform::process::Thread;
use crate::on::encode::stream;
use crate::on::encode::tail::Tail;
use crate::on::recover::place::Place;
pub(crate) use crate::on::recover::prune::Pruning;
use crate::options::Format;
use crate::recovery::report::{FoundRegion, ProcessState, RecoverError, RecoverOptions, Recovered};
use crate::summary::Lost;

pub(crate) fn recover(path: &Path, options: &RecoverOptions) -> Result<Recovered, RecoverError> {
    let region = RegionFile::open(path)?.lock(options.assume_dead)?;
    let facts = region.facts();
    let mut done = Recovered {
        pid: facts.pid,
        process_name: facts.process_name.clone(),
        lost: lost(facts),
        ..Recovered::default()
    };
    match facts.state {
        SessionState::Active => write(&region, options, &mut done)?,
        SessionState::Closed => done.notes.push("the session had ended: its trace is whole".to_owned()),
        _ => done.notes.push("the session had not begun: nothing was recorded".to_owned()),
    }
    if !options.keep_region {
        region.remove()?;
    }
    Ok(done)
}

fn write(region: &DeadRegion, options: &RecoverOptions, done: &mut Recovered) -> Result<(), RecoverError> {
    let format = format_of(region.facts(), region.path())?;
    let mut place = Place::choose(region, options.to.as_deref(), &mut done.notes)?;
    done.cut = place.cut;
    let part = if place.has_original { Part::NotInOutput } else { Part::All };
    let written = append(&Held::Dead(region, part), format, &mut place, done);
    end(region.facts(), place, written, done)
}

/// Copies the trace of a process that goes on.
pub(crate) fn snapshot(path: &Path, to: &Path) -> Result<Recovered, RecoverError> {
    let (glance, format, mut place, notes) = glance_beside_output(path, to)?;
    let facts = glance.facts();
    let mut done = Recovered {
        pid: facts.pid,
        process_name: facts.process_name.clone(),
        lost: lost(facts),
        notes,
        ..Recovered::default()
    };
    if !facts.overwrites() && !place.has_original {
        done.notes.push(
            "what the session has written is nowhere to be read: only what is still in the ring is here"
                .to_owned(),
        );
    }
    if facts.overwrites() && glance.missed() > 0 {
        let note = format!("of {} threads the newest was overwritten while it was read", glance.missed());
        done.notes.push(note);
    }
    let written = append(&Held::Alive(&glance), format, &mut place, &mut done);
    end(facts, place, written, &mut done)?;
    Ok(done)
}

/// The region, and the copy of its output to which it is to be added: of one moment, also where the output goes on in another file now
/// and then.
fn glance_beside_output(
    path: &Path,
    to: &Path,
) -> Result<(Glance, Format, Place, Vec<String>), RecoverError> {
    const TRIES: u32 = 8;
    let mut tries = 0;
    loop {
        let glance = RegionFile::open(path)?.glance()?;
        let facts = glance.facts();
        let (format, mut notes) = (format_of(facts, path)?, Vec::new());
        let place = Place::copy_of(facts, to, &mut notes)?;
        tries += 1;
        // A region that has gone meanwhile has no other output.
        let is_same =
            || RegionFile::open(path).map_or(true, |now| now.facts().output_inode == facts.output_inode);
        if facts.overwrites() || place.has_original || tries == TRIES || is_same() {
            return Ok((glance, format, place, notes));
        }
        place.abandon();
    }
}

fn format_of(facts: &Facts, region: &Path) -> Result<Format, RecoverError> {
    let damaged = |what| RecoverError::NotARegion(format!("{}: {what}", region.display()).into());
    let format =
        Format::from_number(facts.format).ok_or_else(|| damaged("a format that is not known here"))?;
    if !stream::is_head(&facts.prelude, u128::from_le_bytes(facts.session)) {
        return Err(damaged("the stream's head is not that of its trace"));
    }
    Ok(format)
}

fn end(
    facts: &Facts,
    place: Place,
    written: Result<(), RecoverError>,
    done: &mut Recovered,
) -> Result<(), RecoverError> {
    match written {
        Ok(()) => done.path = Some(place.finish(&facts.prelude)?),
        Err(e) => {
            place.abandon();
            return Err(e);
        }
    }
    Ok(())
}

/// What holds the fragments.
enum Held<'r> {
    Dead(&'r DeadRegion, Part),
    Alive(&'r Glance),
}

/// What is not among them.
#[derive(Default)]
struct Missing {
    damaged: u32,
    headless: u32,
}

impl Held<'_> {
    fn facts(&self) -> &Facts {
        match self {
            Self::Dead(region, _) => region.facts(),
            Self::Alive(glance) => glance.facts(),
        }
    }

    fn each(
        &self,
        mut visit: impl FnMut(&Fragment<'_>) -> Result<(), RecoverError>,
    ) -> Result<Missing, RecoverError> {
        match self {
            Self::Dead(region, part) => {
                let mut fragments = region.fragments(*part)?;
                while let Some(fragment) = fragments.next()? {
                    visit(&fragment)?;
                }
                Ok(Missing { damaged: fragments.damaged(), headless: fragments.headless() })
            }
            Self::Alive(glance) => glance.each(visit).map(|()| Missing::default()),
        }
    }
}

/// The fragments and the tail.
fn append(
    held: &Held<'_>,
    format: Format,
    place: &mut Place,
    done: &mut Recovered,
) -> Result<(), RecoverError> {
    let facts = held.facts();
    // Where the begin of a flow may be in no file that is left: as in a snapshot; but which began in another process only the process
    // knows.
    let is_part = facts.overwrites() || facts.next_output.is_some() || facts.output_inode.is_some();
    let mut flows = (is_part && format == Format::Fxt).then(fxt::FlowStarts::default);
    let begun = if flows.is_some() { place.flows_begun()? } else { HashSet::new() };
    if let Some(flows) = &mut flows {
        held.each(|fragment| {
            flows.look(fragment.bytes);
            Ok(())
        })?;
    }
    let mut chunks = 0;
    let missing = held.each(|fragment| {
        match &mut flows {
            Some(flows) => {
                flows.mend(fragment.bytes, |id| !begun.contains(&id), |bytes| place.write(bytes))?;
            }
            None => place.write(fragment.bytes)?,
        }
        done.records += u64::from(fragment.records);
        done.bytes += fragment.bytes.len() as u64;
        chunks += 1;
        Ok(())
    })?;
    if missing.damaged > 0 {
        done.notes.push(format!("{} chunks were damaged and are left out", missing.damaged));
    }
    if !place.has_original && !facts.overwrites() && missing.headless > 0 {
        done.notes.push(format!(
            "{} threads' records begin in their middle: what names them was in the old file",
            missing.headless
        ));
    }
    if facts.has_tail && place.has_original {
        return Ok(());
    }
    let tail = Tail {
        pid: facts.pid,
        process_track: facts.process_track,
        // Which thread writes is not to be known from here.
        thread: Thread { tid: facts.pid, name: "main".into() },
        now: facts.last_look,
        lost: done.lost,
        ring: u64::from(facts.chunk_count) * u64::from(facts.chunk_size),
        written: place.len,
        chunks,
        flushes: 0,
    };
    let tail = stream::tail(format, &tail);
    place.write(&tail)?;
    done.bytes += tail.len() as u64;
    Ok(())
}

fn lost(facts: &Facts) -> Lost {
    let [buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged] =
        LOSS_REASONS.map(|reason: LossReason| facts.lost(reason));
    Lost { buffer_full, reentrant, too_large, thread_exit, output, arguments, damaged }
}

pub(crate) fn find() -> Result<Vec<FoundRegion>, RecoverError> {
    Ok(shm::find()?.into_iter().map(found).collect())
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
