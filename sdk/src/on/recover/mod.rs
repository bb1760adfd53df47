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

mod place;
mod prune;

use std::io;
use std::path::{Path, PathBuf};

use hairline_formats::fxt;
use hairline_shm::recover as shm;
use hairline_shm::recover::{DeadRegion, Facts, Life, Part, RegionFile, SessionState};
use hairline_shm::{LOSS_REASONS, LossReason};

use super::process::Thread;
use super::session::stream;
use super::session::tail::Tail;
use crate::options::{Format, Lost};
use crate::recovery::{FoundRegion, ProcessState, RecoverError, RecoverOptions, Recovered};
use place::Place;
pub(crate) use prune::prune;

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
    let facts = region.facts();
    let damaged = |what| RecoverError::NotARegion(format!("{}: {what}", region.path().display()));
    let format =
        Format::from_number(facts.format).ok_or_else(|| damaged("a format that is not known here"))?;
    if !stream::is_head(&facts.prelude, u128::from_le_bytes(facts.session)) {
        return Err(damaged("the stream's head is not that of its trace"));
    }
    let mut place = Place::choose(region, options.to.as_deref(), &mut done.notes)?;
    done.cut = place.cut;
    let written = append(region, format, &mut place, done);
    match written {
        Ok(()) => done.path = Some(place.finish()?),
        Err(e) => {
            place.abandon();
            return Err(e);
        }
    }
    Ok(())
}

/// The fragments and the tail.
fn append(
    region: &DeadRegion,
    format: Format,
    place: &mut Place,
    done: &mut Recovered,
) -> Result<(), RecoverError> {
    let facts = region.facts();
    let part = if place.has_original { Part::NotInOutput } else { Part::All };
    // As in a snapshot; but which flows began in another process died with this one.
    let mut flows = (facts.overwrites() && format == Format::Fxt).then(fxt::FlowStarts::default);
    if let Some(flows) = &mut flows {
        let mut fragments = region.fragments(part)?;
        while let Some(fragment) = fragments.next()? {
            flows.look(fragment.bytes);
        }
    }
    let mut fragments = region.fragments(part)?;
    let mut chunks = 0;
    while let Some(fragment) = fragments.next()? {
        match &mut flows {
            Some(flows) => flows.mend(fragment.bytes, |_| true, |bytes| place.write(bytes))?,
            None => place.write(fragment.bytes)?,
        }
        done.records += u64::from(fragment.records);
        done.bytes += fragment.bytes.len() as u64;
        chunks += 1;
    }
    if fragments.damaged() > 0 {
        done.notes.push(format!("{} chunks were damaged and are left out", fragments.damaged()));
    }
    if !place.has_original && !facts.overwrites() && fragments.headless() > 0 {
        done.notes.push(format!(
            "{} threads' records begin in their middle: what names them was in the old file",
            fragments.headless()
        ));
    }
    if facts.has_tail && place.has_original {
        return Ok(());
    }
    let tail = Tail {
        format,
        pid: facts.pid,
        process_track: facts.process_track,
        // The writer thread's number died with it.
        thread: Thread { tid: facts.pid, name: "main".to_owned() },
        now: facts.last_look,
        lost: done.lost,
        ring: u64::from(facts.chunk_count) * u64::from(facts.chunk_size),
        written: place.len,
        chunks,
        flushes: 0,
    };
    let tail = tail.bytes();
    place.write(&tail)?;
    done.bytes += tail.len() as u64;
    Ok(())
}

fn lost(facts: &Facts) -> Lost {
    let [buffer_full, reentrant, too_large, thread_exit, output, arguments] =
        LOSS_REASONS.map(|reason: LossReason| facts.lost(reason));
    Lost { buffer_full, reentrant, too_large, thread_exit, output, arguments }
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
    let (process_name, output, unreadable) = match facts {
        Ok(facts) => (facts.process_name, facts.output, None),
        Err(e) => (String::new(), None, Some(e.to_string())),
    };
    FoundRegion { path, len, pid, process, process_name, output, unreadable }
}

impl From<shm::RecoverError> for RecoverError {
    fn from(e: shm::RecoverError) -> Self {
        match e {
            shm::RecoverError::Alive { path: region, pid } => Self::Alive { region, pid },
            shm::RecoverError::Unknown { path: region, pid } => Self::MaybeAlive { region, pid },
            shm::RecoverError::Busy { path: region } => Self::Busy { region },
            shm::RecoverError::File { path, source } => Self::Io { path, source },
            other => Self::NotARegion(other.to_string()),
        }
    }
}

/// An error of this file.
fn at(path: &Path) -> impl FnOnce(io::Error) -> RecoverError + use<> {
    let path: PathBuf = path.to_owned();
    move |source| RecoverError::Io { path, source }
}
