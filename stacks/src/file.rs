//! A program or library: what unwinding needs of its file, and the open file for its symbols.

use std::fs::File;
use std::io::{Cursor, Read, Seek};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use framehop::ExplicitModuleSectionInfo;
use hairline_perf::Held;
use object::elf::PF_X;
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, SectionKind, SegmentFlags};

use crate::machine::Section;
use crate::signal_frames::signal_frames;
use crate::{sys, vdso};

/// The largest section that is read for unwinding: more than any program has.
const MOST: u64 = 256 << 20;

/// The largest section of notes: the one with the build id has 36 bytes.
const MOST_NOTES: u64 = 1 << 20;

/// The longest build id. Linkers write up to 32 bytes.
const LONGEST_BUILD_ID: usize = 64;

/// A section may be so many times as large as its file is on disk, because file systems compress. A hole is
/// free.
const MOST_PACKED: u64 = 32;

/// The largest file that is read. A hole in a file costs its maker nothing, and its reader memory.
const LARGEST: u64 = 4 << 30;

/// The unit in which files are mapped. A kernel with larger pages rounds further down, and rarely enough to
/// meet the segment before.
const PAGE: u64 = 4096;

/// What tells files of one path apart: one was replaced, or is in another container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Inode {
    /// Major and minor number.
    pub(crate) device: (u32, u32),
    pub(crate) number: u64,
}

/// A mapped file.
#[derive(Debug)]
pub(crate) struct ProgramFile {
    /// The path of its mappings.
    pub(crate) path: String,
    pub(crate) build_id: Vec<u8>,
    segments: Vec<Segment>,
    sections: ExplicitModuleSectionInfo<Section>,
    /// The code to which handlers of signals return, by its addresses in the file.
    signal_frames: Arc<[Range<u64>]>,
    source: Source,
    /// When the open file was last written, and its size.
    written: Option<(SystemTime, u64)>,
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
    File(Held),
    Memory(Vec<u8>),
    /// It is opened again by its path. The file there is the same one if it has the build id, or, where there
    /// is none, if it was not written since.
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
    /// Opens the file that process `pid` has mapped from `path`. At most `room` bytes of it are kept for
    /// unwinding.
    pub(crate) fn open(pid: u32, path: &str, room: u64) -> Self {
        let source = source(pid, path);
        let written = source.written();
        let file = Self {
            path: path.to_owned(),
            build_id: Vec::new(),
            segments: Vec::new(),
            sections: ExplicitModuleSectionInfo::default(),
            signal_frames: Arc::default(),
            source,
            written,
        };
        match file.content().and_then(|content| load(&content, room.min(file.source.most()))) {
            Some(Loaded { build_id, segments, sections }) => {
                let eh_frame = sections.eh_frame.as_deref().zip(sections.eh_frame_svma.as_ref());
                let signal_frames = eh_frame.map(|(bytes, range)| signal_frames(bytes, range.start));
                let signal_frames = signal_frames.unwrap_or_default().into();
                Self { build_id, segments, sections, signal_frames, ..file }
            }
            None => file,
        }
    }

    /// The file as its recording has known it, to be opened by its path.
    pub(crate) fn known(path: String, build_id: Vec<u8>, written: Option<(SystemTime, u64)>) -> Self {
        let source = match &*path {
            vdso::NAME => vdso::image().map_or(Source::Nowhere, Source::Memory),
            _ if is_file(&path) => Source::Closed,
            _ => Source::Nowhere,
        };
        let (segments, sections) = (Vec::new(), ExplicitModuleSectionInfo::default());
        Self { path, build_id, segments, sections, signal_frames: Arc::default(), source, written }
    }

    /// Returns the number of bytes that are kept for unwinding.
    pub(crate) fn kept(&self) -> u64 {
        let ExplicitModuleSectionInfo { eh_frame, eh_frame_hdr, .. } = &self.sections;
        [eh_frame, eh_frame_hdr].into_iter().flatten().map(|section| section.len() as u64).sum()
    }

    /// Returns when the file was last written before it was opened, and its size.
    pub(crate) fn written(&self) -> Option<(SystemTime, u64)> {
        self.written
    }

    /// Returns whether the open file has another content than when it was opened: it was overwritten in
    /// place.
    pub(crate) fn is_changed(&self) -> bool {
        matches!(self.source, Source::File(_)) && self.source.written() != self.written
    }

    /// Closes the file. It can be read as long as its path has the same one.
    pub(crate) fn close(&mut self) {
        if matches!(self.source, Source::File(_)) {
            self.source = Source::Closed;
        }
    }

    /// Returns the content.
    pub(crate) fn content(&self) -> Option<Content<'_>> {
        self.bytes().map(ReadCache::new)
    }

    /// Returns the bytes of the content.
    pub(crate) fn bytes(&self) -> Option<Box<dyn Bytes + '_>> {
        Some(match &self.source {
            Source::File(file) => Box::new(file.get().ok()?),
            Source::Memory(image) => Box::new(Cursor::new(image)),
            Source::Closed => Box::new(self.open_again()?),
            Source::Nowhere => return None,
        })
    }

    fn open_again(&self) -> Option<File> {
        let file = regular(Path::new(&self.path))?;
        let is_same = !self.build_id.is_empty() || written(&file) == self.written;
        is_same.then_some(file)
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

    /// The code to which handlers of signals return, by its addresses in the file.
    pub(crate) fn signal_frames(&self) -> &Arc<[Range<u64>]> {
        &self.signal_frames
    }

    /// The module for the unwinder.
    pub(crate) fn module(&self, range: Range<u64>, bias: u64) -> framehop::Module<Section> {
        framehop::Module::new(String::new(), range, bias, self.sections.clone())
    }
}

impl Source {
    /// The most bytes that its sections for unwinding can have.
    fn most(&self) -> u64 {
        let Self::File(file) = self else { return MOST };
        let on_disk = file.get().ok().and_then(|file| sys::size_on_disk(file).ok()).unwrap_or_default();
        if on_disk == 0 { MOST } else { on_disk.saturating_mul(MOST_PACKED) }
    }

    fn written(&self) -> Option<(SystemTime, u64)> {
        let Self::File(file) = self else { return None };
        written(file.get().ok()?)
    }
}

/// Returns when a file was last written, and its size.
fn written(file: &File) -> Option<(SystemTime, u64)> {
    let about = file.metadata().ok()?;
    Some((about.modified().ok()?, about.len()))
}

/// Whether a mapping of this path is one of a file.
fn is_file(path: &str) -> bool {
    path.starts_with('/') && !path.starts_with("//")
}

fn source(pid: u32, path: &str) -> Source {
    if path == vdso::NAME {
        return vdso::image().map_or(Source::Nowhere, Source::Memory);
    }
    if !is_file(path) {
        return Source::Nowhere;
    }
    // As the process sees it: it may have another root.
    let inside = PathBuf::from(format!("/proc/{pid}/root{path}"));
    regular(&inside)
        .or_else(|| regular(Path::new(path)))
        .map_or(Source::Nowhere, |file| Source::File(Held::new(file)))
}

/// Opens a regular file for reading. A FIFO or a device in its place is left alone: opening it can release
/// its writer, or start the device. If it comes between the two looks, it does not block.
pub(crate) fn regular(path: &Path) -> Option<File> {
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let file = sys::open_at_once(path).ok()?;
    file.metadata().ok().filter(|about| about.is_file() && about.len() <= LARGEST).map(|_| file)
}

struct Loaded {
    build_id: Vec<u8>,
    segments: Vec<Segment>,
    sections: ExplicitModuleSectionInfo<Section>,
}

/// Reads what unwinding needs: at most `room` bytes of sections.
fn load(content: &Content<'_>, mut room: u64) -> Option<Loaded> {
    let elf = object::File::parse(content).ok()?;
    let notes = elf.sections().filter(|section| section.kind() == SectionKind::Note);
    let has_few_notes = notes.map(|section| section.size()).all(|size| size <= MOST_NOTES);
    let build_id = has_few_notes.then(|| elf.build_id().ok().flatten()).flatten();
    let build_id = build_id.filter(|id| id.len() <= LONGEST_BUILD_ID).unwrap_or_default().to_owned();
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
    let mut bytes = |name: &str| -> Option<Section> {
        let section = elf.section_by_name(name).filter(|section| section.size() <= room.min(MOST))?;
        room -= section.size();
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_fifo_in_the_place_of_a_file_keeps_its_writer_waiting() {
        let fifo = std::env::temp_dir().join(format!("hairline-stacks-fifo-{}", std::process::id()));
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        let path = fifo.clone();
        let writer = std::thread::spawn(move || File::options().write(true).open(path).map(drop));
        std::thread::sleep(Duration::from_millis(50));
        assert!(regular(&fifo).is_none());
        std::thread::sleep(Duration::from_millis(50));
        assert!(!writer.is_finished(), "the writer waits for its own reader");
        let reader = File::open(&fifo).unwrap();
        writer.join().unwrap().unwrap();
        drop((reader, fs::remove_file(fifo)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_of_holes_is_not_read() {
        let path = std::env::temp_dir().join(format!("hairline-stacks-holes-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        if file.set_len(LARGEST + 1).is_ok() {
            assert!(regular(&path).is_none());
        }
        fs::remove_file(path).unwrap();
    }

    /// A program with a section `.eh_frame` of this size from byte 4096 on, and nothing in it.
    fn program(size: u64) -> Vec<u8> {
        const NAMES: &[u8] = b"\0.eh_frame\0.shstrtab\0";
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        // No entry and no segments; the headers of three sections of 64 bytes at 128, the names in the third.
        for word in [0, 0, 128, 64 << 32 | 56 << 48] {
            file.extend_from_slice(&u64::to_le_bytes(word));
        }
        for half in [0_u16, 64, 3, 2] {
            file.extend_from_slice(&half.to_le_bytes());
        }
        file.extend_from_slice(NAMES);
        file.resize(128 + 64, 0);
        for (name, kind, at, size) in [(1_u32, 1_u32, 4096, size), (11, 3, 64, NAMES.len() as u64)] {
            file.extend_from_slice(&[name.to_le_bytes(), kind.to_le_bytes()].concat());
            for word in [0, 0, at, size, 0, 1, 0] {
                file.extend_from_slice(&u64::to_le_bytes(word));
            }
        }
        file.resize(4096, 0);
        file
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn of_a_file_its_sections_are_kept_but_no_hole_and_no_more_than_there_is_room_for() {
        let path = std::env::temp_dir().join(format!("hairline-stacks-program-{}", std::process::id()));
        let kept = |room| ProgramFile::open(std::process::id(), path.to_str().unwrap(), room).kept();
        fs::write(&path, [program(10_000), vec![1; 10_000]].concat()).unwrap();
        assert_eq!([kept(u64::MAX), kept(10_000), kept(9_999)], [10_000, 10_000, 0]);
        fs::write(&path, program(200 << 20)).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4096 + (200 << 20)).unwrap();
        assert_eq!(kept(u64::MAX), 0);
        fs::remove_file(path).unwrap();
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_that_is_written_again_is_changed() {
        let path = std::env::temp_dir().join(format!("hairline-stacks-written-{}", std::process::id()));
        fs::write(&path, b"one").unwrap();
        let file = ProgramFile::open(std::process::id(), path.to_str().unwrap(), MOST);
        assert!(!file.is_changed());
        fs::write(&path, b"other").unwrap();
        assert!(file.is_changed());
        fs::remove_file(path).unwrap();
        assert!(file.is_changed(), "it is still open");
    }
}
