//! What a command writes: whole, or not at all.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::input::{Identity, identity, is_standard};

/// An output. A file is written beside its place and takes it when it is whole: nobody ever sees a part of it, and an input that fails
/// leaves what was there before.
pub(crate) enum Output {
    /// A file.
    File {
        /// Where it is being written.
        written: NamedTempFile,
        /// Its place.
        path: PathBuf,
    },
    /// Something that cannot be replaced: stdout, a pipe, a device.
    Stream(Box<dyn Write>),
}

/// What a new file's permissions are cut out of by the user's mask.
const MODE: u32 = 0o666;

impl Output {
    /// An output at `path`, or on stdout for `-`.
    pub(crate) fn create(path: &Path, inputs: &[Option<Identity>]) -> io::Result<Self> {
        if is_standard(path) {
            return Ok(Self::Stream(Box::new(io::stdout().lock())));
        }
        // A link stays, and leads to the new file.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(there) = identity(&path) {
            if inputs.contains(&Some(there)) {
                return Err(io::Error::other(
                    "it is an input, and inputs stay as they are: choose another output",
                ));
            }
            let about = std::fs::metadata(&path)?;
            if about.is_dir() {
                return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
            }
            if !about.is_file() {
                let file: File = OpenOptions::new().write(true).open(&path)?;
                return Ok(Self::Stream(Box::new(file)));
            }
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix(".hairline-").permissions(Permissions::from_mode(MODE));
        Ok(Self::File { written: builder.tempfile_in(folder)?, path })
    }

    /// Puts it in its place.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        self.flush()?;
        match self {
            Self::File { written, path } => written.persist(path).map(drop).map_err(|e| e.error),
            Self::Stream(_) => Ok(()),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File { written, .. } => written.write(bytes),
            Self::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File { written, .. } => written.flush(),
            Self::Stream(stream) => stream.flush(),
        }
    }
}
