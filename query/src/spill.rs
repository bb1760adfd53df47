//! The folder for what does not fit into memory. It is removed however the program ends, but for SIGKILL.

use std::io;
use std::path::Path;

/// A folder that nobody else can read. It is empty at first.
pub(crate) struct Spill(tempfile::TempDir);

impl Spill {
    /// Also ends the program at SIGINT, SIGTERM and SIGHUP, without the folder.
    pub(crate) fn new() -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("hairline-query-");
        // The crate's own mode is that of the umask.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir()?;
        end_without(folder.path())?;
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

#[cfg(unix)]
fn end_without(folder: &Path) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    let folder = folder.to_owned();
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            // A file may be created between the two steps of the first removal.
            if std::fs::remove_dir_all(&folder).is_err() {
                let _ = std::fs::remove_dir_all(&folder);
            }
            std::process::exit(128 + signal);
        }
    })?;
    Ok(())
}

#[cfg(not(unix))]
fn end_without(_: &Path) -> io::Result<()> {
    Ok(())
}
