//! Where drained bytes go: a file, memory, or any writer.

use std::io;
use std::io::{IoSlice, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use hairline_shm::{ChunkInfo, Output};

use crate::on::base::files::OutputFile;
use crate::on::session::rotation::Rotation;
use crate::output::MemoryOutput;

/// Bytes that the longest tail takes, and some more.
pub(crate) const TAIL_ROOM: u64 = 2 << 10;

pub(crate) enum Target {
    /// The file, and how long it is.
    File(OutputFile, u64),
    Memory(MemoryOutput),
    Writer(Box<dyn Write + Send>),
}

/// The session's output.
pub(crate) struct Sink {
    target: Target,
    pub(crate) written: u64,
    /// The most that may be written.
    limit: Option<u64>,
    /// Lets the output go on in another file now and then.
    rotation: Option<Rotation>,
    /// Whether something was refused since it would have gone beyond the limit.
    is_full: bool,
    /// Compresses what is drained, but not what the writer thread itself writes: the stream's head, its markers and its
    /// statistics can be found without decompressing.
    #[cfg(feature = "compress")]
    pub(crate) compressor: Option<crate::on::session::compress::Compressor>,
}

impl Sink {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target,
            written: 0,
            limit: None,
            rotation: None,
            is_full: false,
            #[cfg(feature = "compress")]
            compressor: None,
        }
    }

    /// Takes no more than so many bytes in all, [`TAIL_ROOM`] of which are kept for the tail.
    pub(crate) fn limit_to(&mut self, bytes: Option<u64>) {
        self.limit = bytes.map(|bytes| bytes.saturating_sub(TAIL_ROOM));
    }

    /// Where the output is a file: goes on in others. What was written so far is their head.
    pub(crate) fn rotate(&mut self, rotation: Rotation) {
        self.rotation = Some(rotation);
    }

    /// Why the output did not go on in another file, if it should have.
    pub(crate) fn rotation_failed(&self) -> Option<&io::Error> {
        self.rotation.as_ref().and_then(Rotation::failed)
    }

    /// Whether a write neither waits for a reader nor runs code of the program.
    pub(crate) fn takes_at_once(&self) -> bool {
        !matches!(self.target, Target::Writer(_))
    }

    /// Whether the limit has been met. From then on there is room for the tail only.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// What was kept for the tail may be used.
    pub(crate) fn begin_tail(&mut self) {
        self.limit = self.limit.map(|limit| limit + TAIL_ROOM);
    }

    /// Whether the file at `path` is another one than this, or none: it was removed, or replaced.
    pub(crate) fn has_vanished(&self, path: &Path) -> bool {
        let Target::File(file, _) = &self.target else { return false };
        let identity = |m: std::fs::Metadata| (m.dev(), m.ino());
        file.metadata().ok().map(identity) != std::fs::metadata(path).ok().map(identity)
    }

    /// Writes bytes that are not compressed: those of the writer thread itself.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_plain(&[IoSlice::new(bytes)])
    }

    /// This output, uncompressed.
    pub(crate) fn plain(&mut self) -> Plain<'_> {
        Plain(self)
    }

    /// Pushes out what a writer may hold back.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Writer(writer) => writer.flush(),
            Target::File(..) | Target::Memory(_) => Ok(()),
        }
    }
}

impl Output for Sink {
    fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        #[cfg(feature = "compress")]
        if let Some(mut compressor) = self.compressor.take() {
            let _ = self.rotation.as_mut().map(|rotation| rotation.look(parts)); // packets stay as they are
            let result = compressor.pack(parts).and_then(|packed| self.write_plain(&[IoSlice::new(packed)]));
            self.compressor = Some(compressor);
            return result;
        }
        self.write_followed(parts)
    }

    fn next_file(&mut self, bytes: u64) -> io::Result<bool> {
        let Self { target: Target::File(file, len), rotation: Some(rotation), .. } = self else {
            return Ok(false);
        };
        Ok(rotation.turn(file, len, bytes))
    }

    fn sequence_ended(&mut self, info: ChunkInfo) {
        if let Some(rotation) = &mut self.rotation {
            rotation.sequence_ended(info);
        }
    }

    fn room(&self) -> Option<u64> {
        let of_file = match (&self.rotation, &self.target) {
            (Some(rotation), Target::File(_, len)) => Some(rotation.room(*len)),
            _ => None,
        };
        let in_all = self.limit.map(|limit| limit.saturating_sub(self.written));
        #[cfg(feature = "compress")]
        let in_all = in_all.filter(|_| self.compressor.is_none()); // what it will be is known when it is packed
        of_file.into_iter().chain(in_all).min()
    }

    fn file_len(&self) -> Option<u64> {
        match self.target {
            Target::File(_, len) => Some(len),
            Target::Memory(_) | Target::Writer(_) => None,
        }
    }
}

/// See [`Sink::plain`].
pub(crate) struct Plain<'s>(&'s mut Sink);

impl Output for Plain<'_> {
    fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.0.write_followed(parts)
    }

    fn next_file(&mut self, bytes: u64) -> io::Result<bool> {
        self.0.next_file(bytes)
    }

    fn file_len(&self) -> Option<u64> {
        self.0.file_len()
    }
}

impl Sink {
    /// The same, and the rotation knows of it.
    fn write_followed(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        match self.rotation.as_mut().and_then(|rotation| rotation.look(parts)) {
            Some(patched) => {
                let parts: Vec<IoSlice<'_>> = patched.iter().map(|part| IoSlice::new(part)).collect();
                self.write_plain(&parts)
            }
            None => self.write_plain(parts),
        }
    }

    /// All of the parts, or none.
    fn write_plain(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let bytes: u64 = parts.iter().map(|p| p.len() as u64).sum();
        if self.limit.is_some_and(|limit| self.written + bytes > limit) {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        match &mut self.target {
            Target::Memory(memory) => memory.append(parts),
            Target::Writer(writer) => write_vectored(writer, parts)?,
            Target::File(file, len) => match write_vectored(file, parts) {
                Ok(()) => *len += bytes,
                Err(e) => {
                    // Half a record at the end helps nobody: back to the last whole one.
                    let _ = file.set_len(*len).and_then(|()| (&**file).seek(SeekFrom::Start(*len)));
                    return Err(e);
                }
            },
        }
        self.written += bytes;
        Ok(())
    }
}

/// Writes all parts with as few calls as the writer lets.
fn write_vectored(writer: &mut impl Write, parts: &[IoSlice<'_>]) -> io::Result<()> {
    let mut owned = parts.to_vec();
    let mut rest = owned.as_mut_slice();
    IoSlice::advance_slices(&mut rest, 0); // drops empty ones
    while !rest.is_empty() {
        match writer.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut rest, n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes at most three bytes at a time, and is interrupted every other time.
    struct Slow(Vec<u8>, bool);

    impl Write for Slow {
        fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let n = buf.len().min(3);
            self.0.extend_from_slice(&buf[..n]);
            Ok(n)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_writer_that_takes_little_gets_all_of_it() {
        let mut slow = Slow(Vec::new(), false);
        let parts = [b"".as_slice(), b"hair", b"", b"line is long", b"!"].map(IoSlice::new);
        write_vectored(&mut slow, &parts).unwrap();
        assert_eq!(slow.0, b"hairline is long!");
    }
}
