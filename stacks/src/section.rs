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

/// The bytes of a section: its pages as soon as they are needed.
pub(crate) struct Section<'f> {
    file: Option<(ReadAt<'f>, u64)>,
    size: usize,
    page: usize,
    pages: Box<[OnceCell<Box<[u8]>>]>,
    endian: RunTimeEndian,
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
        Self { file: Some((file, offset)), size, page: PAGE, pages, endian }
    }

    /// A section that was inflated.
    pub(crate) fn in_memory(bytes: Box<[u8]>, endian: RunTimeEndian) -> Self {
        let size = bytes.len();
        Self { file: None, size, page: size.max(1), pages: Box::new([bytes.into()]), endian }
    }

    /// Returns the bytes from `at` to the end of their page.
    #[inline]
    fn rest_of_page(&self, at: usize) -> Result<&[u8]> {
        let page = self.pages.get(at / self.page).ok_or(Error::Io)?;
        let bytes = match page.get() {
            Some(bytes) => bytes,
            None => self.read(at / self.page, page)?,
        };
        bytes.get(at % self.page..).filter(|bytes| !bytes.is_empty()).ok_or(Error::Io)
    }

    #[cold]
    fn read<'s>(&'s self, number: usize, page: &'s OnceCell<Box<[u8]>>) -> Result<&'s [u8]> {
        let (read_at, offset) = self.file.ok_or(Error::Io)?;
        let start = number * self.page;
        let mut bytes = vec![0; self.page.min(self.size - start)].into_boxed_slice();
        let at = offset.checked_add(start as u64).ok_or(Error::Io)?;
        read_at(at, &mut bytes).map_err(|_| Error::Io)?;
        Ok(page.get_or_init(|| bytes))
    }
}

/// A part of a section, from a place on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'s> {
    section: &'s Section<'s>,
    at: usize,
    end: usize,
}

impl<'s> Part<'s> {
    pub(crate) fn whole(section: &'s Section<'s>) -> Self {
        Self { section, at: 0, end: section.size }
    }

    /// Returns the next bytes, as many as a page has.
    #[inline]
    fn next(&self) -> Result<&'s [u8]> {
        let bytes = self.section.rest_of_page(self.at)?;
        Ok(&bytes[..bytes.len().min(self.len())])
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
    }

    #[inline]
    fn truncate(&mut self, len: usize) -> Result<()> {
        self.has(len)?;
        self.end = self.at + len;
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
        while rest.at < rest.end {
            let bytes = rest.next()?;
            if let Some(found) = bytes.iter().position(|of| *of == byte) {
                return Ok(rest.at + found - self.at);
            }
            rest.at += bytes.len();
        }
        Err(Error::UnexpectedEof(self.offset_id()))
    }

    #[inline]
    fn skip(&mut self, len: usize) -> Result<()> {
        self.has(len)?;
        self.at += len;
        Ok(())
    }

    #[inline]
    fn split(&mut self, len: usize) -> Result<Self> {
        self.has(len)?;
        let part = Self { end: self.at + len, ..*self };
        self.at += len;
        Ok(part)
    }

    fn to_slice(&self) -> Result<Cow<'_, [u8]>> {
        if self.is_empty() {
            return Ok(Cow::Borrowed(&[]));
        }
        let bytes = self.next()?;
        if bytes.len() == self.len() {
            return Ok(Cow::Borrowed(bytes));
        }
        let mut bytes = vec![0; self.len()];
        let mut all = *self;
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
            self.at += now.len();
            to = later;
        }
        Ok(())
    }

    #[inline]
    fn read_u8(&mut self) -> Result<u8> {
        self.has(1)?;
        let byte = *self.section.rest_of_page(self.at)?.first().ok_or(Error::Io)?;
        self.at += 1;
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
