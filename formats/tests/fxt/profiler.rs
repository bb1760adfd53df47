//! Modules, mappings and call stacks.

use super::*;

#[test]
fn profiler_records_have_the_words_of_the_document() {
    let mut out = Vec::new();
    fxt::module(&mut out, &loaded());
    let mapping = Mmap { thread: ThreadRef::Index(0x12), flags: 5, ..mapped() };
    fxt::mmap(&mut out, &mapping);
    let frames = &[0x1000, 0x2000][..];
    fxt::backtrace(&mut out, &Backtrace { timestamp: 7, thread: ThreadRef::Index(2), frames });
    require_words(
        &out,
        &[
            0x0090_7abc_d000_007a, // a build id of 9 bytes, a name of 7, module 0xabcd, subtype 0, 7 words
            5,
            70,
            0,
            u64::from_le_bytes(*b"libc.so\0"),
            0x0807_0605_0403_0201,
            0x0000_0000_0000_0009,
            0x0000_5abc_d121_005a, // flags 5, module 0xabcd, thread 0x12, subtype 1, 5 words
            6,
            0x7f00_0000,
            0x1000,
            0x2000,
            0x0000_0000_2022_004a, // 2 frames, thread 2, subtype 2, 4 words
            7,
            0x1000,
            0x2000,
        ],
    );
}

#[test]
fn content_that_does_not_fit_a_profiler_record_is_cut() {
    let (name, build_id, frames) = ("é".repeat(128), [7; 256], [8; 256]);
    let mut out = Vec::new();
    fxt::module(&mut out, &Module { name: &name, build_id: &build_id, ..loaded() });
    fxt::mmap(&mut out, &Mmap { flags: 0xff, ..mapped() });
    fxt::backtrace(&mut out, &Backtrace { timestamp: 7, thread: ThreadRef::Index(2), frames: &frames[..] });
    let mut reader = RecordReader::new(&out[..]);
    match reader.next().unwrap() {
        Some((_, Record::Module(read))) => {
            assert_eq!((read.name, read.build_id), (&name[..254], &build_id[..255]));
        }
        other => panic!("{other:?}"),
    }
    match reader.next().unwrap() {
        Some((_, Record::Mmap(read))) => assert_eq!(read, Mmap { flags: 7, ..mapped() }),
        other => panic!("{other:?}"),
    }
    match reader.next().unwrap() {
        Some((_, Record::Backtrace(read))) => assert!(read.frames.eq(frames[..255].iter().copied())),
        other => panic!("{other:?}"),
    }
    assert!(reader.next().unwrap().is_none());
}

proptest! {
    #[test]
    fn profiler_records_are_read_back(
        timestamp in unsigned(), thread in thread(), id: u16, flags in 0..=7_u8, name in text(),
        build_id in prop::collection::vec(any::<u8>(), 0..=255), frames in prop::collection::vec(any::<u64>(), 0..=255),
        (start, range, vaddr) in (unsigned(), unsigned(), unsigned()),
    ) {
        let module = Module { timestamp, thread, id, name: &name, build_id: &build_id };
        let mapping = Mmap { timestamp, thread, module_id: id, flags, start, range, vaddr };
        let mut out = Vec::new();
        fxt::module(&mut out, &module);
        fxt::mmap(&mut out, &mapping);
        fxt::backtrace(&mut out, &Backtrace { timestamp, thread, frames: &frames[..] });
        let mut reader = RecordReader::new(&out[..]);
        match reader.next().unwrap() {
            Some((_, Record::Module(read))) => assert_eq!(read, module),
            other => panic!("{other:?}"),
        }
        match reader.next().unwrap() {
            Some((_, Record::Mmap(read))) => assert_eq!(read, mapping),
            other => panic!("{other:?}"),
        }
        match reader.next().unwrap() {
            Some((_, Record::Backtrace(read))) => {
                assert_eq!((read.timestamp, read.thread, read.frames.len()), (timestamp, thread, frames.len()));
                assert_eq!(read.frames.collect::<Vec<_>>(), frames);
            }
            other => panic!("{other:?}"),
        }
        prop_assert!(reader.next().unwrap().is_none());
    }
}
