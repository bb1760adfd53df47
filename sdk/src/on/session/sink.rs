//! The sink of drained bytes: a file, memory, or any `Write`.

use std::io;
use std::io::{IoSlice, Write};
use std::path::Path;

use hairline_formats::track_event::SequenceId;
use hairline_shm::{ChunkInfo, Output};

use crate::on::base::files::output_file;
use crate::on::base::files::output_file::OutputFile;
use crate::on::base::platform;
use crate::on::session::rotation::{Finished, Rotation};
use crate::on::traced::output::ServiceOutput;
use crate::output::MemoryOutput;

/// Bytes that a size limit reserves for the tail. The longest tail is shorter.
pub(crate) const TAIL_ROOM: u64 = 2 << 10;

/// The target of a sink's bytes.
pub(crate) enum Target {
    /// The file, and its length in bytes.
    File(OutputFile, u64),
    /// A pipe or a device, which the session has opened.
    Pipe(OutputFile),
    Memory(MemoryOutput),
    /// The program's own.
    Writer(Box<dyn Write + Send>),
    /// Perfetto's tracing service.
    Service(Box<ServiceOutput>),
}

/// The session's output.
pub(crate) struct Sink {
    target: Target,
    /// Bytes written, over all files of a rotation.
    pub(crate) written: u64,
    /// The upper limit of `written`.
    limit: Option<u64>,
    /// Continues the output in further files.
    rotation: Option<Rotation>,
    /// Whether a write was refused because of the limit.
    is_at_limit: bool,
    /// Whether the limit is what a file had room for when a write failed.
    is_full: bool,
    /// Compresses drained bytes. The drain thread's own packets (the stream's head, markers and statistics)
    /// stay uncompressed, so that readers find them without decompression.
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
            is_at_limit: false,
            is_full: false,
            #[cfg(feature = "compress")]
            compressor: None,
        }
    }

    /// Limits the output to `bytes`, of which [`TAIL_ROOM`] is reserved for the tail.
    pub(crate) fn limit_to(&mut self, bytes: Option<u64>) {
        self.limit = bytes.map(|bytes| bytes.saturating_sub(TAIL_ROOM));
    }

    /// Makes the output rotate its files. The output is a file that has only the stream's head.
    pub(crate) fn rotate(&mut self, rotation: Rotation) {
        self.rotation = Some(rotation);
    }

    /// Returns the error that kept the output in its present file.
    pub(crate) fn rotation_error(&self) -> Option<&io::Error> {
        self.rotation.as_ref().and_then(Rotation::error)
    }

    /// Returns the number of files that are finished.
    pub(crate) fn finished_files(&self) -> u64 {
        self.rotation.as_ref().map_or(0, Rotation::finished)
    }

    /// Keeps each finished file of a rotation for [`take_finished`](Self::take_finished).
    pub(crate) fn keep_finished(&mut self) {
        if let Some(rotation) = &mut self.rotation {
            rotation.keep_finished();
        }
    }

    /// Returns the files that a rotation has finished since the last call, the oldest first.
    pub(crate) fn take_finished(&mut self) -> Vec<Finished> {
        self.rotation.as_mut().map(Rotation::take_finished).unwrap_or_default()
    }

    /// See [`Rotation::passed_over`].
    pub(crate) fn passed_over(&self) -> u64 {
        self.rotation.as_ref().map_or(0, Rotation::passed_over)
    }

    /// Runs `f`, in which the output stays in its present file.
    pub(crate) fn in_present_file<R>(&mut self, f: impl FnOnce(&mut Self) -> R) -> R {
        let was_held = self.hold(true);
        let result = f(self);
        self.hold(was_held);
        result
    }

    /// Keeps the output in its present file from here on.
    pub(crate) fn stay(&mut self) {
        self.hold(true);
    }

    fn hold(&mut self, is_held: bool) -> bool {
        self.rotation.as_mut().is_some_and(|rotation| rotation.hold(is_held))
    }

    /// Tells the rotation, or the service, that a pass begins now.
    pub(crate) fn pass_begins(&mut self, now: u64) {
        if let Some(rotation) = &mut self.rotation {
            rotation.pass_begins(now);
        }
        if let Target::Service(service) = &mut self.target {
            service.pass_begins(now);
        }
    }

    /// Tells the rotation that the pass has ended. Returns the number of events that the target has no place for.
    pub(crate) fn pass_ended(&mut self) -> io::Result<u64> {
        if let Some(rotation) = &mut self.rotation {
            rotation.pass_ended();
        }
        let Target::Service(service) = &mut self.target else { return Ok(0) };
        service.pass_ended()?;
        Ok(service.take_lost())
    }

    /// Returns whether the target is a file or memory. Then a write neither waits for a reader nor runs the
    /// program's code.
    pub(crate) fn is_file_or_memory(&self) -> bool {
        matches!(self.target, Target::File(..) | Target::Memory(_))
    }

    /// Returns whether a write runs the program's code.
    pub(crate) fn is_of_program(&self) -> bool {
        matches!(self.target, Target::Writer(_))
    }

    /// Returns the number of the open file, if the session has opened one.
    pub(crate) fn number(&self) -> Option<i32> {
        match &self.target {
            Target::File(file, _) | Target::Pipe(file) => Some(platform::number_of(file.get())),
            Target::Service(service) => Some(service.number()),
            Target::Memory(_) | Target::Writer(_) => None,
        }
    }

    /// Returns whether a write was refused because of the size limit. After that only the tail has room, once
    /// [`release_tail_room`](Self::release_tail_room) was called.
    pub(crate) fn is_at_limit(&self) -> bool {
        self.is_at_limit
    }

    /// Returns whether the target is a file that had no room for a write: a full disk, or a limit of the system.
    /// It takes what it had room for, but for [`TAIL_ROOM`].
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Releases the bytes that the limit reserves for the tail.
    pub(crate) fn release_tail_room(&mut self) {
        self.limit = self.limit.map(|limit| limit + TAIL_ROOM);
        self.is_at_limit = false; // an error from here on is not the limit's
    }

    /// Returns whether the sink's file is no longer at `path`: the file was removed or replaced.
    pub(crate) fn has_vanished(&self, path: &Path) -> bool {
        matches!(&self.target, Target::File(file, _) if file.has_left(path))
    }

    /// Removes what the file held, and writes the stream's head, uncompressed. A file that was created for the
    /// session stays from here on.
    pub(crate) fn begin(&mut self, head: &[u8]) -> io::Result<()> {
        if let Target::File(file, _) = &mut self.target {
            file.make_empty()?;
        }
        if let Target::Service(service) = &mut self.target {
            self.written += head.len() as u64;
            return service.begin(head);
        }
        self.write_within_limit(&[IoSlice::new(head)])?;
        if let Target::File(file, _) = &mut self.target {
            file.keep();
        }
        Ok(())
    }

    /// Writes the end of the session, which is the last record of its trace.
    pub(crate) fn end(&mut self, end: &[u8]) -> io::Result<()> {
        self.write_within_limit(&[IoSlice::new(end)])?;
        if let Target::File(file, _) = &self.target {
            output_file::note_ended(file.identity().ok());
        }
        Ok(())
    }

    /// Returns this sink without its compression.
    pub(crate) fn uncompressed(&mut self) -> Uncompressed<'_> {
        Uncompressed(self)
    }

    /// Flushes a `Write`.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Writer(writer) => writer.flush(),
            Target::Pipe(pipe) => pipe.flush(),
            Target::Service(service) => service.flush(),
            Target::File(..) | Target::Memory(_) => Ok(()),
        }
    }
}

impl Output for Sink {
    fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        #[cfg(feature = "compress")]
        if let Some(mut compressor) = self.compressor.take() {
            let result = self.write_compressed(&mut compressor, parts);
            self.compressor = Some(compressor);
            return result;
        }
        self.write_patched(parts)
    }

    fn next_file(&mut self, bytes: u64) -> io::Result<bool> {
        let Self { target: Target::File(file, len), rotation: Some(rotation), .. } = self else {
            return Ok(false);
        };
        Ok(rotation.next_file_if_full(file, len, bytes))
    }

    fn sequence_ended(&mut self, info: ChunkInfo) {
        if let Some(rotation) = &mut self.rotation {
            rotation.sequence_ended(info);
        }
        if let Target::Service(service) = &mut self.target {
            service.sequence_ended(SequenceId(info.sequence));
        }
    }

    fn room(&self) -> Option<u64> {
        let in_file = match (&self.rotation, &self.target) {
            (Some(rotation), Target::File(_, len)) => rotation.room(*len),
            _ => None,
        };
        let in_total = self.limit.map(|limit| limit.saturating_sub(self.written));
        #[cfg(feature = "compress")]
        // The compressed size is not known yet.
        let in_total = in_total.filter(|_| self.compressor.is_none() || self.is_full);
        in_file.into_iter().chain(in_total).min()
    }

    fn file_len(&self) -> Option<u64> {
        match self.target {
            Target::File(_, len) => Some(len),
            Target::Memory(_) | Target::Pipe(_) | Target::Writer(_) | Target::Service(_) => None,
        }
    }
}

/// A sink without its compression: see [`Sink::uncompressed`].
pub(crate) struct Uncompressed<'s>(&'s mut Sink);

impl Output for Uncompressed<'_> {
    fn write_all_parts(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        self.0.write_patched(parts)
    }

    fn next_file(&mut self, bytes: u64) -> io::Result<bool> {
        self.0.next_file(bytes)
    }

    fn file_len(&self) -> Option<u64> {
        self.0.file_len()
    }
}

impl Sink {
    /// Writes the parts compressed. Only `TrackEvent` packets are.
    #[cfg(feature = "compress")]
    fn write_compressed(
        &mut self,
        compressor: &mut crate::on::session::compress::Compressor,
        parts: &[IoSlice<'_>],
    ) -> io::Result<()> {
        let Some(rotation) = &mut self.rotation else {
            return self.write_within_limit(&[IoSlice::new(compressor.pack(parts)?)]);
        };
        let (rest, apart) = rotation.take_apart(parts);
        let rest: Vec<IoSlice<'_>> = rest.iter().map(|part| IoSlice::new(part)).collect();
        let packed = compressor.pack(&rest)?;
        // Not compressed, so that they can be erased.
        let apart = IoSlice::new(&apart);
        let at = self.file_len().map(|len| len + packed.len() as u64);
        if let Some(rotation) = &mut self.rotation {
            let _ = rotation.patch(&[apart], at); // no packet is patched
        }
        self.write_within_limit(&[IoSlice::new(packed), apart])
    }

    /// Writes the parts, with the patches of the rotation.
    fn write_patched(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let at = self.file_len();
        match self.rotation.as_mut().and_then(|rotation| rotation.patch(parts, at)) {
            Some(patched) => {
                let parts: Vec<IoSlice<'_>> = patched.iter().map(|part| IoSlice::new(part)).collect();
                self.write_within_limit(&parts)
            }
            None => self.write_within_limit(parts),
        }
    }

    /// Writes all of the parts. Writes none if they would exceed the limit or if the file fails.
    fn write_within_limit(&mut self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        let bytes: u64 = parts.iter().map(|p| p.len() as u64).sum();
        if self.limit.is_some_and(|limit| self.written + bytes > limit) {
            self.is_at_limit = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        match &mut self.target {
            Target::Memory(memory) => memory.append(parts),
            Target::Writer(writer) => write_vectored(writer, parts).1?,
            Target::Service(service) => service.write(parts)?,
            Target::Pipe(pipe) => write_vectored(pipe, parts).1?,
            Target::File(file, len) => match write_vectored(file, parts) {
                (_, Ok(())) => *len += bytes,
                (taken, Err(e)) => {
                    // Removes the incomplete record at the file's end.
                    let _ = file.cut_to(*len);
                    let limit = self.written + taken.saturating_sub(TAIL_ROOM);
                    self.limit = Some(self.limit.map_or(limit, |before| before.min(limit)));
                    self.is_full = true;
                    return Err(e);
                }
            },
        }
        self.written += bytes;
        Ok(())
    }
}

/// Writes all parts, with as few calls as the writer permits. Returns the number of bytes that were taken.
fn write_vectored(writer: &mut impl Write, parts: &[IoSlice<'_>]) -> (u64, io::Result<()>) {
    let mut owned = parts.to_vec();
    let mut rest = owned.as_mut_slice();
    let mut taken = 0;
    IoSlice::advance_slices(&mut rest, 0); // skips empty slices
    while !rest.is_empty() {
        match writer.write_vectored(rest) {
            Ok(0) => return (taken, Err(io::ErrorKind::WriteZero.into())),
            Ok(n) => {
                taken += n as u64;
                IoSlice::advance_slices(&mut rest, n);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return (taken, Err(e)),
        }
    }
    (taken, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accepts at most three bytes in a call, and is interrupted in every other call.
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
    fn a_writer_with_short_writes_and_interrupts_gets_all_bytes() {
        let mut slow = Slow(Vec::new(), false);
        let parts = [b"".as_slice(), b"hair", b"", b"line is long", b"!"].map(IoSlice::new);
        let (taken, written) = write_vectored(&mut slow, &parts);
        written.unwrap();
        assert_eq!((&slow.0[..], taken), (&b"hairline is long!"[..], 17));
    }
}
