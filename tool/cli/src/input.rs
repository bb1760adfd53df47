//! The input of a command.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hairline_convert::{Error, ReadAhead, TraceReader, Unpacked, open, open_twice};
use indicatif::{ProgressBar, ProgressStyle};

use crate::opening::{Opening, Threads};
use crate::platform;
use crate::platform::facts::Identity;
use crate::text::shown;

/// An input: a file, or stdin for `-`, unpacked if it is compressed. Shows a progress bar on a terminal.
pub(crate) struct Input {
    name: String,
    reader: Box<dyn Read>,
    opening: Opening,
    /// The number of bytes that were read so far, before they are unpacked.
    count: Arc<AtomicU64>,
    identity: Option<Identity>,
    /// The path, if the input can be read a second time.
    path: Option<PathBuf>,
    bar: ProgressBar,
}

/// Whether a path means stdin or stdout.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// The identity of the file at a path, if it exists.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    platform::identity_at(path).ok()
}

/// The identity of the file that an input is, so that no output replaces it. For `-` it is that of stdin, if
/// stdin is a regular file, as after `< FILE`.
pub(crate) fn input_identity(path: &Path) -> Option<Identity> {
    if is_standard(path) { stdin_file() } else { identity(path) }
}

fn stdin_file() -> Option<Identity> {
    platform::stdin().and_then(|file| platform::regular(&file)).ok().flatten()
}

/// The identity of an input that can be read only once: a FIFO, a socket, a terminal, and stdin whatever it
/// is. `None` for files and for what does not exist.
pub(crate) fn stream_identity(path: &Path) -> Option<Identity> {
    if is_standard(path) {
        return platform::stdin().and_then(|file| platform::identity(&file)).ok();
    }
    let about = std::fs::metadata(path).ok()?;
    if about.is_file() || about.is_dir() { None } else { identity(path) }
}

/// Opens a regular file for reading. Returns it with its length.
///
/// # Errors
/// Fails at once if the path is no regular file. Never waits for a FIFO.
pub(crate) fn open_file(path: &Path) -> io::Result<(File, u64)> {
    let file = platform::open_at_once(path)?;
    let about = file.metadata()?;
    if about.is_file() { Ok((file, about.len())) } else { Err(io::Error::other("it is no regular file")) }
}

impl Input {
    /// Opens a path. Waits for the writer of a FIFO, as other programs do, because the shell's `<(...)` is
    /// one.
    pub(crate) fn open(path: &PathBuf, opening: Opening) -> io::Result<Self> {
        if is_standard(path) {
            let (name, bar) = ("stdin".to_owned(), bar(None, "stdin"));
            let count = Arc::<AtomicU64>::default();
            let reader = reader(&name, io::stdin(), None, Arc::clone(&count), opening.threads);
            return Ok(Self { name, reader, opening, count, identity: stdin_file(), path: None, bar });
        }
        let folder = || io::Error::new(io::ErrorKind::IsADirectory, "it is a folder");
        // Windows opens no folder.
        let file = File::open(path).map_err(|e| if path.is_dir() { folder() } else { e })?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(folder());
        }
        let identity = platform::identity(&file)?;
        let name = shown(path);
        let bar = bar(about.is_file().then_some(about.len()), &name);
        let path = about.is_file().then(|| path.clone());
        let regular = about.is_file().then(|| file.try_clone()).transpose()?;
        let count = Arc::<AtomicU64>::default();
        let reader = reader(&name, file, regular, Arc::clone(&count), opening.threads);
        Ok(Self { name, reader, opening, count, identity: Some(identity), path, bar })
    }

    /// The input's name in messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a regular file, which can be read a second time.
    pub(crate) fn is_file(&self) -> bool {
        self.path.is_some()
    }

    /// A reader for the trace. It reads a regular file a second time if it has to.
    pub(crate) fn trace(self) -> Result<Box<dyn TraceReader>, Error> {
        let (identity, threads) = (self.identity, self.opening.threads);
        let format = self.opening.format();
        let Some(path) = self.path.clone() else { return open(self, format) };
        open_twice(self, format, move || reopened(&path, identity, threads))
    }

    /// Returns the number of bytes that were read so far, before they are unpacked.
    pub(crate) fn bytes(&self) -> impl Fn() -> u64 + use<> {
        let count = Arc::clone(&self.count);
        move || count.load(Ordering::Relaxed)
    }

    /// The identity of the file, also of one that is stdin.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer);
        self.bar.set_position(self.count.load(Ordering::Relaxed));
        read
    }
}

/// A reader for an open input, which is unpacked on a thread of its own if there are several.
fn reader(
    name: &str,
    input: impl Read + Send + 'static,
    file: Option<File>,
    count: Arc<AtomicU64>,
    threads: Threads,
) -> Box<dyn Read> {
    let name = name.to_owned();
    let open = move || Unpacked::new(name, Box::new(Counted { input, count }), file);
    if threads.are_several() { Box::new(ReadAhead::new(open)) } else { Box::new(open()) }
}

/// Opens an input for the second time.
fn reopened(path: &Path, identity: Option<Identity>, threads: Threads) -> io::Result<Box<dyn Read>> {
    let (file, _) = open_file(path)?;
    if Some(platform::identity(&file)?) != identity {
        return Err(io::Error::other("another file has its name now"));
    }
    let regular = file.try_clone()?;
    Ok(reader(&shown(path), file, Some(regular), Arc::default(), threads))
}

/// Counts the bytes that are read.
struct Counted<R> {
    input: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed); // no other data depends on it
        Ok(read)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A progress bar on stderr, which is invisible without a terminal.
fn bar(len: Option<u64>, name: &str) -> ProgressBar {
    let (bar, template) = match len {
        Some(len) => (ProgressBar::new(len), "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}"),
        None => (ProgressBar::no_length(), "{msg} {spinner} {bytes} {bytes_per_sec}"),
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_message(name.to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_obeys_nothing_in_a_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a\u{1b}[2J\u{9b}2J\n.json");
        std::fs::write(&path, "[]").expect("written");
        let input = Input::open(&path, Opening::default()).expect("opened");
        for text in [input.bar.message(), input.name().to_owned()] {
            assert!(text.ends_with(".json") && !text.contains(char::is_control), "{text:?}");
        }
    }
}
