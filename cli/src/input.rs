//! What a command reads.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use rustix::fs::OFlags;

/// An input: a file, or stdin for `-`. How far it has been read is shown on a terminal.
pub(crate) struct Input {
    name: String,
    reader: Box<dyn Read>,
    identity: Option<Identity>,
    bar: ProgressBar,
}

/// A file, whatever the path to it: device and inode.
pub(crate) type Identity = (u64, u64);

/// Whether a path stands for stdin or stdout.
pub(crate) fn is_standard(path: &Path) -> bool {
    path == Path::new("-")
}

/// Which file is at a path, if there is one.
pub(crate) fn identity(path: &Path) -> Option<Identity> {
    std::fs::metadata(path).ok().map(|about| identity_of(&about))
}

/// Which file it is that is so.
pub(crate) fn identity_of(about: &Metadata) -> Identity {
    (about.dev(), about.ino())
}

/// Opens a regular file for reading. Returns it with its length.
///
/// # Errors
/// Anything else at the path is an error, at once: a FIFO is not waited for.
pub(crate) fn open_file(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if about.is_file() { Ok((file, about.len())) } else { Err(io::Error::other("it is no regular file")) }
}

impl Input {
    /// Opens what a path says. A FIFO is waited for, as by every program that reads: whoever writes to it may
    /// come later, and the shell's `<(...)` is one.
    pub(crate) fn open(path: &PathBuf) -> io::Result<Self> {
        if is_standard(path) {
            let reader = Box::new(io::stdin().lock());
            return Ok(Self { name: "stdin".to_owned(), reader, identity: None, bar: bar(None, "stdin") });
        }
        let file = File::open(path)?;
        let about = file.metadata()?;
        if about.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
        }
        let name = path.display().to_string();
        let bar = bar(about.is_file().then_some(about.len()), &name);
        Ok(Self { name, reader: Box::new(file), identity: Some(identity_of(&about)), bar })
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Which file it is.
    pub(crate) fn identity(&self) -> Option<Identity> {
        self.identity
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.bar.inc(read as u64);
        Ok(read)
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A bar on stderr, which shows nothing where that is no terminal.
fn bar(len: Option<u64>, name: &str) -> ProgressBar {
    let (bar, template) = match len {
        Some(len) => (ProgressBar::new(len), "{msg} [{bar:30}] {bytes}/{total_bytes} {bytes_per_sec} {eta}"),
        None => (ProgressBar::no_length(), "{msg} {spinner} {bytes} {bytes_per_sec}"),
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_message(name.to_owned())
}
