//! The file of a session's output, from its claim to the end of the session.

use std::fs::{File, Metadata};
use std::io;
use std::io::{IoSlice, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use hairline_perf::Held;

use crate::on::base::files::{leads_to, unlock};
use crate::on::base::lock::Mutex;
use crate::on::base::platform;
use crate::on::base::platform::facts::Identity;
use crate::on::base::platform::process;

/// The output of a session, locked until it is dropped.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: Held,
    identity: Option<Identity>,
    /// The path of a file that was created for a session which has not begun to record.
    new_at: Option<PathBuf>,
    /// Whether a command has opened it. Its path may lead nowhere in this process.
    is_lent: bool,
    /// The process that opened it. A forked child leaves it to its parent.
    process: u32,
}

/// The output's descriptor in the table that a forked child inherits, for [`close_in_child`]; -1 without one.
static NUMBER: AtomicI32 = AtomicI32::new(-1);
/// The identity of the file that it leads to.
static IDENTITY: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The files that sessions of this copy of Hairline have ended, at most [`MOST_ENDED`].
static ENDED: Mutex<Vec<Identity>> = Mutex::new(Vec::new());

/// Nobody has so many outputs; a program may have one for each minute of a day.
const MOST_ENDED: usize = 1 << 16;

impl OutputFile {
    pub(crate) fn new(file: File) -> Self {
        let identity = platform::identity(&file).ok();
        if let Some(Identity { device, inode }) = identity {
            IDENTITY[0].store(device, Ordering::Relaxed);
            IDENTITY[1].store(inode, Ordering::Relaxed);
        }
        if !platform::has_own_files() {
            NUMBER.store(platform::number_of(&file), Ordering::Relaxed);
        }
        Self { file: Held::new(file), identity, new_at: None, is_lent: false, process: process::id() }
    }

    /// Takes a file that was created at `path`, or where the link at `path` leads. It is removed unless
    /// [`keep`](Self::keep) is called.
    pub(crate) fn created(file: File, path: &Path) -> Self {
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        let new_at = is_file.then(|| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
        let mut this = Self::new(file);
        this.new_at = new_at;
        this
    }

    /// Takes the open file of a command.
    pub(crate) fn lent(file: File) -> Self {
        let mut this = Self::new(file);
        this.is_lent = true;
        this
    }

    /// Whether another file is at `path` now.
    pub(crate) fn has_left(&self, path: &Path) -> bool {
        !self.is_lent && self.identity != platform::identity_at(path).ok()
    }

    /// Whether the file was created for this session.
    pub(crate) fn is_new(&self) -> bool {
        self.new_at.is_some()
    }

    /// Keeps the file: the session records, or another one has it.
    pub(crate) fn keep(&mut self) {
        self.new_at = None;
    }

    /// Returns the open file, without a look at whether its descriptor still leads to it.
    pub(crate) fn get(&self) -> &File {
        self.file.unchecked()
    }

    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.get().metadata()
    }

    /// Returns the identity of the file.
    pub(crate) fn identity(&self) -> io::Result<Identity> {
        self.identity.ok_or_else(|| io::Error::other("the file has no identity"))
    }

    /// Removes the content that is to be replaced.
    pub(crate) fn make_empty(&mut self) -> io::Result<()> {
        // Not needed for a new file, and not every process may call it.
        if self.metadata()?.len() == 0 { Ok(()) } else { self.cut_to(0) }
    }

    /// Removes what follows the first `len` bytes, and writes there next.
    pub(crate) fn cut_to(&mut self, len: u64) -> io::Result<()> {
        let mut file = self.file.get()?;
        file.set_len(len)?;
        file.seek(SeekFrom::Start(len)).map(drop)
    }

    /// Replaces bytes at an offset. The next write goes behind them.
    pub(crate) fn replace_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.file.get()?;
        file.seek(SeekFrom::Start(offset))?;
        file.write_all(bytes)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.get()?.write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.file.get()?.write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.get()?.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        let number = platform::number_of(self.get());
        // This comes before the close, after which another file may get the same descriptor. A session after
        // this one may have stored its own descriptor already.
        let _ = NUMBER.compare_exchange(number, -1, Ordering::Relaxed, Ordering::Relaxed);
        let Ok(file) = self.file.get() else { return }; // the descriptor is the program's by now
        if let Some(path) = self.new_at.take().filter(|_| self.process == process::id())
            && leads_to(&path, file)
        {
            let _ = std::fs::remove_file(path);
        }
        // Closing the file is not enough: a child that another thread is just starting has it open too, until
        // its exec.
        unlock(file);
    }
}

/// Notes that a session of this copy of Hairline has ended the trace in this file: a later one may replace
/// it.
pub(crate) fn note_ended(file: Option<Identity>) {
    let Some(file) = file else { return };
    let Some(mut ended) = ENDED.lock_unless_lost_with_room(|ended| (ended, 1)) else { return };
    if !ended.contains(&file) {
        if ended.len() >= MOST_ENDED {
            ended.remove(0);
        }
        ended.push(file);
    }
}

/// Whether an earlier session of this copy of Hairline has ended the trace in this file.
pub(crate) fn is_of_an_earlier_session(file: Identity) -> bool {
    ENDED.lock_unless_lost().is_some_and(|ended| ended.contains(&file))
}

/// Notes that a forked child does not inherit the output's descriptor.
pub(crate) fn is_not_inherited() {
    NUMBER.store(-1, Ordering::Relaxed);
}

/// Closes the parent's output in a forked child. The child would otherwise keep the output locked, or the
/// reader of a pipe waiting, for its whole life.
pub(crate) fn close_in_child() {
    let number = NUMBER.swap(-1, Ordering::Relaxed);
    let [device, inode] = [0, 1].map(|n: usize| IDENTITY[n].load(Ordering::Relaxed));
    // The program may have closed it, and have another file with this number.
    if number >= 0 && platform::identity_of_number(number) == Some(Identity { device, inode }) {
        platform::close(number);
    }
}

#[cfg(test)]
mod tests {
    use crate::on::base::files::claim::{Ended, claim};
    use crate::on::base::files::output_file::{is_of_an_earlier_session, note_ended};
    use crate::on::base::platform::facts::Identity;

    #[test]
    fn the_outputs_of_a_program_with_many_are_all_known_as_its_own() {
        let outputs = || (0..60).map(|inode| Identity { device: u64::MAX, inode });
        for _ in 0..2 {
            outputs().for_each(|output| note_ended(Some(output)));
            assert!(outputs().all(is_of_an_earlier_session));
        }
    }

    #[test]
    fn a_dropped_output_is_unlocked_even_if_a_child_has_it_open() {
        let path = std::env::temp_dir().join(format!("hairline-output-{}", std::process::id()));
        let claim = || claim(&path, Ended::IsReplaced, "");
        let output = claim().expect("created");
        assert!(output.is_regular && output.path == path);
        let childs_copy = output.file.get().try_clone().expect("the same open file");
        let mut output = output.file;
        output.keep();
        drop(output);
        assert_eq!(claim().expect("free").path, path);
        drop(childs_copy);
        std::fs::remove_file(&path).expect("removed");
    }

    #[test]
    fn the_file_of_a_session_that_does_not_start_is_removed() {
        let path = std::env::temp_dir().join(format!("hairline-unused-{}", std::process::id()));
        drop(claim(&path, Ended::IsReplaced, "").expect("created"));
        assert!(!path.exists());
        std::fs::write(&path, []).expect("written");
        drop(claim(&path, Ended::IsReplaced, "").expect("opened"));
        assert!(path.exists(), "somebody else has made it");
        std::fs::remove_file(&path).expect("removed");
    }
}
