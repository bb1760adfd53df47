//! Compressed inputs: gzip, zstd, xz and zip.

mod frames;
mod member;
mod refused;

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::Range;
use std::rc::Rc;

use flate2::bufread::GzDecoder;
use lzma_rust2::XzReader;

use crate::format::is_gzip;
pub(crate) use crate::packed::frames::Frames;
use crate::packed::refused::{MOST_MEMORY, refused, too_large};

/// The number of bytes that decide about the compression.
const DETECTED_BY: usize = 6;

/// A compression, by the first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Packing {
    Gzip,
    Zstd,
    Xz,
    Zip,
    /// One that is not unpacked. The command that unpacks it.
    Other(&'static str),
}

impl Packing {
    fn of(beginning: &[u8]) -> Option<Self> {
        // The first is a frame; the others are frames without content, which may precede it.
        let is_zstd =
            |b: &[u8]| matches!(b, [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..]);
        match beginning {
            bytes if is_gzip(bytes) => Some(Self::Gzip),
            bytes if is_zstd(bytes) => Some(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => Some(Self::Zip),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Some(Self::Other("bunzip2")),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Other("unlz4")),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c] => Some(Self::Other("7z x")),
            _ => None,
        }
    }
}

/// An input that is unpacked if it is compressed with gzip, zstd, xz or zip. Any other one is read as it is.
/// A decoder takes at most 128 MiB.
///
/// ```
/// use std::io::Read;
/// use hairline_convert::Unpacked;
///
/// let mut plain = String::new();
/// Unpacked::new("a.json".to_owned(), Box::new(&b"[]"[..]), None).read_to_string(&mut plain)?;
/// assert_eq!(plain, "[]");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Unpacked(State);

enum State {
    /// Its first bytes are not read yet.
    Unread {
        name: String,
        input: Box<dyn Read>,
        file: Option<File>,
    },
    Open(Box<dyn Read>),
    Failed,
}

impl std::fmt::Debug for Unpacked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Unpacked").finish_non_exhaustive()
    }
}

impl Unpacked {
    /// An input with a name for messages. `file` is the input as a regular file, if it is one: zip archives
    /// are read from their end.
    #[must_use]
    pub fn new(name: String, input: Box<dyn Read>, file: Option<File>) -> Self {
        Self(State::Unread { name, input, file })
    }

    /// The content. Opens it first, because that may wait for the writer of a pipe.
    fn content(&mut self) -> io::Result<&mut dyn Read> {
        if let State::Unread { .. } = self.0
            && let State::Unread { name, input, file } = std::mem::replace(&mut self.0, State::Failed)
        {
            self.0 = State::Open(unpacked(&name, input, file)?);
        }
        match &mut self.0 {
            State::Open(content) => Ok(content),
            _ => Err(io::Error::other("it cannot be unpacked")),
        }
    }
}

impl Read for Unpacked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.content()?.read(buffer)
    }
}

fn unpacked(name: &str, mut input: Box<dyn Read>, file: Option<File>) -> io::Result<Box<dyn Read>> {
    let mut beginning = Vec::new();
    input.by_ref().take(DETECTED_BY as u64).read_to_end(&mut beginning)?;
    let packing = Packing::of(&beginning);
    let whole = Cursor::new(beginning).chain(input);
    let Some(packing) = packing else { return Ok(Box::new(whole)) };
    let whole = BufReader::with_capacity(1 << 16, whole); // decoders read a few bytes at a time
    Ok(match packing {
        Packing::Gzip => Box::new(Members(Some(GzDecoder::new(whole)))),
        Packing::Zstd => Box::new(Frames::new(whole, MOST_MEMORY)),
        Packing::Xz => Box::new(Cut::new(whole, |whole| {
            Steps::new(XzReader::new_mem_limit(whole, true, (MOST_MEMORY >> 10) as u32))
        })),
        Packing::Zip => match file {
            Some(file) => member::only(name, file)?,
            None => return Err(refused("zip, which cannot be read from a pipe", "unzip")),
        },
        Packing::Other(command) => return Err(refused("a kind that this command cannot read", command)),
    })
}

/// The content of all members of a gzip file, with zeros between and after them: as a file has them that was
/// made longer than its content. `None` at the end.
struct Members<R>(Option<GzDecoder<R>>);

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Some(member) = &mut self.0 else { return Ok(0) };
            let read = member.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let Some(mut rest) = self.0.take().map(GzDecoder::into_inner) else { return Ok(0) };
            loop {
                let bytes = rest.fill_buf()?;
                if bytes.is_empty() {
                    return Ok(0);
                }
                let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
                let is_over = zeros < bytes.len();
                rest.consume(zeros);
                if is_over {
                    break;
                }
            }
            self.0 = Some(GzDecoder::new(rest));
        }
    }
}

/// A decoder that is read in steps of one size. That of xz loses the bytes of a read that meets an error:
/// so they are few, and the same ones whatever the size of the reader's buffer.
struct Steps<D> {
    decoder: D,
    step: Vec<u8>,
    rest: Range<usize>,
}

impl<D> Steps<D> {
    fn new(decoder: D) -> Self {
        Self { decoder, step: vec![0; 1 << 12], rest: 0..0 }
    }
}

impl<D: Read> Read for Steps<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && !buffer.is_empty() {
            self.rest = 0..self.decoder.read(&mut self.step)?;
        }
        let read = (&self.step[self.rest.clone()]).read(buffer)?;
        self.rest.start += read;
        Ok(read)
    }
}

/// The decoder of xz. Its error is an early end if the compressed input has ended, whatever it calls it.
struct Cut<D> {
    decoder: D,
    has_ended: Rc<Cell<bool>>,
}

/// Notes the end of the input.
struct Ending<R> {
    input: R,
    has_ended: Rc<Cell<bool>>,
}

impl<D> Cut<D> {
    fn new<R: Read>(input: R, decoder: impl FnOnce(Ending<R>) -> D) -> Self {
        let has_ended = Rc::<Cell<bool>>::default();
        let decoder = decoder(Ending { input, has_ended: Rc::clone(&has_ended) });
        Self { decoder, has_ended }
    }
}

impl<D: Read> Read for Cut<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|e| {
            if e.kind() == io::ErrorKind::OutOfMemory {
                return too_large("xz", "unxz");
            }
            if self.has_ended.get() { io::Error::new(io::ErrorKind::UnexpectedEof, e) } else { e }
        })
    }
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        if read == 0 && !buffer.is_empty() {
            self.has_ended.set(true);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails in the read that would pass byte 10,000, and loses its bytes.
    struct Damaged(usize);

    impl Read for Damaged {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.0 += buffer.len();
            if self.0 > 10_000 { Err(io::Error::other("damaged")) } else { Ok(buffer.len()) }
        }
    }

    #[test]
    fn what_comes_before_an_error_does_not_depend_on_the_readers_buffer() {
        for size in [1, 100, 4096, 1 << 16, 1 << 18] {
            let (mut steps, mut buffer, mut all) = (Steps::new(Damaged(0)), vec![0; size], 0);
            while let Ok(read) = steps.read(&mut buffer) {
                all += read;
            }
            assert_eq!(all, 8192, "{size}");
        }
    }
}
