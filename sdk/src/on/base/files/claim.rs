//! The choice of the file that a session writes to: the one at its path, or the next free name beside it.
//!
//! A trace that somebody wants is never emptied. So a session replaces a file only if that is empty, or the
//! trace of a session that has ended: its last bytes say so ([`SessionEnd`]). A trace without that end is the
//! one of a run that was killed or crashed, and may be all that tells why. Anything else at the path is not
//! ours to empty.
//!
//! ```text
//! t.pftrace     locked by another process        an error: that process is writing its trace
//!               locked by this process           another copy of Hairline has it: take the next name
//!               not ended, or no trace           take the next name
//!               ended by this process            another copy's, or an own earlier one, which is replaced
//!               ended by another process         replaced; with rotation, it becomes the next numbered file
//! t-2.pftrace   the same again, up to t-999.pftrace
//! ```

use std::fs;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hairline_formats::LAST;
use hairline_formats::track_event::SessionEnd;

use crate::on::base::files::output_file;
use crate::on::base::files::output_file::OutputFile;
use crate::on::base::files::{self, leads_to, links, read_exact_at, try_lock, unlock};
use crate::on::base::platform;
use crate::on::base::platform::facts::{Identity, Lock};
use crate::on::base::platform::process;

/// Tries to open a file. A try fails if a rotation or a recovery replaces the file meanwhile.
const TRIES: u32 = 16;

/// Tries to lock a file, and the time between two of them.
const LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// The most names that are tried. A program that crashes all day does not fill the disk with traces.
const MOST_NAMES: u32 = 999;

/// The file of a session that is about to start.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) file: OutputFile,
    pub(crate) path: PathBuf,
    pub(crate) is_regular: bool,
    /// Why the path is not the one that was asked for, or what was moved away from it.
    pub(crate) note: Option<String>,
}

/// What happens to the trace of an ended session at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The new trace replaces it.
    IsReplaced,
    /// It gets the next number of a rotated output.
    IsNumbered,
}

/// Why a file stays as it is.
#[derive(Clone, Copy, Debug)]
enum Kept {
    Unended,
    OfAnotherCopy,
    Unlockable,
}

impl Kept {
    fn note(self, path: &Path, instead: &Path) -> String {
        let why = match self {
            Self::Unended => {
                "has a trace without its end, which `hairline recover` may complete, or something else"
            }
            Self::OfAnotherCopy => "is the trace of another copy of Hairline in this process",
            Self::Unlockable => "exists, and cannot be locked against other processes",
        };
        format!("{} {why}: it stays as it is, and this trace is in {}", path.display(), instead.display())
    }
}

/// Opens the file at `path`, or at the next free name beside it, and locks it. It keeps its content until
/// [`OutputFile::make_empty`]. A FIFO without a reader is an error; the call does not wait. `advice` says how
/// each process gets a file of its own.
///
/// # Errors
/// If another process is writing a trace into the file, if no file can be opened, or if all names are taken.
pub(crate) fn claim(path: &Path, ended: Ended, advice: &str) -> io::Result<Claimed> {
    let mut first = None;
    for n in 1..=MOST_NAMES {
        match try_claim(&nth_name(path, n.into()), ended, advice)? {
            Ok(claimed) => {
                let note = first.map(|kept: Kept| kept.note(path, &claimed.path));
                return Ok(Claimed { note: note.or(claimed.note), ..claimed });
            }
            Err(kept) => first = first.or(Some(kept)),
        }
    }
    let message = format!(
        "it and {} names beside it have traces without their end; complete them with `hairline recover`, and \
         move or remove them",
        MOST_NAMES - 1
    );
    Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
}

/// Returns the name number `n` for an output at `path`: the path itself, then `t-2.fxt` beside `t.fxt`.
pub(crate) fn nth_name(path: &Path, n: u64) -> PathBuf {
    if n == 1 { path.to_owned() } else { files::with_suffix(path, &format!("-{n}")) }
}

/// Says that the file at `path` stays.
pub(crate) fn note_of_kept(path: &Path, instead: &Path) -> String {
    Kept::Unended.note(path, instead)
}

fn try_claim(path: &Path, ended: Ended, advice: &str) -> io::Result<Result<Claimed, Kept>> {
    let mut note = None;
    for _ in 0..TRIES {
        let mut file = open(path)?;
        let claimed = |file, is_regular| Claimed { file, path: path.to_owned(), is_regular, note: None };
        if !file.metadata()?.is_file() {
            return Ok(Ok(claimed(file, false)));
        }
        // Read before the lock: a recovery that ends in between leaves the file unlocked.
        let in_recovery = platform::has_recovery_mark(file.get());
        match lock(&mut file) {
            Lock::Got => {}
            Lock::Taken if in_recovery => return Ok(Err(Kept::Unended)),
            Lock::Taken if platform::has_locked(file.get()) => return Ok(Err(Kept::OfAnotherCopy)),
            Lock::Taken => {
                let message = format!("another process is writing a trace into it; {advice}");
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            // Where nothing can be locked, only a file that did not exist is known to be nobody else's.
            Lock::Impossible if file.is_new() => {}
            Lock::Impossible => return Ok(Err(Kept::Unlockable)),
        }
        // A session that rotates its output renames the file before it unlocks the file.
        if !leads_to(path, file.get()) {
            unlock(file.get());
            continue;
        }
        if file.is_new() || file.metadata()?.len() == 0 {
            return Ok(Ok(Claimed { note, ..claimed(file, true) }));
        }
        // Opened again: the output may be a FIFO, and is open for writing only.
        let readable = links::open(path, OpenOptions::new().read(true))?;
        if platform::identity(&readable)? != file.identity()? {
            continue;
        }
        match (kept(&readable), ended) {
            (Some(kept), _) => return Ok(Err(kept)),
            (None, Ended::IsReplaced) => return Ok(Ok(claimed(file, true))),
            (None, Ended::IsNumbered) => {
                let moved = move_to_next_number(path)?;
                note = Some(format!(
                    "{} is the trace of an earlier run; it is in {} now",
                    path.display(),
                    moved.display()
                ));
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::WouldBlock, "another process replaces it again and again"))
}

/// Locks the file, unless another session has done so. Then it is the other one's, whichever created it. A
/// snapshot locks the file that it replaces for a moment ([`Replaceable`]), which is waited for.
fn lock(file: &mut OutputFile) -> Lock {
    for _ in 0..LOCK_TRIES {
        match try_lock(file.get()) {
            Lock::Taken => std::thread::sleep(LOCK_PAUSE),
            lock => return lock,
        }
    }
    file.keep();
    Lock::Taken
}

/// Opens the file at `path`, or creates it.
fn open(path: &Path) -> io::Result<OutputFile> {
    let mut tries = 0;
    loop {
        // Created exclusively first: only then nobody else has the file.
        match links::open(path, OpenOptions::new().write(true).create_new(true)) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok(OutputFile::created(created?, path)),
        }
        // Not truncated yet: it may be another session's output.
        match links::open(path, OpenOptions::new().write(true)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && tries < TRIES => tries += 1,
            opened => return Ok(OutputFile::new(opened?)),
        }
    }
}

/// A file that may be replaced. No session claims it while this value lives.
#[derive(Debug)]
pub(crate) struct Replaceable(File);

impl Drop for Replaceable {
    fn drop(&mut self) {
        unlock(&self.0);
    }
}

/// Returns the file at `path` if another one may replace it: it is `own`, or empty, or the trace of a session
/// that has ended and is not of another copy of Hairline in this process. And no session has claimed it.
pub(crate) fn replaceable(path: &Path, own: Option<Identity>) -> Option<Replaceable> {
    // A session opens its output for writing only, because it may be a FIFO.
    let file = links::open(path, OpenOptions::new().read(true)).ok()?;
    if !file.metadata().is_ok_and(|about| about.is_file()) || try_lock(&file) == Lock::Taken {
        return None;
    }
    let file = Replaceable(file);
    let is_own = own.is_some() && platform::identity(&file.0).ok() == own;
    (leads_to(path, &file.0) && (is_own || kept(&file.0).is_none())).then_some(file)
}

/// Why the content of a file stays. `None`: a session has ended it, or it has none.
fn kept(file: &File) -> Option<Kept> {
    let len = file.metadata().map_or(u64::MAX, |about| about.len());
    if len == 0 {
        return None;
    }
    let Some(end) = end_of(file, len) else { return Some(Kept::Unended) };
    let is_of_this_process = end.pid.cast_unsigned() == process::id()
        && platform::process_start().is_none_or(|start| start <= end.timestamp_ns)
        && end.timestamp_ns <= platform::boottime();
    let is_own = || platform::identity(file).is_ok_and(output_file::is_of_an_earlier_session);
    (is_of_this_process && !is_own()).then_some(Kept::OfAnotherCopy)
}

/// Returns the end that the session of this trace has written. `None` without one, and if recovery wrote it.
fn end_of(file: &File, len: u64) -> Option<SessionEnd> {
    let mut last = [0; LAST];
    read_exact_at(file, &mut last, len.checked_sub(LAST as u64)?).ok()?;
    SessionEnd::at_end_of(&last).filter(|end| end.pid != 0)
}

/// Gives the file at `path` the number after the last one of a rotated output. Returns its new path.
fn move_to_next_number(path: &Path) -> io::Result<PathBuf> {
    let path = &fs::canonicalize(path)?; // a link stays
    let mut number = numbers(path).last().copied().unwrap_or(0);
    loop {
        number = number.checked_add(1).ok_or(io::ErrorKind::AlreadyExists)?;
        let numbered = files::numbered_path(path, number);
        match move_to_free(path, &numbered) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            moved => return moved.map(|()| numbered),
        }
    }
}

/// Moves a file to a name that is free.
fn move_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(e),
        // The file system has no hard links.
        Err(_) if fs::symlink_metadata(to).is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

/// The most entries of a directory that [`numbers`] reads.
const MOST_ENTRIES: usize = 1 << 20;

/// Returns the numbers of the files of a rotated output at `path`, from the lowest to the highest.
pub(crate) fn numbers(path: &Path) -> Vec<u64> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let (stem, extension) = (path.file_stem().unwrap_or_default(), path.extension());
    let number = |name: PathBuf| -> Option<u64> {
        (name.extension() == extension).then_some(())?;
        let name = name.file_stem()?.as_encoded_bytes();
        let number = name.strip_prefix(stem.as_encoded_bytes())?.strip_prefix(b".")?;
        std::str::from_utf8(number).ok()?.parse().ok()
    };
    let found = entries.take(MOST_ENTRIES).flatten().filter_map(|entry| number(entry.file_name().into()));
    let mut numbers: Vec<u64> = found.collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("hairline-{:016x}", u64::from_le_bytes(process::random())));
        fs::create_dir(&path).expect("a directory");
        path
    }

    #[test]
    fn a_file_that_another_session_locks_first_stays_whichever_created_it() {
        let directory = directory();
        let path = directory.join("t.fxt");
        let mut created = open(&path).expect("created");
        let other = claim(&path, Ended::IsReplaced, "").expect("claimed");
        assert_eq!(lock(&mut created), Lock::Taken);
        drop(created);
        assert!(path.exists() && leads_to(&path, other.file.get()));
        let identity = other.file.identity().ok();
        assert!(replaceable(&path, identity).is_none(), "it is claimed");
        drop(other);
        let looked_at = replaceable(&path, identity).expect("free");
        let claims = std::thread::spawn({
            let path = path.clone();
            move || claim(&path, Ended::IsReplaced, "").map(|claimed| claimed.path)
        });
        std::thread::sleep(LOCK_PAUSE);
        drop(looked_at);
        assert_eq!(claims.join().expect("joined").expect("the look was short"), path);
        fs::remove_dir_all(directory).expect("removed");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_stays_though_the_session_does_not_start() {
        let directory = directory();
        let (link, target) = (directory.join("t.fxt"), directory.join("run.fxt"));
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        drop(claim(&link, Ended::IsReplaced, "").expect("created"));
        assert!(fs::symlink_metadata(&link).is_ok() && !target.exists());
        fs::remove_dir_all(directory).expect("removed");
    }

    #[test]
    fn numbers_go_on_where_the_folder_stands() {
        let directory = directory();
        let path = directory.join("t.x.fxt");
        assert_eq!(numbers(&path), [0; 0]);
        for name in ["t.x.2.fxt", "t.x.11.fxt", "t.x.12.pftrace", "t.13.fxt", "t.x.y.fxt", "t.x.-3.fxt"] {
            fs::write(directory.join(name), b"a").expect("written");
        }
        assert_eq!(numbers(&path), [2, 11]);
        fs::write(&path, b"the newest").expect("written");
        assert_eq!(move_to_next_number(&path).expect("moved").file_name(), Some("t.x.12.fxt".as_ref()));
        assert!(!path.exists());
        // Anybody may have given a file the last number.
        fs::write(directory.join(format!("t.x.{}.fxt", u64::MAX)), b"a").expect("written");
        fs::write(&path, b"the newest").expect("written");
        let kind = move_to_next_number(&path).map_err(|e| e.kind());
        assert_eq!(kind, Err(io::ErrorKind::AlreadyExists));
        fs::remove_dir_all(directory).expect("removed");
    }
}
