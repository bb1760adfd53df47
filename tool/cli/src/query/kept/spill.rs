//! The bytes of blocks: in memory up to a limit, after that in a temporary file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

/// The bytes of a block.
#[derive(Debug)]
pub(crate) enum Bytes {
    Memory(Box<[u8]>),
    /// In the temporary file.
    File {
        at: u64,
        len: usize,
    },
}

impl Default for Bytes {
    fn default() -> Self {
        Self::Memory(Box::default())
    }
}

/// Where bytes go. The file has no name, so nothing of it remains however the command ends.
#[derive(Debug)]
pub(crate) struct Spill(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The bytes that may still be in memory.
    room: usize,
    end: u64,
    file: Option<File>,
}

impl Spill {
    pub(crate) fn new(room: usize) -> Self {
        Self(Mutex::new(State { room, end: 0, file: None }))
    }

    /// Keeps the bytes of a block.
    pub(crate) fn keep(&self, bytes: Vec<u8>) -> io::Result<Bytes> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = state.room.checked_sub(bytes.len()) {
            state.room = room;
            return Ok(Bytes::Memory(bytes.into()));
        }
        let State { end, file, .. } = &mut *state;
        let file = match file {
            Some(file) => file,
            None => file.insert(tempfile::tempfile()?),
        };
        file.seek(SeekFrom::Start(*end))?;
        file.write_all(&bytes)?;
        let at = *end;
        *end += bytes.len() as u64;
        Ok(Bytes::File { at, len: bytes.len() })
    }

    /// Reads bytes from the file.
    pub(crate) fn read(&self, at: u64, len: usize, into: &mut Vec<u8>) -> io::Result<()> {
        into.resize(len, 0);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = &mut state.file else { return Err(io::ErrorKind::UnexpectedEof.into()) };
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_the_limit_come_from_the_file() {
        let spill = Spill::new(5);
        let kept: Vec<Bytes> = ["abc", "defg", "hi", "j"]
            .iter()
            .map(|text| spill.keep(text.as_bytes().to_vec()).unwrap())
            .collect();
        let mut found = Vec::new();
        let texts = kept.iter().map(|bytes| match bytes {
            Bytes::Memory(bytes) => (true, bytes.to_vec()),
            Bytes::File { at, len } => {
                spill.read(*at, *len, &mut found).unwrap();
                (false, found.clone())
            }
        });
        let texts: Vec<(bool, Vec<u8>)> = texts.collect();
        let expected = [(true, "abc"), (false, "defg"), (true, "hi"), (false, "j")];
        assert_eq!(texts, expected.map(|(in_memory, text)| (in_memory, text.as_bytes().to_vec())));
    }
}
