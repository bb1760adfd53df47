//! Where the whole trace goes: the original file, or another.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use hairline_formats::fxt;
use hairline_shm::recover::{DeadRegion, Facts, NextOutput};

use crate::on::base::files;
use crate::on::base::files::unfinished::Unfinished;
use crate::on::base::files::{RecoveryClaim, unfinished};
use crate::on::recover::failure::at;
use crate::recovery::report::RecoverError;

/// Bytes that are compared or copied at a time.
const PIECE: usize = 1 << 16;

/// How long a recovery waits for whoever has locked the very trace that it is to complete. A session that
/// makes its output anew cuts the file as soon as it has the lock.
const PATIENCE: Duration = Duration::from_secs(1);

/// Names beside an output that are tried, the last of them `OUTPUT.recovered-PID-99`.
const MOST_NAMES: u32 = 100;

/// A file that becomes the whole trace.
#[derive(Debug)]
pub(crate) struct Place {
    /// Written through a buffer, since fragments may be small.
    file: io::BufWriter<File>,
    /// The trace's name: with `anew`, the first one that it may get.
    path: PathBuf,
    /// Where it is a new file.
    anew: Option<(Unfinished, Names)>,
    /// Bytes of the original that are whole.
    whole: u64,
    /// Bytes so far.
    pub(crate) len: u64,
    /// Whether what was written before the kill is in it.
    pub(crate) has_original: bool,
    /// Bytes of the original that were not whole.
    pub(crate) cut: u64,
    /// No session makes the original anew before all this is done.
    _claim: Option<RecoveryClaim>,
}

/// The names that a new file may take.
#[derive(Debug)]
enum Names {
    /// The one that the user gave, whatever file has it.
    Given,
    /// The first of these that nothing has, or an earlier recovery of the same trace, which was killed.
    Free(Vec<PathBuf>),
}

/// What the session's output is needed for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// It is completed.
    Repair,
    /// It is copied; the session is dead.
    Copy,
    /// It is copied; the session has it locked.
    CopyOfLiving,
}

/// The session's output, if it is still there.
struct Original {
    file: File,
    path: PathBuf,
    whole: u64,
    len: u64,
    claim: Option<RecoveryClaim>,
}

impl Place {
    pub(crate) fn choose(
        region: &DeadRegion,
        to: Option<&Path>,
        notes: &mut Vec<String>,
    ) -> Result<Self, RecoverError> {
        let facts = region.facts();
        remove_left_over(facts);
        let need = if to.is_none() { Need::Repair } else { Need::Copy };
        let original = Original::find(facts, need, notes)?;
        match (original, to) {
            (Some(original), None) => original.repair(),
            (original, Some(to)) => Self::anew(facts, original, to.to_owned(), Names::Given),
            (None, None) => {
                let names = names(region)?;
                let first = names.first().cloned().unwrap_or_default();
                Self::anew(facts, None, first, Names::Free(names))
            }
        }
    }

    /// A copy, of a trace that goes on.
    pub(crate) fn copy_of(facts: &Facts, to: &Path, notes: &mut Vec<String>) -> Result<Self, RecoverError> {
        let original = Original::find(facts, Need::CopyOfLiving, notes)?;
        Self::anew(facts, original, to.to_owned(), Names::Given)
    }

    /// A new file: with what is whole of the original, else with the stream's head.
    fn anew(
        facts: &Facts,
        mut original: Option<Original>,
        path: PathBuf,
        names: Names,
    ) -> Result<Self, RecoverError> {
        let unfinished = match names {
            Names::Given => {
                if let Ok(there) = fs::metadata(&path) {
                    is_replaceable(&there, original.as_ref()).map_err(at(&path))?;
                }
                Unfinished::beside(&path)
            }
            // By the output's name, so that another recovery finds it if this one is killed.
            Names::Free(_) => Unfinished::beside_any(facts.output.as_ref().unwrap_or(&path)),
        };
        let unfinished = unfinished.map_err(at(&path))?;
        let file = unfinished.file().try_clone().map_err(at(&path))?;
        let mut place = Self {
            file: io::BufWriter::with_capacity(PIECE, file),
            path,
            anew: Some((unfinished, names)),
            whole: 0,
            len: 0,
            has_original: original.is_some(),
            cut: original.as_ref().map_or(0, |o| o.len - o.whole),
            _claim: original.as_mut().and_then(|o| o.claim.take()),
        };
        let begun = match original {
            Some(original) => place.copy(&original),
            None => place.write(&facts.prelude),
        };
        match begun {
            Ok(()) => Ok(place),
            Err(e) => {
                place.abandon();
                Err(e)
            }
        }
    }

    fn copy(&mut self, original: &Original) -> Result<(), RecoverError> {
        let mut piece = vec![0; PIECE];
        let mut offset = 0;
        while offset < original.whole {
            let n = usize::try_from(original.whole - offset).map_or(PIECE, |rest| rest.min(PIECE));
            original.file.read_exact_at(&mut piece[..n], offset).map_err(at(&original.path))?;
            self.write(&piece[..n])?;
            offset += n as u64;
        }
        Ok(())
    }

    /// The flows that begin in what there is so far, of FXT.
    pub(crate) fn flows_begun(&mut self) -> Result<HashSet<u64>, RecoverError> {
        self.file.flush().map_err(at(&self.path))?;
        let so_far = FromStart { file: self.file.get_ref(), offset: 0 }.take(self.len);
        let mut reader = fxt::RecordReader::new(io::BufReader::with_capacity(PIECE, so_far));
        let mut begun = HashSet::new();
        // What cannot be read goes on as it is.
        while let Ok(Some((_, record))) = reader.next() {
            if let fxt::Record::Event(event) = record
                && event.kind == fxt::EventKind::FlowBegin
            {
                begun.extend(event.payload);
            }
        }
        Ok(begun)
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), RecoverError> {
        self.len += bytes.len() as u64;
        self.file.write_all(bytes).map_err(at(&self.path))
    }

    /// Everything is on the disk, under its name. Which that is.
    pub(crate) fn finish(mut self, prelude: &[u8]) -> Result<PathBuf, RecoverError> {
        if let Err(e) = self.file.flush().and_then(|()| self.file.get_ref().sync_all()) {
            let e = at(&self.path)(e);
            self.abandon();
            return Err(e);
        }
        let path = match self.anew {
            None => self.path,
            Some((unfinished, Names::Given)) => {
                unfinished.replace(&self.path).map_err(at(&self.path))?;
                self.path
            }
            Some((unfinished, Names::Free(names))) => {
                take_first(unfinished, names, prelude).map_err(at(&self.path))?
            }
        };
        // The name too; a directory that cannot be opened is no reason to fail.
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(libc::O_DIRECTORY);
        if let Some(Ok(directory)) = path.parent().map(|parent| options.open(parent)) {
            let _ = directory.sync_all();
        }
        Ok(path)
    }

    /// Takes back what was written, as far as that goes. A new file goes with this value.
    pub(crate) fn abandon(self) {
        let (file, _) = self.file.into_parts();
        if self.anew.is_none() {
            let _ = file.set_len(self.whole);
        }
    }
}

/// A file, read from its start whatever its own position is.
struct FromStart<'f> {
    file: &'f File,
    offset: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let n = self.file.read_at(bytes, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

impl Original {
    /// The file at the output's path, if it is this trace: regular, not shorter than what is whole, and with the head
    /// of this stream. Nobody else writes to it from here on: it is locked as the session's own output was.
    fn find(facts: &Facts, need: Need, notes: &mut Vec<String>) -> Result<Option<Self>, RecoverError> {
        let (Some(path), Some(whole)) = (&facts.output, facts.output_len) else { return Ok(None) };
        let began = Instant::now();
        // Nonblocking: a FIFO at this place must not keep us.
        let mut options = OpenOptions::new();
        options.read(true).write(need == Need::Repair);
        options.custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY);
        loop {
            let file = match options.open(path) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    notes.push(format!("{}: is gone", path.display()));
                    return Ok(None);
                }
                Err(e) => return Err(at(path)(e)),
            };
            let metadata = file.metadata().map_err(at(path))?;
            let claims = need != Need::CopyOfLiving && metadata.is_file();
            let claim = if claims { RecoveryClaim::new(&file).map_err(at(path))? } else { None };
            // What is seen from here on stays so, if it is locked.
            let metadata = file.metadata().map_err(at(path))?;
            let len = metadata.len();
            let whole = match facts.next_output {
                Some(next) if next.inode == metadata.ino() => next.len,
                _ => whole,
            };
            let same = metadata.is_file()
                && facts.prelude.len() as u64 <= whole
                && whole <= len
                && facts.output_inode.is_none_or(|inode| inode == metadata.ino())
                && files::begins_with(&file, &facts.prelude);
            if !same {
                notes.push(format!("{}: holds something else by now", path.display()));
                return Ok(None);
            }
            // This trace, and somebody is about to make another of it, or to complete it.
            if claims && (claim.is_none() || !files::leads_to(path, &metadata)) {
                if began.elapsed() >= PATIENCE {
                    let what = "another process has it locked; recover it again when that has ended";
                    return Err(at(path)(io::Error::new(io::ErrorKind::WouldBlock, what)));
                }
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            if need == Need::Repair
                && let Some(next) = facts.next_output
                && next.inode != metadata.ino()
            {
                take_back(next, path, &metadata);
            }
            return Ok(Some(Self { file, path: path.clone(), whole, len, claim }));
        }
    }

    /// Goes on where it is whole.
    fn repair(mut self) -> Result<Place, RecoverError> {
        let Self { file, path, whole, len, .. } = &mut self;
        file.set_len(*whole).and_then(|()| file.seek(SeekFrom::Start(*whole))).map_err(at(path))?;
        Ok(Place {
            cut: *len - *whole,
            len: *whole,
            whole: *whole,
            file: io::BufWriter::with_capacity(PIECE, self.file),
            path: self.path,
            anew: None,
            has_original: true,
            _claim: self.claim,
        })
    }
}

/// That what is there may make room for a new file. The session's own output may not: the process would go on writing to a file without a
/// name.
fn is_replaceable(there: &fs::Metadata, original: Option<&Original>) -> io::Result<()> {
    if !there.is_file() {
        return Err(io::Error::other("is there, and is no file"));
    }
    let Some(original) = original else { return Ok(()) };
    let own = original.file.metadata()?;
    if (own.dev(), own.ino()) == (there.dev(), there.ino()) {
        return Err(io::Error::other("is the session's own output: choose another file"));
    }
    Ok(())
}

/// Removes the files that had not got their names yet when the process, or an earlier recovery, was killed:
/// the next one of a rotated output, and recovered traces.
fn remove_left_over(facts: &Facts) {
    let Some(output) = &facts.output else { return };
    unfinished::remove_left_over(output, &facts.prelude);
    // A rotated output's own directory, as `Rotation::new` has it.
    if let Some(target) = fs::canonicalize(output).ok().filter(|target| target != output) {
        unfinished::remove_left_over(&target, &facts.prelude);
    }
}

/// The process was killed after it had made the next file of its output, and before that had taken the path of this one.
fn take_back(next: NextOutput, path: &Path, metadata: &fs::Metadata) {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()); // as `Rotation::new` does
    let numbered = files::numbered_path(path, next.number);
    let is_second_name = |m: fs::Metadata| (m.dev(), m.ino()) == (metadata.dev(), metadata.ino());
    if fs::symlink_metadata(&numbered).is_ok_and(is_second_name) {
        let _ = fs::remove_file(numbered);
    }
}

/// The names that what a region holds may get where there is no file to complete: that of the output if it is
/// a flight recorder's, which would have written it at its end, then those beside it.
fn names(region: &DeadRegion) -> Result<Vec<PathBuf>, RecoverError> {
    let facts = region.facts();
    let nowhere = || RecoverError::NoPlace { region: region.path().to_owned() };
    let output = facts.output.as_ref().filter(|_| facts.output_len.is_some() || facts.overwrites());
    let output = output.ok_or_else(nowhere)?;
    let mut name = output.file_name().ok_or_else(nowhere)?.to_owned();
    name.push(format!(".recovered-{}", facts.pid));
    let numbered = |n: u32| {
        let mut name = name.clone();
        name.push(format!("-{n}"));
        output.with_file_name(name)
    };
    let own = facts.overwrites().then(|| output.clone());
    let beside = std::iter::once(output.with_file_name(&name)).chain((2..MOST_NAMES).map(numbered));
    Ok(own.into_iter().chain(beside).collect())
}

/// Gives the file the first of the names that nothing has. One that an earlier recovery of the same trace
/// has, which was killed before it could remove the region, is written anew. A file that another process puts
/// there meanwhile stays.
fn take_first(mut unfinished: Unfinished, names: Vec<PathBuf>, prelude: &[u8]) -> io::Result<PathBuf> {
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    for name in names {
        if files::open_own(&name).is_some_and(|file| files::begins_with(&file, prelude)) {
            return unfinished.replace(&name).map(|()| name);
        }
        match unfinished.take_free(&name) {
            Ok(()) => return Ok(name),
            Err((same, e)) if e.kind() == io::ErrorKind::AlreadyExists => (unfinished, taken) = (same, e),
            Err((_, e)) => return Err(e),
        }
    }
    Err(taken)
}
