//! A section of debug information, read page by page: a program may have a gigabyte of it, and a few
//! addresses need little of that.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::{fmt, io};

use addr2line::gimli::{Error, Reader, ReaderOffsetId, Result, RunTimeEndian};

/// The bytes that are read at once.
const PAGE: usize = 4 << 10;

/// Reads bytes at an offset of a file.
pub(crate) type ReadAt<'f> = &'f dyn Fn(u64, &mut [u8]) -> io::Result<()>;

/// The bytes of a section.
pub(crate) struct Section<'f> {
    bytes: Of<'f>,
    size: usize,
    endian: RunTimeEndian,
}

/// Where the bytes of a section are.
enum Of<'f> {
    /// In a file from an offset on. Its pages are here as soon as they are needed.
    File { file: ReadAt<'f>, offset: u64, pages: Box<[OnceCell<Box<[u8]>>]> },
    /// It was inflated.
    Memory(Box<[u8]>),
    /// In another section, except these, which are in the order of their places.
    Replaced { section: &'f Section<'f>, instead: Vec<(usize, Box<[u8]>)> },
}

impl fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Section").field("size", &self.size).finish_non_exhaustive()
    }
}

impl<'f> Section<'f> {
    /// A section that is in a file as it is, from the offset on.
    pub(crate) fn in_file(file: ReadAt<'f>, offset: u64, size: usize, endian: RunTimeEndian) -> Self {
        let pages = std::iter::repeat_with(OnceCell::new).take(size.div_ceil(PAGE)).collect();
        Self { bytes: Of::File { file, offset, pages }, size, endian }
    }

    /// A section that was inflated.
    pub(crate) fn in_memory(bytes: Box<[u8]>, endian: RunTimeEndian) -> Self {
        Self { size: bytes.len(), bytes: Of::Memory(bytes), endian }
    }

    /// This section with other bytes at some places, which are in order.
    pub(crate) fn with(&'f self, instead: Vec<(usize, Box<[u8]>)>) -> Self {
        Self { bytes: Of::Replaced { section: self, instead }, size: self.size, endian: self.endian }
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn endian(&self) -> RunTimeEndian {
        self.endian
    }

    /// Copies bytes, as many as there are at most, and keeps no page for them. Returns their number.
    pub(crate) fn copy(&self, at: usize, to: &mut [u8]) -> Result<usize> {
        let len = to.len().min(self.size.saturating_sub(at));
        let to = &mut to[..len];
        match &self.bytes {
            Of::File { file, offset, .. } => {
                let at = offset.checked_add(at as u64).ok_or(Error::Io)?;
                file(at, to).map_err(|_| Error::Io)?;
            }
            _ => Part { at, ..Part::whole(self) }.read_slice(to)?,
        }
        Ok(len)
    }

    /// Returns the bytes from `at` on, as many as there are at one place: at least one.
    fn bytes(&self, at: usize) -> Result<&[u8]> {
        let bytes = match &self.bytes {
            Of::File { pages, .. } => {
                let page = pages.get(at / PAGE).ok_or(Error::Io)?;
                let bytes = match page.get() {
                    Some(bytes) => bytes,
                    None => page.get_or_init({
                        let bytes = self.page(at / PAGE)?;
                        || bytes
                    }),
                };
                bytes.get(at % PAGE..)
            }
            Of::Memory(bytes) => bytes.get(at..),
            Of::Replaced { section, instead } => {
                let next = instead.partition_point(|(start, _)| *start <= at);
                let other = next.checked_sub(1).and_then(|last| instead.get(last));
                match other
                    .and_then(|(start, bytes)| bytes.get(at - start..))
                    .filter(|bytes| !bytes.is_empty())
                {
                    Some(bytes) => Some(bytes),
                    None => {
                        let bytes = section.bytes(at)?;
                        let until = instead.get(next).map_or(bytes.len(), |(start, _)| start - at);
                        bytes.get(..until).or(Some(bytes))
                    }
                }
            }
        };
        bytes.filter(|bytes| !bytes.is_empty()).ok_or(Error::Io)
    }

    fn page(&self, number: usize) -> Result<Box<[u8]>> {
        let start = number * PAGE;
        let mut bytes = vec![0; PAGE.min(self.size - start)].into_boxed_slice();
        self.copy(start, &mut bytes)?;
        Ok(bytes)
    }
}

/// A part of a section, from a place on.
#[derive(Clone, Copy)]
pub(crate) struct Part<'s> {
    section: &'s Section<'s>,
    at: usize,
    end: usize,
    /// The bytes from `at` on, none beyond `end`; empty where they were not looked up yet. Most reads are of
    /// one byte, and the next one is here.
    here: &'s [u8],
}

impl fmt::Debug for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("at", &self.at).field("end", &self.end).finish_non_exhaustive()
    }
}

impl<'s> Part<'s> {
    pub(crate) fn whole(section: &'s Section<'s>) -> Self {
        Self { section, at: 0, end: section.size, here: &[] }
    }

    pub(crate) fn section(&self) -> &'s Section<'s> {
        self.section
    }

    /// Returns the next bytes, as many as there are at one place: at least one.
    #[inline]
    fn next(&mut self) -> Result<&'s [u8]> {
        if self.here.is_empty() {
            self.look_up()?;
        }
        Ok(self.here)
    }

    #[cold]
    fn look_up(&mut self) -> Result<()> {
        self.has(1)?;
        let bytes = self.section.bytes(self.at)?;
        self.here = &bytes[..bytes.len().min(self.len())];
        Ok(())
    }

    /// Passes over bytes that the part has.
    #[inline]
    fn pass(&mut self, len: usize) {
        self.at += len;
        self.here = self.here.get(len..).unwrap_or_default();
    }

    #[inline]
    fn has(&self, len: usize) -> Result<()> {
        if len <= self.len() { Ok(()) } else { Err(Error::UnexpectedEof(self.offset_id())) }
    }
}

impl Reader for Part<'_> {
    type Endian = RunTimeEndian;
    type Offset = usize;

    #[inline]
    fn endian(&self) -> RunTimeEndian {
        self.section.endian
    }

    #[inline]
    fn len(&self) -> usize {
        self.end - self.at
    }

    #[inline]
    fn empty(&mut self) {
        self.end = self.at;
        self.here = &[];
    }

    #[inline]
    fn truncate(&mut self, len: usize) -> Result<()> {
        self.has(len)?;
        self.end = self.at + len;
        self.here = self.here.get(..len).unwrap_or(self.here);
        Ok(())
    }

    #[inline]
    fn offset_from(&self, base: &Self) -> usize {
        self.at - base.at
    }

    #[inline]
    fn offset_id(&self) -> ReaderOffsetId {
        ReaderOffsetId(self.at as u64)
    }

    fn lookup_offset_id(&self, id: ReaderOffsetId) -> Option<usize> {
        let at = usize::try_from(id.0).ok()?;
        (self.at..=self.end).contains(&at).then(|| at - self.at)
    }

    fn find(&self, byte: u8) -> Result<usize> {
        let mut rest = *self;
        while !rest.is_empty() {
            let bytes = rest.next()?;
            if let Some(found) = bytes.iter().position(|of| *of == byte) {
                return Ok(rest.at + found - self.at);
            }
            rest.pass(bytes.len());
        }
        Err(Error::UnexpectedEof(self.offset_id()))
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Result<()> {
        self.has(len)?;
        self.pass(len);
        Ok(())
    }

    #[inline]
    fn split(&mut self, len: usize) -> Result<Self> {
        let mut part = *self;
        part.truncate(len)?;
        self.pass(len);
        Ok(part)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        if self.is_empty() {
            return Ok(Cow::Borrowed(&[]));
        }
        let mut all = *self;
        let bytes = all.next()?;
        if bytes.len() == self.len() {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut bytes = vec![0; self.len()];
        all.read_slice(&mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    fn to_string(&self) -> Result<Cow<'_, str>> {
        match self.to_slice()? {
            Cow::Borrowed(bytes) => str::from_utf8(bytes).map(Cow::Borrowed).map_err(|_| Error::BadUtf8),
            Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Error::BadUtf8),
        }
    }

    fn to_string_lossy(&self) -> Result<Cow<'_, str>> {
        Ok(match self.to_slice()? {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        })
    }

    #[inline]
    fn read_slice(&mut self, mut to: &mut [u8]) -> Result<()> {
        self.has(to.len())?;
        while !to.is_empty() {
            let bytes = self.next()?;
            let (now, later) = to.split_at_mut(bytes.len().min(to.len()));
            now.copy_from_slice(&bytes[..now.len()]);
            self.pass(now.len());
            to = later;
        }
        Ok(())
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8> {
        let byte = *self.next()?.first().ok_or(Error::Io)?;
        self.pass(1);
        Ok(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_at(file: &[u8]) -> impl Fn(u64, &mut [u8]) -> io::Result<()> {
        |at, to| {
            let from = file.get(at as usize..).and_then(|rest| rest.get(..to.len()));
            from.map(|from| to.copy_from_slice(from)).ok_or(io::ErrorKind::UnexpectedEof.into())
        }
    }

    /// Calls `test` with a section whose first page ends between "one" and "two" of a string, and with the
    /// same one in memory.
    fn sections(test: impl Fn(Part<'_>)) {
        let text = b"one two\0three\0";
        let mut bytes = vec![b'.'; PAGE - 4];
        bytes.extend(text);
        let size = bytes.len();
        let before = [&b"before"[..], &bytes, b"after"].concat();
        test(Part::whole(&Section::in_file(&read_at(&before), 6, size, RunTimeEndian::Little)));
        test(Part::whole(&Section::in_memory(bytes.into(), RunTimeEndian::Little)));
    }

    #[test]
    fn what_lies_over_the_border_of_two_pages_is_read_as_any_other() {
        sections(|whole| {
            let mut rest = whole;
            rest.skip(PAGE - 4).unwrap();
            assert_eq!(rest.offset_from(&whole), PAGE - 4);
            let string = rest.read_null_terminated_slice().unwrap();
            assert_eq!(string.to_string().unwrap(), "one two");
            assert_eq!(rest.find(0).unwrap(), 5);
            assert_eq!(rest.read_u8().unwrap(), b't');
            let mut number = whole;
            number.skip(PAGE - 2).unwrap();
            assert_eq!(number.read_u32().unwrap(), u32::from_le_bytes(*b"e tw"));
        });
    }

    #[test]
    fn bytes_at_some_places_may_be_others() {
        sections(|whole| {
            let other = |at: usize, text: &[u8]| (at, Box::from(text));
            let section =
                whole.section().with(vec![other(1, b"abc"), other(4, b"d"), other(PAGE - 1, b"XYZ")]);
            let mut part = Part::whole(&section);
            assert_eq!(part.split(6).unwrap().to_slice().unwrap().as_ref(), b".abcd.");
            part.skip(PAGE - 8).unwrap();
            assert_eq!(part.read_null_terminated_slice().unwrap().to_string().unwrap(), "eXYZo");
            assert_eq!(part.read_null_terminated_slice().unwrap().to_string().unwrap(), "three");
            let mut bytes = [0; 8];
            assert_eq!(section.copy(PAGE - 2, &mut bytes), Ok(8));
            assert_eq!(&bytes, b"eXYZo\0th");
            assert_eq!(section.copy(section.size() - 2, &mut bytes), Ok(2));
        });
    }

    #[test]
    fn nothing_is_read_beyond_a_part() {
        sections(|whole| {
            let mut part = whole;
            part.truncate(3).unwrap();
            assert!(part.find(b'o').is_err());
            assert!(part.read_u32().is_err() && part.skip(4).is_err() && part.split(4).is_err());
            assert_eq!(part.to_slice().unwrap().as_ref(), b"...");
            part.skip(3).unwrap();
            assert!(part.is_empty() && part.read_u8().is_err());
            assert_eq!(part.to_slice().unwrap().as_ref(), b"");
        });
    }

    #[test]
    fn a_file_that_was_cut_is_an_error() {
        let file = vec![1; PAGE + 10];
        let read_at = read_at(&file);
        let section = Section::in_file(&read_at, 0, 2 * PAGE, RunTimeEndian::Little);
        let mut part = Part::whole(&section);
        assert_eq!(part.read_u8().unwrap(), 1);
        part.skip(PAGE).unwrap();
        assert_eq!(part.read_u8(), Err(Error::Io));
        assert_eq!(part.find(0), Err(Error::Io));
    }
}
