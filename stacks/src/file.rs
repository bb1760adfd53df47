//! A program or library: what unwinding needs of its file, and the open file for its symbols.

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::ops::Range;
use std::path::{Path, PathBuf};

use framehop::ExplicitModuleSectionInfo;
use object::elf::PF_X;
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, SegmentFlags};

use crate::machine::Section;
use crate::{sys, vdso};

/// The largest section that is read for unwinding: more than any program has.
const MOST: u64 = 1 << 30;

/// The unit in which files are mapped. A kernel with larger pages rounds further down, and rarely enough to
/// meet the segment before.
const PAGE: u64 = 4096;

/// A mapped file.
#[derive(Debug)]
pub(crate) struct ProgramFile {
    /// The path of its mappings.
    pub(crate) path: String,
    pub(crate) build_id: Vec<u8>,
    segments: Vec<Segment>,
    sections: ExplicitModuleSectionInfo<Section>,
    source: Source,
}

/// A part of a file that is mapped with its code.
#[derive(Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

/// The content of a file.
#[derive(Debug)]
enum Source {
    /// Kept open: at the end of the trace another file may have the path.
    File(File),
    Memory(Vec<u8>),
    /// The file had the build id.
    Closed,
    Nowhere,
}

/// A source of bytes.
pub(crate) trait Bytes: Read + Seek {}
impl<T: Read + Seek> Bytes for T {}

/// The content of a file, which is read where it is needed. Nothing is mapped: a program that is rebuilt
/// meanwhile may cut its file.
pub(crate) type Content<'a> = ReadCache<Box<dyn Bytes + 'a>>;

impl ProgramFile {
    /// Opens the file that process `pid` has mapped from `path`.
    pub(crate) fn open(pid: u32, path: &str) -> Self {
        let file = Self {
            path: path.to_owned(),
            build_id: Vec::new(),
            segments: Vec::new(),
            sections: ExplicitModuleSectionInfo::default(),
            source: source(pid, path),
        };
        match file.content().and_then(|content| load(&content)) {
            Some(Loaded { build_id, segments, sections }) => Self { build_id, segments, sections, ..file },
            None => file,
        }
    }

    /// Closes the file. It can be read as long as its path has a file with its build id.
    pub(crate) fn close(&mut self) {
        if matches!(self.source, Source::File(_)) {
            self.source = if self.build_id.is_empty() { Source::Nowhere } else { Source::Closed };
        }
    }

    /// Returns the content.
    pub(crate) fn content(&self) -> Option<Content<'_>> {
        Some(ReadCache::new(match &self.source {
            Source::File(file) => Box::new(file),
            Source::Memory(image) => Box::new(Cursor::new(image)),
            Source::Closed => Box::new(regular(Path::new(&self.path))?),
            Source::Nowhere => return None,
        }))
    }

    /// The difference of addresses in a process and in the file, for a mapping of `offset` at `start`. The
    /// kernel has rounded `offset` down to a page; the offset of a segment is not rounded.
    pub(crate) fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|segment| {
            let first = segment.offset & !(PAGE - 1);
            (first..segment.offset.saturating_add(segment.size)).contains(&offset)
        })?;
        Some(start.wrapping_sub(offset).wrapping_add(segment.offset).wrapping_sub(segment.address))
    }

    /// The module for the unwinder.
    pub(crate) fn module(&self, range: Range<u64>, bias: u64) -> framehop::Module<Section> {
        framehop::Module::new(String::new(), range, bias, self.sections.clone())
    }
}

fn source(pid: u32, path: &str) -> Source {
    if path == vdso::NAME {
        return vdso::image().map_or(Source::Nowhere, Source::Memory);
    }
    if !path.starts_with('/') || path.starts_with("//") {
        return Source::Nowhere;
    }
    // As the process sees it: it may have another root.
    let inside = PathBuf::from(format!("/proc/{pid}/root{path}"));
    regular(&inside).or_else(|| regular(Path::new(path))).map_or(Source::Nowhere, Source::File)
}

/// Opens a regular file for reading. A FIFO in its place must not block.
pub(crate) fn regular(path: &Path) -> Option<File> {
    let file = sys::open_at_once(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

struct Loaded {
    build_id: Vec<u8>,
    segments: Vec<Segment>,
    sections: ExplicitModuleSectionInfo<Section>,
}

fn load(content: &Content<'_>) -> Option<Loaded> {
    let elf = object::File::parse(content).ok()?;
    let build_id = elf.build_id().ok().flatten().unwrap_or_default().to_owned();
    // Two segments may share a page of the file, but only one of them is executable.
    let has_code = |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if p_flags.0 & PF_X.0 != 0);
    let segments = elf.segments().filter(|segment| has_code(segment.flags())).map(|segment| {
        let (offset, size) = segment.file_range();
        Segment { offset, size, address: segment.address() }
    });
    let range = |name: &str| {
        let section = elf.section_by_name(name)?;
        Some(section.address()..section.address().checked_add(section.size())?)
    };
    let bytes = |name: &str| -> Option<Section> {
        let section = elf.section_by_name(name).filter(|section| section.size() <= MOST)?;
        Some(section.data().ok()?.into())
    };
    let sections = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: bytes(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: bytes(".eh_frame_hdr"),
        ..ExplicitModuleSectionInfo::default()
    };
    Some(Loaded { build_id, segments: segments.collect(), sections })
}
