//! zip: the only file of an archive.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use flate2::Crc;
use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

/// Opens the only file of an archive.
///
/// # Errors
/// Fails if the archive has no file or several, if the file is encrypted, or if it is compressed in another
/// way than most archives.
pub(super) fn only(name: &str, mut file: File) -> io::Result<Box<dyn Read>> {
    let refused = |what: String| io::Error::other(format!("{what}: unpack it with `unzip {name}`"));
    let mut archive = ZipArchive::new(&mut file)?;
    let mut files = Vec::new();
    for index in 0..archive.len() {
        let member = archive.by_index_raw(index)?;
        if !member.is_dir() {
            files.push(index);
        }
    }
    let [only] = files[..] else {
        return Err(refused(format!("it is a zip archive of {} files, not of one", files.len())));
    };
    let member = archive.by_index_raw(only)?;
    if member.encrypted() {
        return Err(refused("it is an encrypted zip archive".to_owned()));
    }
    let (method, packed, crc) = (member.compression(), member.compressed_size(), member.crc32());
    let start = member.data_start().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    drop(member);
    drop(archive);
    file.seek(SeekFrom::Start(start))?;
    let content = file.take(packed);
    Ok(match method {
        CompressionMethod::STORE => Box::new(Checked::new(content, crc)),
        CompressionMethod::DEFLATE => Box::new(Checked::new(DeflateDecoder::new(content), crc)),
        other => return Err(refused(format!("it is a zip archive, compressed with {other}"))),
    })
}

/// Checks the checksum at the end.
struct Checked<R> {
    content: R,
    crc: Crc,
    expected: u32,
}

impl<R: Read> Checked<R> {
    fn new(content: R, expected: u32) -> Self {
        Self { content, crc: Crc::new(), expected }
    }
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        self.crc.update(&buffer[..read]);
        if read == 0 && !buffer.is_empty() && self.crc.sum() != self.expected {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the zip archive's checksum is wrong"));
        }
        Ok(read)
    }
}
