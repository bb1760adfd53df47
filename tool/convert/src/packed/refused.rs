//! The errors of inputs that are not unpacked here. Each names the command that unpacks the input.

use std::io;

/// The limit for the memory of a decoder, in bytes: the window of `zstd --long=27`. `xz -9` needs half.
pub(super) const MOST_MEMORY: u64 = 128 << 20;

/// The error of a compression that is not read.
pub(super) fn refused(packing: &str, command: &str) -> io::Error {
    error(io::ErrorKind::Other, packing, command)
}

fn error(kind: io::ErrorKind, packing: &str, command: &str) -> io::Error {
    io::Error::new(kind, format!("it is compressed with {packing}: unpack it with `{command}`"))
}

/// The error of a decoder that needs more than [`MOST_MEMORY`].
pub(super) fn too_large(packing: &str, command: &str) -> io::Error {
    let packing = format!("{packing} in a way that needs more than {} MiB", MOST_MEMORY >> 20);
    error(io::ErrorKind::FileTooLarge, &packing, command)
}
