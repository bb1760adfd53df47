//! Where the whole trace goes: the original file, or another.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use hairline_formats::fxt;
use hairline_shm::recover::{DeadRegion, Facts, NextOutput};

use super::super::files;
use super::at;
use crate::recovery::RecoverError;

/// Bytes that are compared or copied at a time.
const PIECE: usize = 1 << 16;

/// A file that becomes the whole trace.
#[derive(Debug)]
pub(super) struct Place {
    /// Written through a buffer, since fragments may be small.
    file: io::BufWriter<File>,
    path: PathBuf,
    /// Becomes this when it is complete.
    rename_to: Option<PathBuf>,
    /// Bytes of the original that are whole.
    whole: u64,
    /// Bytes so far.
    pub(super) len: u64,
    /// Whether what was written before the kill is in it.
    pub(super) has_original: bool,
    /// Bytes of the original that were not whole.
    pub(super) cut: u64,
}

/// The session's output, if it is still there.
struct Original {
    file: File,
    path: PathBuf,
    whole: u64,
    len: u64,
}

impl Place {
    pub(super) fn choose(
        region: &DeadRegion,
        to: Option<&Path>,
        notes: &mut Vec<String>,
    ) -> Result<Self, RecoverError> {
        let facts = region.facts();
        let original = Original::find(facts, to.is_none(), notes)?;
        match (original, to) {
            (Some(original), None) => original.repair(),
            (original, Some(to)) => Self::anew(facts, original, to.to_owned()),
            (None, None) => Self::anew(facts, None, unwritten(facts).map_or_else(|| beside(region), Ok)?),
        }
    }

    /// A copy, of a trace that goes on.
    pub(super) fn copy_of(facts: &Facts, to: &Path, notes: &mut Vec<String>) -> Result<Self, RecoverError> {
        let original = Original::find(facts, false, notes)?;
        Self::anew(facts, original, to.to_owned())
    }

    /// A new file: with what is whole of the original, else with the stream's head.
    fn anew(facts: &Facts, original: Option<Original>, to: PathBuf) -> Result<Self, RecoverError> {
        if let Ok(there) = fs::metadata(&to) {
            is_replaceable(&there, original.as_ref()).map_err(at(&to))?;
        }
        let mut name = to.file_name().map_or_else(OsString::new, ToOwned::to_owned);
        name.push(format!(".{}.part", std::process::id()));
        let path = to.with_file_name(name);
        let file = File::create(&path).map_err(at(&to))?;
        let mut place = Self {
            file: io::BufWriter::with_capacity(PIECE, file),
            path,
            rename_to: Some(to),
            whole: 0,
            len: 0,
            has_original: original.is_some(),
            cut: original.as_ref().map_or(0, |o| o.len - o.whole),
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
    pub(super) fn flows_begun(&mut self) -> Result<HashSet<u64>, RecoverError> {
        self.file.flush().map_err(at(self.name()))?;
        let file = File::open(&self.path).map_err(at(self.name()))?;
        let mut reader = fxt::Reader::new(io::BufReader::with_capacity(PIECE, file.take(self.len)));
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

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), RecoverError> {
        self.len += bytes.len() as u64;
        self.file.write_all(bytes).map_err(at(self.name()))
    }

    /// What it is to be called: nobody asked for the name that it has until then.
    fn name(&self) -> &Path {
        self.rename_to.as_ref().unwrap_or(&self.path)
    }

    /// Everything is on the disk, under its name. Which that is.
    pub(super) fn finish(mut self) -> Result<PathBuf, RecoverError> {
        let flushed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        let named = flushed.and_then(|()| match &self.rename_to {
            Some(to) => std::fs::rename(&self.path, to),
            None => Ok(()),
        });
        if let Err(e) = named {
            let e = at(self.name())(e);
            self.abandon();
            return Err(e);
        }
        let path = self.rename_to.unwrap_or(self.path);
        // The name too; a directory that cannot be opened is no reason to fail.
        if let Some(Ok(directory)) = path.parent().map(File::open) {
            let _ = directory.sync_all();
        }
        Ok(path)
    }

    /// Takes back what was written, as far as that goes.
    pub(super) fn abandon(self) {
        let (file, _) = self.file.into_parts();
        let _ = match &self.rename_to {
            Some(_) => std::fs::remove_file(&self.path),
            None => file.set_len(self.whole),
        };
    }
}

impl Original {
    /// The file at the output's path, if it is this trace: regular, not shorter than what is whole, and with the head
    /// of this stream.
    fn find(facts: &Facts, to_write: bool, notes: &mut Vec<String>) -> Result<Option<Self>, RecoverError> {
        let (Some(path), Some(whole)) = (&facts.output, facts.output_len) else { return Ok(None) };
        // Nonblocking: a FIFO at this place must not keep us.
        let flags = libc::O_NONBLOCK | libc::O_CLOEXEC | libc::O_NOCTTY;
        let file = match OpenOptions::new().read(true).write(to_write).custom_flags(flags).open(path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                notes.push(format!("{}: is gone", path.display()));
                return Ok(None);
            }
            Err(e) => return Err(at(path)(e)),
        };
        let metadata = file.metadata().map_err(at(path))?;
        let len = metadata.len();
        let whole = match facts.next_output {
            Some(next) if next.inode == metadata.ino() => next.len,
            Some(next) if to_write => {
                take_back(facts, next, path, &metadata);
                whole
            }
            _ => whole,
        };
        let head_len = facts.prelude.len() as u64;
        let same = metadata.is_file()
            && head_len <= whole
            && whole <= len
            && facts.output_inode.is_none_or(|inode| inode == metadata.ino())
            && begins_with(&file, &facts.prelude).map_err(at(path))?;
        if !same {
            notes.push(format!("{}: holds something else by now", path.display()));
            return Ok(None);
        }
        Ok(Some(Self { file, path: path.clone(), whole, len }))
    }

    /// Goes on where it is whole.
    fn repair(mut self) -> Result<Place, RecoverError> {
        let Self { file, path, whole, len } = &mut self;
        file.set_len(*whole).and_then(|()| file.seek(SeekFrom::Start(*whole))).map_err(at(path))?;
        Ok(Place {
            cut: *len - *whole,
            len: *whole,
            whole: *whole,
            file: io::BufWriter::with_capacity(PIECE, self.file),
            path: self.path,
            rename_to: None,
            has_original: true,
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

/// The process was killed after it had made the next file of its output, and before that had taken the path of this one.
fn take_back(facts: &Facts, next: NextOutput, path: &Path, metadata: &fs::Metadata) {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()); // as the session does
    let numbered = files::numbered_path(path, next.number);
    let is_second_name = |m: fs::Metadata| (m.dev(), m.ino()) == (metadata.dev(), metadata.ino());
    if fs::symlink_metadata(&numbered).is_ok_and(is_second_name) {
        let _ = fs::remove_file(numbered);
    }
    let _ = fs::remove_file(files::next_path(path, facts.pid));
}

fn begins_with(file: &File, head: &[u8]) -> io::Result<bool> {
    let mut found = vec![0; head.len()];
    file.read_exact_at(&mut found, 0)?;
    Ok(found == head)
}

/// The file that a flight recorder would have written at its end, if nothing is there.
fn unwritten(facts: &Facts) -> Option<PathBuf> {
    let output = facts.output.clone().filter(|_| facts.overwrites())?;
    matches!(std::fs::symlink_metadata(&output), Err(e) if e.kind() == io::ErrorKind::NotFound)
        .then_some(output)
}

/// A name beside the output that nobody has.
fn beside(region: &DeadRegion) -> Result<PathBuf, RecoverError> {
    let facts = region.facts();
    let nowhere = || RecoverError::NoPlace { region: region.path().to_owned() };
    let output = facts.output.as_ref().filter(|_| facts.output_len.is_some() || facts.overwrites());
    let output = output.ok_or_else(nowhere)?;
    let mut name = output.file_name().ok_or_else(nowhere)?.to_owned();
    name.push(format!(".recovered-{}", facts.pid));
    let first = output.with_file_name(&name);
    let numbered = |n: u32| {
        let mut name = name.clone();
        name.push(format!("-{n}"));
        output.with_file_name(name)
    };
    // One that is ours already, from a run that was killed, is written anew.
    let free = |path: &PathBuf| match File::open(path) {
        Err(e) => e.kind() == io::ErrorKind::NotFound,
        Ok(file) => begins_with(&file, &facts.prelude).unwrap_or(false),
    };
    std::iter::once(first).chain((2..100).map(numbered)).find(free).ok_or_else(nowhere)
}
