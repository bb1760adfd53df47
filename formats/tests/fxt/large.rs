//! Large blobs, and records that are too large for the reader.

use super::*;

#[test]
fn a_large_blob_has_the_words_of_the_document() {
    let mut out = Vec::new();
    let args = &[(StringRef::Index(4), Value::Bool(true))][..];
    let (category, name) = (StringRef::Inline("net"), StringRef::Index(2));
    let metadata = Some(LargeBlobMetadata { timestamp: 5, thread: ThreadRef::Index(1), args });
    let blob = LargeBlob { category, name, metadata, bytes: &[1, 2, 3, 4, 5, 6, 7, 8, 9] };
    fxt::large_blob(&mut out, &blob);
    let thread = ThreadRef::Inline { process: 70, thread: 71 };
    let metadata = Some(LargeBlobMetadata { timestamp: 6, thread, args: &[][..] });
    fxt::large_blob(&mut out, &LargeBlob { category: StringRef::Empty, metadata, bytes: &[], ..blob });
    let (category, name) = (StringRef::Index(1), StringRef::Inline("dump"));
    fxt::large_blob(&mut out, &LargeBlob { category, name, metadata: None, bytes: b"abc" });
    require_words(
        &out,
        &[
            0x0000_0000_0000_008f, // format 0, 8 words
            0x0000_0011_0002_8003, // thread 1, one argument, name 2, a category of 3 bytes
            u64::from_le_bytes(*b"net\0\0\0\0\0"),
            5,
            0x0000_0001_0004_0019,
            9,
            0x0807_0605_0403_0201,
            0x0000_0000_0000_0009,
            0x0000_0000_0000_006f, // format 0, 6 words
            0x0000_0000_0002_0000, // an inline thread, no argument, name 2, no category
            6,
            70,
            71,
            0,
            0x0000_0100_0000_005f, // format 1, 5 words
            0x0000_0000_8004_0001, // a name of 4 bytes, category 1
            u64::from_le_bytes(*b"dump\0\0\0\0"),
            3,
            u64::from_le_bytes(*b"abc\0\0\0\0\0"),
        ],
    );
}

fn of_size(bytes: &[u8]) -> LargeBlob<'_, fxt::ArgumentSlice<'static>> {
    LargeBlob { category: StringRef::Empty, name: StringRef::Index(2), metadata: None, bytes }
}

#[test]
fn the_size_of_a_large_blob_has_more_than_12_bits() {
    for len in [32_727, 32_736, 32_737, 100_000, 1_000_000] {
        let bytes: Vec<u8> = (0..len).map(|i: u32| i as u8).collect();
        let mut out = Vec::new();
        fxt::large_blob(&mut out, &of_size(&bytes));
        assert_eq!(out.len() as u64, fxt::large_blob_words(&of_size(&bytes)) * 8);
        let header = u64::from_le_bytes(out[..8].try_into().unwrap());
        assert_eq!(header >> 4 & 0xffff_ffff, 3 + u64::from(len).div_ceil(8));
        fxt::magic(&mut out);
        let mut reader = RecordReader::new(&out[..]);
        match reader.next().unwrap() {
            Some((0, Record::LargeBlob(read))) => assert_eq!(read.bytes, bytes),
            other => panic!("{other:?}"),
        }
        assert!(matches!(reader.next().unwrap(), Some((_, Record::Magic))));
    }
}

#[test]
fn a_large_record_above_the_limit_is_returned_as_its_size() {
    let bytes = vec![7; 200_000];
    let mut out = Vec::new();
    fxt::large_blob(&mut out, &of_size(&bytes));
    let size = out.len();
    fxt::magic(&mut out);
    for limit in [0, 8, size - 1] {
        let mut reader = RecordReader::new(&out[..]).large_limit(limit);
        match reader.next().unwrap() {
            Some((0, Record::TooLarge { words })) => assert_eq!(words, size as u64 / 8),
            other => panic!("{other:?}"),
        }
        assert!(matches!(reader.next().unwrap(), Some((at, Record::Magic)) if at == size as u64));
    }
    let mut reader = RecordReader::new(&out[..]).large_limit(size);
    assert!(matches!(reader.next().unwrap(), Some((0, Record::LargeBlob(_)))));
}

#[test]
fn the_limit_applies_to_large_records_only() {
    let mut out = Vec::new();
    fxt::string_record(&mut out, 1, "a string");
    assert!(matches!(
        RecordReader::new(&out[..]).large_limit(0).next().unwrap(),
        Some((0, Record::String { index: 1, .. }))
    ));
}

#[test]
fn a_large_blob_that_comes_in_pieces_reads_the_same() {
    let bytes: Vec<u8> = (0..150_000_u32).map(|i| i as u8).collect();
    let mut out = Vec::new();
    fxt::magic(&mut out);
    fxt::large_blob(&mut out, &of_size(&bytes));
    let mut reader = RecordReader::new(Slow::new(&out));
    assert!(matches!(reader.next().unwrap(), Some((0, Record::Magic))));
    match reader.next().unwrap() {
        Some((8, Record::LargeBlob(read))) => assert_eq!(read.bytes, bytes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn arguments_of_a_large_blob_can_exceed_a_record_together_but_not_alone() {
    let text = "x".repeat(MAX_STRING);
    let long = (StringRef::Index(1), Value::Str(&text));
    let too_long = (StringRef::Inline(&text), Value::Str(&text));
    let args = &[long, long, too_long, long][..];
    let metadata = Some(LargeBlobMetadata { timestamp: 5, thread: ThreadRef::Index(1), args });
    let blob = LargeBlob { metadata, ..of_size(b"abc") };
    let mut out = Vec::new();
    fxt::large_blob(&mut out, &blob);
    assert_eq!(out.len() as u64, fxt::large_blob_words(&blob) * 8);
    match RecordReader::new(&out[..]).next().unwrap() {
        Some((0, Record::LargeBlob(read))) => {
            require_arguments(read.metadata.unwrap().args, &args[..2]);
            assert_eq!(read.bytes, b"abc");
        }
        other => panic!("{other:?}"),
    }
}

proptest! {
    #[test]
    fn a_large_blob_is_read_back(
        category in name(), name in name(), bytes in prop::collection::vec(any::<u8>(), 0..100),
        told in prop::option::of((unsigned(), thread())), owned in owned_arguments(),
    ) {
        let args = &borrowed(&owned)[..];
        let metadata = told.map(|(timestamp, thread)| LargeBlobMetadata { timestamp, thread, args });
        let (category, name) = (category.reference(), name.reference());
        let blob = LargeBlob { category, name, metadata, bytes: &bytes };
        let mut out = Vec::new();
        fxt::large_blob(&mut out, &blob);
        prop_assert_eq!(out.len() as u64, fxt::large_blob_words(&blob) * 8);
        let mut reader = RecordReader::new(&out[..]);
        match reader.next().unwrap() {
            Some((0, Record::LargeBlob(read))) => {
                assert_eq!((read.category, read.name, read.bytes), (category, name, &bytes[..]));
                assert_eq!(read.metadata.as_ref().map(|read| (read.timestamp, read.thread)), told);
                if let Some(metadata) = read.metadata {
                    require_arguments(metadata.args, args);
                }
            }
            other => panic!("{other:?}"),
        }
        prop_assert!(reader.next().unwrap().is_none());
    }
}
