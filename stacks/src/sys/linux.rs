//! Linux.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// `O_NONBLOCK` as on all processors that Rust supports but MIPS and SPARC.
const NONBLOCK: i32 = 0o4000;

/// Opens a file for reading. Does not wait for the writer of a FIFO.
pub(crate) fn open_at_once(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(NONBLOCK).open(path)
}

/// Returns the number of bytes that a file has on disk, without its holes.
pub(crate) fn size_on_disk(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.blocks().saturating_mul(512))
}
