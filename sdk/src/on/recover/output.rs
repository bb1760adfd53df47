//! The output of a recovery: the original file, or a new one.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use hairline_formats::fxt;
use hairline_shm::recover::{DeadRegion, Facts};

use crate::on::base::files;
use crate::on::base::files::links::{self, Found};
use crate::on::base::files::unfinished::Unfinished;
use crate::on::base::files::{Head, RecoveryLock, unfinished};
use crate::on::base::platform;
use crate::on::base::platform::facts::Identity;
use crate::on::encode::stream;
use crate::options::Format;
use crate::recovery::report::RecoverError;

/// Bytes that are copied at a time.
const PIECE: usize = 1 << 16;

/// How long a recovery waits for another process that has locked the trace to be completed. A session that
/// recreates its output truncates the file as soon as it has the lock.
const PATIENCE: Duration = Duration::from_secs(1);

/// Limit of names that are tried beside an output; the last of them is `OUTPUT.recovered-PID-99`.
const MOST_NAMES: u32 = 100;

/// The file that becomes the complete trace.
#[derive(Debug)]
pub(crate) struct Output {
    /// Written through a buffer, since fragments may be small.
    file: io::BufWriter<File>,
    /// The path of the trace. For a new file, the first path that it may get.
    path: PathBuf,
    /// The unfinished file and its possible paths, if the output is a new file.
    new_file: Option<(Unfinished, Names)>,
    /// Length of the complete part of the original. Zero for a new file.
    complete_len: u64,
    /// Length of the file so far.
    pub(crate) len: u64,
    /// Whether the file contains the part that the session had written to its own output.
    pub(crate) has_original: bool,
    /// Bytes of the original after its complete part.
    pub(crate) cut: u64,
    /// Prevents sessions from recreating the original before the recovery is done.
    _lock: Option<RecoveryLock>,
}

/// The paths that a new file may get.
#[derive(Debug)]
enum Names {
    /// The path that the user gave, even if a file has that path.
    Given,
    /// The first of these paths that is free, or that an earlier recovery of the same trace took before it
    /// was killed.
    Free(Vec<PathBuf>),
}

/// The use of the session's output.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// The recovery completes it.
    Repair,
    /// The recovery copies it; the session is dead.
    Copy,
    /// A snapshot copies it; the session has it locked.
    CopyOfLiving,
}

/// The session's output, if it still exists.
struct Original {
    file: File,
    path: PathBuf,
    complete_len: u64,
    len: u64,
    lock: Option<RecoveryLock>,
}

impl Output {
    /// Creates the output of a recovery: at `to` if given, else the original file or a new file beside it.
    pub(crate) fn choose(
        region: &DeadRegion,
        to: Option<&Path>,
        notes: &mut Vec<String>,
    ) -> Result<Self, RecoverError> {
        let facts = region.facts();
        remove_left_over(facts);
        let usage = if to.is_none() { Use::Repair } else { Use::Copy };
        let original = Original::find(facts, usage, notes)?;
        match (original, to) {
            (Some(original), None) => original.repair(),
            (original, Some(to)) => Self::new_file(facts, original, to.to_owned(), Names::Given),
            (None, None) => {
                let names = names(region)?;
                let first = names.first().cloned().unwrap_or_default();
                Self::new_file(facts, None, first, Names::Free(names))
            }
        }
    }

    /// Creates the output for a copy of the trace of a running process.
    pub(crate) fn copy_of(facts: &Facts, to: &Path, notes: &mut Vec<String>) -> Result<Self, RecoverError> {
        let original = Original::find(facts, Use::CopyOfLiving, notes)?;
        Self::new_file(facts, original, to.to_owned(), Names::Given)
    }

    /// Creates a new file. It begins with the complete part of the original, or else with the head of the
    /// stream.
    fn new_file(
        facts: &Facts,
        mut original: Option<Original>,
        path: PathBuf,
        names: Names,
    ) -> Result<Self, RecoverError> {
        let unfinished = match names {
            Names::Given => {
                if let Ok(existing) = fs::metadata(&path) {
                    check_replaceable(&path, &existing, original.as_ref()).map_err(at(&path))?;
                }
                Unfinished::beside(&path)
            }
            // Named after the session's output, so that another recovery finds the file if this recovery is
            // killed.
            Names::Free(_) => Unfinished::beside_unchecked(facts.output.as_ref().unwrap_or(&path)),
        };
        let unfinished = unfinished.map_err(at(&path))?;
        let file = unfinished.file().and_then(File::try_clone).map_err(at(&path))?;
        let mut this = Self {
            file: io::BufWriter::with_capacity(PIECE, file),
            path,
            new_file: Some((unfinished, names)),
            complete_len: 0,
            len: 0,
            has_original: original.is_some(),
            cut: original.as_ref().map_or(0, |o| o.len - o.complete_len),
            _lock: original.as_mut().and_then(|o| o.lock.take()),
        };
        let begun = match original {
            Some(original) => this.copy(&original),
            None => this.write(&facts.prelude),
        };
        match begun {
            Ok(()) => Ok(this),
            Err(e) => {
                this.abandon();
                Err(e)
            }
        }
    }

    /// Appends the complete part of the original.
    fn copy(&mut self, original: &Original) -> Result<(), RecoverError> {
        let mut piece = vec![0; PIECE];
        let mut offset = 0;
        while offset < original.complete_len {
            let n = usize::try_from(original.complete_len - offset).map_or(PIECE, |rest| rest.min(PIECE));
            files::read_exact_at(&original.file, &mut piece[..n], offset).map_err(at(&original.path))?;
            self.write(&piece[..n])?;
            offset += n as u64;
        }
        Ok(())
    }

    /// Returns the flows that begin in the FXT records written so far.
    pub(crate) fn flows_begun(&mut self) -> Result<HashSet<u64>, RecoverError> {
        self.file.flush().map_err(at(&self.path))?;
        let so_far = FromStart { file: self.file.get_ref(), offset: 0 }.take(self.len);
        let mut reader = fxt::RecordReader::new(io::BufReader::with_capacity(PIECE, so_far));
        let mut begun = HashSet::new();
        // The reader stops at unreadable records; the copy keeps them unchanged.
        while let Ok(Some((_, record))) = reader.next() {
            if let fxt::Record::Event(event) = record
                && event.kind == fxt::EventKind::FlowBegin
            {
                begun.extend(event.payload);
            }
        }
        Ok(begun)
    }

    /// Appends bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), RecoverError> {
        self.len += bytes.len() as u64;
        self.file.write_all(bytes).map_err(at(&self.path))
    }

    /// Writes the file to the disk and gives it its path. Returns that path.
    pub(crate) fn finish(mut self, facts: &Facts) -> Result<PathBuf, RecoverError> {
        if let Err(e) = self.file.flush().and_then(|()| self.file.get_ref().sync_all()) {
            let e = at(&self.path)(e);
            self.abandon();
            return Err(e);
        }
        let path = match self.new_file {
            None => self.path,
            Some((unfinished, Names::Given)) => {
                unfinished.replace(&self.path).map_err(at(&self.path))?;
                self.path
            }
            Some((unfinished, Names::Free(names))) => {
                take_first(unfinished, names, &head(facts)).map_err(at(&self.path))?
            }
        };
        // Sync the name too. A directory that cannot be opened is no reason to fail.
        if let Some(Ok(directory)) = path.parent().map(platform::open_directory) {
            let _ = directory.sync_all();
        }
        Ok(path)
    }

    /// Removes the bytes written so far, as far as possible. Dropping `self` removes a new file.
    pub(crate) fn abandon(self) {
        let (file, _) = self.file.into_parts();
        if self.new_file.is_none() {
            let _ = file.set_len(self.complete_len);
        }
    }
}

/// Reads a file from its start, independently of its position.
struct FromStart<'f> {
    file: &'f File,
    offset: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let n = platform::read_at(self.file, bytes, self.offset)?;
        self.offset += n as u64;
        Ok(n)
    }
}

impl Original {
    /// Opens the file at the output's path, if it is this trace, and locks it unless a session has it locked.
    /// No other process writes to a locked file.
    fn find(facts: &Facts, usage: Use, notes: &mut Vec<String>) -> Result<Option<Self>, RecoverError> {
        let (Some(path), Some(output_len)) = (&facts.output, facts.output_len) else { return Ok(None) };
        let start = Instant::now();
        loop {
            let Some(file) = open_output(path, usage, notes)? else { return Ok(None) };
            let identity = platform::identity(&file).map_err(at(path))?;
            let complete_len = match facts.next_output {
                Some(next) if next.inode == identity.inode => next.len,
                _ => output_len,
            };
            let is_trace = || is_trace(facts, &file, identity, complete_len);
            // Checked before the lock, which nothing but the trace may get, and again after it: a locked file
            // does not change any more.
            let locks = usage != Use::CopyOfLiving && is_trace();
            let lock = if locks { RecoveryLock::try_new(&file).map_err(at(path))? } else { None };
            if !is_trace() {
                notes.push(holds_something_else(path));
                return Ok(None);
            }
            let metadata = file.metadata().map_err(at(path))?;
            // It is this trace, and another process is about to replace or to complete it.
            if locks && (lock.is_none() || !files::leads_to(path, &file)) {
                if start.elapsed() >= PATIENCE {
                    let message = "another process has it locked; recover it again when that has ended";
                    return Err(at(path)(io::Error::new(io::ErrorKind::WouldBlock, message)));
                }
                std::thread::sleep(Duration::from_millis(5));
                continue;
            }
            if usage == Use::Repair {
                remove_numbered_name(facts, path, identity);
            }
            return Ok(Some(Self { file, path: path.clone(), complete_len, len: metadata.len(), lock }));
        }
    }

    /// Truncates the file to its complete part, to append to it.
    fn repair(mut self) -> Result<Output, RecoverError> {
        let Self { file, path, complete_len, len, .. } = &mut self;
        file.set_len(*complete_len)
            .and_then(|()| file.seek(SeekFrom::Start(*complete_len)))
            .map_err(at(path))?;
        Ok(Output {
            cut: *len - *complete_len,
            len: *complete_len,
            complete_len: *complete_len,
            file: io::BufWriter::with_capacity(PIECE, self.file),
            path: self.path,
            new_file: None,
            has_original: true,
            _lock: self.lock,
        })
    }
}

/// Opens the output of a session. Returns `None`, with a note, if there is no regular file, or only behind a
/// link of another user.
fn open_output(path: &Path, usage: Use, notes: &mut Vec<String>) -> Result<Option<File>, RecoverError> {
    let mut options = OpenOptions::new();
    options.read(true).write(usage == Use::Repair);
    let note = match links::open_regular(path, &mut options).map_err(at(path))? {
        Found::File(file) => return Ok(Some(file)),
        Found::Nothing => format!("{}: is gone", path.display()),
        Found::Other => holds_something_else(path),
        Found::Refused => {
            format!("{}: is a symbolic link of another user by now, and is not followed", path.display())
        }
    };
    notes.push(note);
    Ok(None)
}

/// The note about a file that is not the session's output any more.
fn holds_something_else(path: &Path) -> String {
    format!("{}: holds something else by now", path.display())
}

/// The head of the session's files.
fn head(facts: &Facts) -> Head<'_> {
    let own = stream::part_bytes(&facts.prelude, u128::from_le_bytes(facts.session));
    Head { bytes: &facts.prelude, own }
}

/// Whether the file is the trace of this session: it is regular, has all of its complete part and begins with
/// the head of the stream.
fn is_trace(facts: &Facts, file: &File, identity: Identity, complete_len: u64) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    metadata.is_file()
        && facts.prelude.len() as u64 <= complete_len
        && complete_len <= metadata.len()
        && facts.output_inode.is_none_or(|inode| inode == identity.inode)
        && head(facts).begins(file)
}

/// Checks that a new file may replace the file with this metadata. It may not replace the session's own
/// output: the process would then write to a file without a name.
fn check_replaceable(path: &Path, existing: &fs::Metadata, original: Option<&Original>) -> io::Result<()> {
    if !existing.is_file() {
        return Err(io::Error::other("it exists and is not a regular file; give another path"));
    }
    let Some(original) = original else { return Ok(()) };
    if platform::identity(&original.file)? == platform::identity_at(path)? {
        return Err(io::Error::other("it is the session's own output; give another path"));
    }
    Ok(())
}

/// Removes the unfinished files that a killed process or an earlier killed recovery left: the next file of a
/// rotated output, and recovered traces.
fn remove_left_over(facts: &Facts) {
    let Some(output) = &facts.output else { return };
    unfinished::remove_left_over(output, &head(facts));
    // The directory of a rotated output, resolved like in `Rotation::new`.
    if let Some(target) = fs::canonicalize(output).ok().filter(|target| target != output) {
        unfinished::remove_left_over(&target, &head(facts));
    }
}

/// Removes the second, numbered name of the current file. A rotation gives the file that name after it has
/// created the next file, and before the next file takes the path. The process may have been killed in
/// between.
fn remove_numbered_name(facts: &Facts, path: &Path, identity: Identity) {
    let Some(next) = facts.next_output.filter(|next| next.inode != identity.inode) else { return };
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()); // like `Rotation::new`
    let numbered = files::numbered_path(path, next.number);
    if platform::identity_of_name(&numbered).is_ok_and(|there| there == identity) {
        let _ = fs::remove_file(numbered);
    }
}

/// Returns the paths that a new file may get if there is no original: the path of the output for a flight
/// recorder, which would have written it at its end, then the paths beside it.
///
/// # Errors
/// If the region names no path, or one at which no session writes this trace by default. Another process may
/// have written the region, so it does not choose the name of, say, a script.
fn names(region: &DeadRegion) -> Result<Vec<PathBuf>, RecoverError> {
    let facts = region.facts();
    let nowhere = || RecoverError::NoPlace { region: region.path().to_owned() };
    let output = facts.output.as_ref().filter(|_| facts.output_len.is_some() || facts.overwrites());
    let output = output.ok_or_else(nowhere)?;
    let has_extension = || Format::from_path(output).is_some_and(|named| named as u32 == facts.format);
    if !output.is_absolute() || facts.overwrites() && !has_extension() {
        let message = "the region names this path, which is no absolute path with the extension of its \
                       format; give a path for the trace (-o)";
        return Err(at(output)(io::Error::new(io::ErrorKind::InvalidInput, message)));
    }
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

/// Returns a function that makes the error of this file.
fn at(path: &Path) -> impl FnOnce(io::Error) -> RecoverError + use<> {
    let path: PathBuf = path.to_owned();
    move |source| RecoverError::Io { path, source }
}

/// Gives the file the first of the paths that is free. A path that an earlier recovery of the same trace took
/// before it could remove the region is replaced. A file that another process creates meanwhile stays.
fn take_first(mut unfinished: Unfinished, names: Vec<PathBuf>, head: &Head<'_>) -> io::Result<PathBuf> {
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    for name in names {
        if files::open_own(&name).is_some_and(|file| head.begins(&file)) {
            return unfinished.replace(&name).map(|()| name);
        }
        match unfinished.name_if_free(&name) {
            Ok(()) => return Ok(name),
            Err((same, e)) if e.kind() == io::ErrorKind::AlreadyExists => (unfinished, taken) = (same, e),
            Err((_, e)) => return Err(e),
        }
    }
    Err(taken)
}
