//! An output of several files, of which each can be read alone.
//!
//! ```text
//! t.1.fxt   [head][.......... records]
//! t.2.fxt   [head][carry][... records]      carry: what the records that follow mean
//! t.fxt     [head][carry][... records       the newest, always at the session's own path
//! ```
//!
//! The file is changed between two batches, as a batch of its own. A recoverer finds either file at the path and knows which it is by
//! its inode (`RegionHeader::next_output`):
//!
//! ```text
//! 1  the next file, at a random name (`unfinished.rs`): head, carry
//! 2  the region says which it is
//! 3  the old file has its number as a second name
//! 4  the next file takes the path, at one stroke
//! 5  the batch is done
//! ```

use std::borrow::Cow;
use std::io::{IoSlice, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use hairline_formats::{fxt, track_event};
use hairline_shm::{ChunkInfo, Region};

use crate::on::base::files;
use crate::on::base::files::OutputFile;
use crate::on::base::files::unfinished::Unfinished;
use crate::options::Format;

/// When the output changes files, and what it has told so far.
pub(crate) struct Rotation {
    /// Bytes of a file.
    size: u64,
    /// Files that stay, the one that is written included; 0: all.
    keep: u64,
    path: PathBuf,
    head: Vec<u8>,
    region: Arc<Region>,
    carry: Carry,
    /// Files before this one.
    finished: u64,
    /// The length from which on the file that is written is to be followed by the next.
    full_at: u64,
    /// Why the next file could not be made.
    failed: Option<io::Error>,
}

enum Carry {
    Fxt(Box<fxt::Carry>),
    TrackEvent(track_event::Carry),
}

impl Rotation {
    /// `len`: that of the first file, which has its head.
    pub(crate) fn new(
        size: u64,
        keep: u32,
        path: PathBuf,
        head: Vec<u8>,
        region: Arc<Region>,
        format: Format,
    ) -> Self {
        let carry = match format {
            Format::Fxt => Carry::Fxt(Box::default()),
            Format::TrackEvent => Carry::TrackEvent(track_event::Carry::new()),
        };
        Self {
            size,
            keep: u64::from(keep),
            // A link at the output's path stays, and leads to the newest file.
            path: fs::canonicalize(&path).unwrap_or(path),
            head,
            region,
            carry,
            finished: 0,
            full_at: size,
            failed: None,
        }
    }

    /// Bytes that a file of this length still takes.
    pub(crate) fn room(&self, len: u64) -> u64 {
        self.full_at.saturating_sub(len)
    }

    /// Why the output stayed in one file, if it did.
    pub(crate) fn failed(&self) -> Option<&io::Error> {
        self.failed.as_ref()
    }

    /// The parts, as they are to be written: where a record must be another one than in one long file, a copy.
    pub(crate) fn look<'p>(&mut self, parts: &'p [IoSlice<'_>]) -> Option<Vec<Cow<'p, [u8]>>> {
        let carry = match &mut self.carry {
            Carry::TrackEvent(carry) => {
                parts.iter().for_each(|part| carry.look(part));
                return None;
            }
            Carry::Fxt(carry) => carry,
        };
        let patches: Vec<_> = parts.iter().map(|part| carry.look(part)).collect();
        if patches.iter().all(Vec::is_empty) {
            return None;
        }
        let patched = |(part, patches): (&'p IoSlice<'_>, Vec<fxt::Patch>)| {
            let mut bytes = Cow::Borrowed(&**part);
            for fxt::Patch { at, header } in patches {
                if let Some(place) = bytes.to_mut().get_mut(at..at + 8) {
                    place.copy_from_slice(&header.to_le_bytes());
                }
            }
            bytes
        };
        Some(parts.iter().zip(patches).map(patched).collect())
    }

    pub(crate) fn sequence_ended(&mut self, info: ChunkInfo) {
        match &mut self.carry {
            Carry::Fxt(carry) => carry.ended(u64::from(info.tid)),
            Carry::TrackEvent(carry) => carry.ended(info.sequence),
        }
    }

    /// Goes on in the next file if `bytes` more would make this one longer than it may be. Where that cannot be had, stays, and tries
    /// again when as much has been written once more.
    pub(crate) fn turn(&mut self, file: &mut OutputFile, len: &mut u64, bytes: u64) -> bool {
        if *len + bytes <= self.full_at {
            return false;
        }
        match self.next(file) {
            Ok((next, next_len)) => {
                (*file, *len) = (next, next_len);
                // What a file begins with may be much: half of its size at least is records.
                self.full_at = self.size.max(next_len + self.size / 2);
                self.failed = None;
                true
            }
            Err(e) => {
                // Who recovers this finds the file that it is still in.
                if let Ok(metadata) = file.metadata() {
                    self.region.announce_output(metadata.ino(), *len, self.finished + 1);
                }
                self.full_at = *len + bytes + self.size;
                self.failed = Some(e);
                false
            }
        }
    }

    fn next(&mut self, current: &OutputFile) -> io::Result<(OutputFile, u64)> {
        let identity = |m: fs::Metadata| (m.dev(), m.ino());
        let is_ours = match fs::metadata(&self.path) {
            Ok(metadata) => identity(metadata) == current.metadata().map(identity)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => false,
            Err(e) => return Err(e),
        };
        if !is_ours && fs::symlink_metadata(&self.path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "another file is in its place"));
        }
        let (next, len) = self.write_opening()?;
        let number = self.finished + 1;
        self.region.announce_output(next.file().metadata()?.ino(), len, number);
        let numbered = files::numbered_path(&self.path, number);
        if is_ours {
            give_second_name(&self.path, &numbered)?;
        }
        // It is locked before another session can find it at the path.
        let file = next.replace_locked(&self.path).inspect_err(|_| {
            // As it was: with one name, and that.
            let _ = if fs::symlink_metadata(&self.path).is_ok() {
                fs::remove_file(&numbered)
            } else {
                fs::rename(&numbered, &self.path)
            };
        })?;
        self.finished += 1;
        // One that was finished when this was written is the first too many.
        if let Some(old) = (self.finished + 1).checked_sub(self.keep).filter(|old| *old > 0 && self.keep > 0)
        {
            let _ = fs::remove_file(files::numbered_path(&self.path, old));
        }
        Ok((OutputFile::new(file), len))
    }

    /// Makes the next file.
    fn write_opening(&mut self) -> io::Result<(Unfinished, u64)> {
        let next = Unfinished::beside(&self.path)?;
        let mut opening = self.head.clone();
        match &mut self.carry {
            Carry::Fxt(carry) => carry.put(&mut opening),
            Carry::TrackEvent(carry) => carry.put(|packet| opening.extend_from_slice(packet)),
        }
        next.file().write_all(&opening)?;
        Ok((next, opening.len() as u64))
    }
}

/// The file at `path` is to be found at `name` too; one that was there is of an earlier run. Where a file has one name only, it is
/// moved.
fn give_second_name(path: &Path, name: &Path) -> io::Result<()> {
    match fs::remove_file(name) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    fs::hard_link(path, name).or_else(|_| fs::rename(path, name))
}
