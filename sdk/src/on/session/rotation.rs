//! Rotation: an output of several files, each of which can be read alone.
//!
//! ```text
//! t.1.fxt   [head][.......... records]
//! t.2.fxt   [head][carry][... records]      carry: the state that the records after it refer to
//! t.fxt     [head][carry][... records       the newest, always at the session's own path
//!             with a UUID of its own: each is a trace
//! ```
//!
//! The numbers go on where the files of earlier runs end, so a higher number is always the later file.
//!
//! The drain thread changes the file between two batches. The change is a batch of its own. Recovery finds
//! one of the two files at the path, and knows by its inode which file it is (`RegionHeader::next_output`):
//!
//! ```text
//! 1  write head and carry to the next file, at a random name (`unfinished.rs`) 2  announce the next file's
//! inode in the region 3  link the old file to its numbered name 4  rename the next file to the path,
//! atomically 5  complete the batch 6  erase in the old file the events that the next one has instead (their
//! partners came too late), and write its end
//! ```

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use hairline_formats::track_event::{Erasure, SequenceId};
use hairline_formats::{fxt, track_event};
use hairline_shm::{ChunkInfo, Region};

use crate::on::base::clock;
use crate::on::base::files;
use crate::on::base::files::claim;
use crate::on::base::files::output_file::OutputFile;
use crate::on::base::files::unfinished::Unfinished;
use crate::on::base::platform;
use crate::on::encode::stream;
use crate::options::Format;

/// The most ns by which the clocks of two threads differ. A thread may use older parameters than another one.
const CLOCKS_DIFFER: u64 = 10_000;

/// The rotation of an output's files, and the state that the next file begins with.
pub(crate) struct Rotation {
    /// The size of a file in bytes.
    size: u64,
    /// Number of files to keep, the newest included; 0: all.
    keep: u64,
    path: PathBuf,
    /// The head of the first file, and the session's UUID in it.
    head: (Vec<u8>, u128),
    region: Arc<Region>,
    carry: Carry,
    /// A time before which all events were committed when the pass began.
    pass_began: u64,
    /// The numbers of the files before the newest one, of earlier runs too. Those of this run go on from
    /// there.
    numbers: VecDeque<u64>,
    /// Number of files of this run before the newest one.
    finished: u64,
    /// The length in bytes at which the newest file is full.
    full_at: u64,
    /// The error of the last attempt to create the next file.
    error: Option<io::Error>,
    /// The files before the newest one that somebody wants to add to.
    finished_files: Vec<Finished>,
    keeps_finished: bool,
    /// The files that were too many for those who add to them.
    passed_over: u64,
    /// Whether the newest file stays, however long it is.
    is_held: bool,
}

/// A file that was finished.
#[derive(Debug)]
pub(crate) struct Finished {
    file: OutputFile,
    /// Where its end begins.
    len: u64,
    format: Format,
}

/// What a thread of its own adds to files that have ended, the oldest first.
pub(crate) type Addition = Box<dyn FnOnce(&mut [Finished]) + Send>;

/// The most files that wait for those who add to them, each with a descriptor: a pass rarely ends two.
/// Of more, the last ones wait.
const MOST_FINISHED: usize = 16;

impl Finished {
    /// Adds whole records before the file's end. After an error, such as a full disk, it is as it was.
    #[cfg_attr(not(feature = "sampling"), allow(dead_code))]
    pub(crate) fn add(&mut self, records: &[u8]) {
        let end = stream::session_end(self.format, 0, clock::boottime());
        if self.file.replace_at(self.len, &[records, &end].concat()).is_ok() {
            self.len += records.len() as u64;
        } else {
            let _ = self.file.cut_to(self.len);
            let _ = self.file.replace_at(self.len, &end);
        }
    }
}

/// The state of the stream that the records of the next file refer to.
enum Carry {
    Fxt(Box<fxt::Carry>),
    TrackEvent(Box<track_event::Carry>),
}

impl Carry {
    fn format(&self) -> Format {
        match self {
            Self::Fxt(_) => Format::Fxt,
            Self::TrackEvent(_) => Format::TrackEvent,
        }
    }
}

impl Rotation {
    /// Creates the rotation of the file at `path`, which has only `head`: its bytes, and the UUID in them.
    pub(crate) fn new(
        size: u64,
        keep: u32,
        path: PathBuf,
        head: (Vec<u8>, u128),
        region: Arc<Region>,
        format: Format,
    ) -> Self {
        let carry = match format {
            Format::Fxt => Carry::Fxt(Box::default()),
            Format::TrackEvent => Carry::TrackEvent(Box::default()),
        };
        // If the output's path is a link, the link stays, and leads to the newest file.
        let path = fs::canonicalize(&path).unwrap_or(path);
        Self {
            size,
            keep: u64::from(keep),
            numbers: claim::numbers(&path).into(),
            path,
            head,
            region,
            carry,
            pass_began: 0,
            finished: 0,
            full_at: size,
            error: None,
            finished_files: Vec::new(),
            keeps_finished: false,
            passed_over: 0,
            is_held: false,
        }
    }

    /// Keeps each finished file for [`take_finished`](Self::take_finished).
    pub(crate) fn keep_finished(&mut self) {
        self.keeps_finished = true;
    }

    /// Returns the files that were finished since the last call, the oldest first.
    pub(crate) fn take_finished(&mut self) -> Vec<Finished> {
        std::mem::take(&mut self.finished_files)
    }

    /// Returns the number of files that were not kept, because too many were finished since a call of
    /// [`take_finished`](Self::take_finished).
    pub(crate) fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Keeps the output in its present file, or no longer. Returns whether it was kept there.
    pub(crate) fn hold(&mut self, is_held: bool) -> bool {
        std::mem::replace(&mut self.is_held, is_held)
    }

    /// Returns the bytes that a file of this length has room for; `None` while it must not end.
    pub(crate) fn room(&self, len: u64) -> Option<u64> {
        self.may_change().then(|| self.full_at.saturating_sub(len))
    }

    /// Returns the number of files before the newest one.
    pub(crate) fn finished(&self) -> u64 {
        self.finished
    }

    /// Returns the error that kept the output in its present file.
    pub(crate) fn error(&self) -> Option<&io::Error> {
        self.error.as_ref()
    }

    /// Reads the parts, which will be compressed, into the carry. Returns copies of them without the events
    /// that may move to the next file, and the packets of these.
    #[cfg(feature = "compress")]
    pub(crate) fn take_apart<'p>(&mut self, parts: &'p [IoSlice<'_>]) -> (Vec<Cow<'p, [u8]>>, Vec<u8>) {
        let (began, mut apart) = (self.pass_began, Vec::new());
        let rest = parts.iter().map(|part| {
            let mut bytes = Cow::Borrowed(&**part);
            if let Carry::TrackEvent(carry) = &mut self.carry {
                let taken = carry.look_apart(part, began);
                for Erasure { at, bytes: erased } in taken.erasures {
                    if let Some(place) = bytes.to_mut().get_mut(at as usize..at as usize + erased.len()) {
                        place.copy_from_slice(&erased);
                    }
                }
                apart.extend_from_slice(&taken.packets);
            }
            bytes
        });
        (rest.collect(), apart)
    }

    /// Reads the parts into the carry. `at` is their position in the file, if the output is one. Returns
    /// patched copies of them if a record must differ from the same record in one long file.
    pub(crate) fn patch<'p>(
        &mut self,
        parts: &'p [IoSlice<'_>],
        mut at: Option<u64>,
    ) -> Option<Vec<Cow<'p, [u8]>>> {
        let mut position = |part: &[u8]| {
            let here = at;
            at = at.map(|at| at + part.len() as u64);
            here
        };
        let carry = match &mut self.carry {
            Carry::TrackEvent(carry) => {
                parts.iter().for_each(|part| carry.look_at(part, position(part)));
                return None;
            }
            Carry::Fxt(carry) => carry,
        };
        let patches: Vec<_> = parts.iter().map(|part| carry.look_at(part, position(part))).collect();
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

    /// Notes that a pass begins now.
    pub(crate) fn pass_begins(&mut self, now: u64) {
        self.pass_began = now.saturating_sub(CLOCKS_DIFFER);
    }

    /// Tells the carry that the pass has ended.
    pub(crate) fn pass_ended(&mut self) {
        match &mut self.carry {
            Carry::Fxt(carry) => carry.pass_ended(self.pass_began),
            Carry::TrackEvent(carry) => carry.pass_ended(self.pass_began),
        }
    }

    /// Whether the file may end here: not in the middle of a pass that has slices of several threads.
    fn may_change(&self) -> bool {
        match &self.carry {
            Carry::Fxt(carry) => carry.may_split(),
            Carry::TrackEvent(carry) => carry.may_split(),
        }
    }

    /// Removes a sequence from the carry after its last record.
    pub(crate) fn sequence_ended(&mut self, info: ChunkInfo) {
        match &mut self.carry {
            Carry::Fxt(carry) => carry.ended(u64::from(info.tid)),
            Carry::TrackEvent(carry) => carry.ended(SequenceId(info.sequence)),
        }
    }

    /// Replaces `file` by the next file if `bytes` more would make `file` too long. Returns whether it did.
    /// If the next file cannot be created, `file` stays, and the next attempt comes after a further `size`
    /// bytes.
    pub(crate) fn next_file_if_full(&mut self, file: &mut OutputFile, len: &mut u64, bytes: u64) -> bool {
        if *len + bytes <= self.full_at || self.is_held || !self.may_change() {
            return false;
        }
        match self.next_file(file) {
            Ok((next, next_len)) => {
                self.erase_moved(file);
                self.end(file, *len);
                let finished = std::mem::replace(file, next);
                let format = self.carry.format();
                if self.keeps_finished {
                    if self.finished_files.len() == MOST_FINISHED {
                        self.finished_files.remove(0);
                        self.passed_over += 1;
                    }
                    self.finished_files.push(Finished { file: finished, len: *len, format });
                }
                *len = next_len;
                // Head and carry may be long: at least half of the size is for records.
                self.full_at = self.size.max(next_len + self.size / 2);
                self.error = None;
                true
            }
            Err(e) => {
                // Recovery must find the file that the output stays in.
                if let Ok(current) = file.identity() {
                    self.region.announce_output(current.inode, *len, self.next_number());
                }
                self.full_at = *len + bytes + self.size;
                self.error = Some(e);
                false
            }
        }
    }

    /// Creates the next file and puts it at the path. Returns the file and its length.
    fn next_file(&mut self, current: &OutputFile) -> io::Result<(OutputFile, u64)> {
        let is_current_at_path = self.is_at_path(current)?;
        let (next, len) = self.write_opening()?;
        let (numbered, number) = self.next_name();
        self.region.announce_output(next.file().and_then(platform::identity)?.inode, len, number);
        if is_current_at_path {
            link_to(&self.path, &numbered)?;
        }
        // The file is locked before another session can find it at the path.
        let file = next.replace_locked(&self.path).inspect_err(|_| {
            // Removes the second name of the current file again.
            let _ = if fs::symlink_metadata(&self.path).is_ok() {
                fs::remove_file(&numbered)
            } else {
                fs::rename(&numbered, &self.path)
            };
        })?;
        self.finished += 1;
        self.numbers.push_back(number);
        self.remove_oldest();
        Ok((OutputFile::new(file), len))
    }

    /// Returns the number that the newest file gets when it is finished.
    fn next_number(&self) -> u64 {
        self.numbers.back().map_or(1, |last| last.saturating_add(1))
    }

    /// Returns the name with the next number, and the number. Passes over files that somebody has made since
    /// the start.
    fn next_name(&mut self) -> (PathBuf, u64) {
        loop {
            let number = self.next_number();
            let name = files::numbered_path(&self.path, number);
            if fs::symlink_metadata(&name).is_err() || number == u64::MAX {
                return (name, number);
            }
            self.numbers.push_back(number);
        }
    }

    /// Erases in the file `old` the events that the next file has instead. An error leaves them in both.
    fn erase_moved(&mut self, old: &mut OutputFile) {
        let erasures = match &mut self.carry {
            Carry::Fxt(carry) => carry.moved(),
            Carry::TrackEvent(carry) => carry.moved(),
        };
        for Erasure { at, bytes } in erasures {
            let _ = old.replace_at(at, &bytes);
        }
    }

    /// Writes the end of a session behind the `len` bytes of a finished file. An error leaves it without.
    fn end(&self, old: &mut OutputFile, len: u64) {
        let end = stream::session_end(self.carry.format(), 0, clock::boottime());
        let _ = old.replace_at(len, &end);
    }

    /// Returns whether `current` is the file at the path; false: the path has no file.
    ///
    /// # Errors
    /// When the path has another file.
    fn is_at_path(&self, current: &OutputFile) -> io::Result<bool> {
        let is_current = match platform::identity_at(&self.path) {
            Ok(there) => there == current.identity()?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => false,
            Err(e) => return Err(e),
        };
        if !is_current && fs::symlink_metadata(&self.path).is_ok() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "another file is at the path of the output",
            ));
        }
        Ok(is_current)
    }

    /// Removes the oldest files that are too many, of this run or of an earlier one.
    fn remove_oldest(&mut self) {
        while self.keep > 0
            && self.numbers.len() as u64 >= self.keep
            && let Some(oldest) = self.numbers.pop_front()
        {
            let _ = fs::remove_file(files::numbered_path(&self.path, oldest));
        }
    }

    /// Creates the next file, with head and carry. Returns the file and its length.
    fn write_opening(&mut self) -> io::Result<(Unfinished, u64)> {
        let next = Unfinished::beside(&self.path)?;
        let (head, uuid) = &self.head;
        let mut opening = head.clone();
        stream::set_part(&mut opening, *uuid, self.finished + 1);
        match &mut self.carry {
            Carry::Fxt(carry) => carry.put(&mut opening),
            Carry::TrackEvent(carry) => carry.put_at(|packet| {
                opening.extend_from_slice(packet);
                (opening.len() - packet.len()) as u64
            }),
        }
        next.file()?.write_all(&opening)?;
        Ok((next, opening.len() as u64))
    }
}

/// Links the file at `path` to `name`, which is free. Moves the file where the file system has no hard links.
fn link_to(path: &Path, name: &Path) -> io::Result<()> {
    match fs::hard_link(path, name) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => fs::rename(path, name),
        linked => linked,
    }
}
