//! The output of a command, written completely or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};

use crate::incomplete::Removal;
use crate::input::is_standard;
use crate::links::{Followed, follow, open};
use crate::platform;
use crate::platform::facts::Identity;

/// An output. A new file is written beside its path and renamed when it is complete. So nobody sees an
/// incomplete file, and a failure leaves the old file unchanged.
pub(crate) enum Output {
    /// A file.
    File {
        /// The new file.
        written: NamedTempFile,
        /// The path that it gets at the end.
        path: PathBuf,
        /// Its removal by a signal.
        removal: Option<Removal>,
    },
    /// An output that cannot be replaced: stdout, a pipe, a device.
    Stream(Box<dyn Write + Send>),
}

impl Output {
    /// Creates an output at `path`, or on stdout for `-`.
    ///
    /// # Errors
    /// Fails if `path` is an input, a directory, another user's link, or a FIFO without a reader, and if no
    /// file can be created beside it.
    pub(crate) fn create(path: &Path, inputs: &[Option<Identity>]) -> io::Result<Self> {
        if is_standard(path) {
            let stdout = platform::stdout()?;
            // The command would read its own output without end.
            if platform::regular(&stdout)?.is_some_and(|stdout| is_input(stdout, inputs)) {
                return Err(an_input());
            }
            return Ok(Self::Stream(Box::new(io::stdout())));
        }
        // A link stays, and leads to the new file.
        let path = match follow(path)? {
            Followed::Name(path) => path,
            link @ Followed::OfProc(_) => return Self::stream(&link, inputs),
        };
        // Checks the name itself: a link created meanwhile is replaced or refused.
        if let Ok(about) = std::fs::symlink_metadata(&path) {
            if is_input(platform::identity_of_name(&path)?, inputs) {
                return Err(an_input());
            }
            if about.is_dir() {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
            }
            if !about.is_file() {
                return Self::stream(&Followed::Name(path), inputs);
            }
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // The `tempfile` crate would name the new file in its errors. Only its user may read it until it is
        // complete.
        let written =
            tempfile::Builder::new().prefix(".hairline-").make_in(folder, platform::create_private)?;
        Ok(Self::File { written, path, removal: None })
    }

    /// Opens an output that is written in place: a FIFO, a device, an open file of a process.
    fn stream(path: &Followed, inputs: &[Option<Identity>]) -> io::Result<Self> {
        let file = open(path)?;
        if let Some(identity) = platform::regular(&file)? {
            if is_input(identity, inputs) {
                return Err(an_input());
            }
            file.set_len(0)?;
        }
        Ok(Self::Stream(Box::new(file)))
    }

    /// Removes the incomplete file if a signal ends this process.
    pub(crate) fn or_nothing(mut self) -> io::Result<Self> {
        if let Self::File { written, removal, .. } = &mut self {
            *removal = Some(Removal::at_end(written.path())?);
        }
        Ok(self)
    }

    /// Moves the complete file to its path.
    pub(crate) fn keep(self) -> io::Result<()> {
        self.close()?.keep()
    }

    /// Closes the complete file.
    pub(crate) fn close(mut self) -> io::Result<Complete> {
        self.flush()?;
        match self {
            Self::File { written, path, removal } => {
                platform::give_usual_mode(written.as_file())?;
                Ok(Complete(Some((written.into_temp_path(), path, removal))))
            }
            Self::Stream(_) => Ok(Complete(None)),
        }
    }
}

/// A complete output, which is closed: a file that has no name yet, and the path that it gets.
pub(crate) struct Complete(Option<(TempPath, PathBuf, Option<Removal>)>);

impl Complete {
    /// Moves the file to its path. Without it, the file is removed.
    pub(crate) fn keep(self) -> io::Result<()> {
        let Some((written, path, _removal)) = self.0 else { return Ok(()) };
        written.persist(path).map_err(|e| e.error)
    }
}

fn is_input(identity: Identity, inputs: &[Option<Identity>]) -> bool {
    inputs.contains(&Some(identity))
}

fn an_input() -> io::Error {
    io::Error::other("it is an input, and inputs are never changed: choose another output")
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { written, .. } => written.as_file_mut().write(bytes),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { written, .. } => written.as_file_mut().flush(),
            Self::Stream(stream) => stream.flush(),
        }
    }
}
