//! Unusual but valid FXT, and invalid FXT with the offset of its error.

use super::malformed::{head, reads_on_after, trace};
use super::*;
use fxt::RecordType;
use fxt::layout::{argument, blob, kernel_object, large, metadata, record, string, thread};

/// Reads a whole trace, which must be valid.
fn good(trace: &[u8]) -> Vec<(u64, String)> {
    read(trace).into_iter().map(Result::unwrap).collect()
}

/// An instant of thread 1 with these arguments after it.
fn event_of(args: u64, words: &[u64]) -> Vec<u8> {
    let header = fxt::event_header(EventKind::Instant, 2 + words.len() as u64, args, 1, 1, 2);
    trace(&[&[header, 5], words].concat())
}

#[test]
fn a_trace_of_the_other_endianness_does_not_get_past_its_magic_word() {
    // With swapped bytes, the magic word is a record of 352 words.
    let mut bytes = fxt::MAGIC.to_be_bytes().to_vec();
    bytes.extend([0; 351 * 8 - 1]);
    let all = read(&bytes[..]);
    assert!(matches!(&all[..], [Err(e)] if e.is_truncated() && e.offset == 0), "{all:?}");
}

#[test]
fn a_trace_needs_no_magic_word_and_may_have_more_than_one() {
    let mut bytes = Vec::new();
    fxt::initialization(&mut bytes, 10);
    fxt::magic(&mut bytes);
    fxt::magic(&mut bytes);
    let all = good(&bytes);
    assert_eq!(all.iter().map(|(offset, _)| *offset).collect::<Vec<_>>(), [0, 16, 24]);
    assert_eq!((all[1].1.as_str(), all[2].1.as_str()), ("Magic", "Magic"));
}

#[test]
fn an_empty_input_is_an_empty_trace() {
    assert!(read(&[][..]).is_empty());
}

#[test]
fn size_zero_ends_the_trace_whatever_the_record() {
    for kind in 0..=15 {
        let header = record::TYPE.set(kind) | u64::MAX << 36; // size 0, also of a large record
        let all = read(&trace(&[header, fxt::MAGIC])[..]);
        assert!(
            matches!(all[..], [Err(DecodeError { offset: 0, kind: DecodeErrorKind::ZeroSize { .. } })]),
            "{kind}: {all:?}"
        );
    }
}

#[test]
fn bytes_after_the_last_whole_word_are_a_truncated_record() {
    for len in 1..8 {
        let mut bytes = everything();
        let (end, records) = (bytes.len(), good(&bytes).len());
        bytes.extend(&[0xff; 8][..len]);
        let all = read(&bytes[..]);
        assert_eq!(all.len(), records + 1);
        assert!(
            matches!(all.last(), Some(Err(e)) if e.is_truncated() && e.offset == end as u64),
            "{len}: {all:?}"
        );
    }
}

#[test]
fn an_index_can_be_reassigned_or_undefined_and_is_returned_unchanged() {
    let mut bytes = Vec::new();
    fxt::string_record(&mut bytes, 1, "one");
    fxt::thread_record(&mut bytes, 1, 7, 8);
    fxt::string_record(&mut bytes, 1, "another");
    fxt::thread_record(&mut bytes, 1, 7, 9);
    fxt::string_record(&mut bytes, 0, "no index");
    fxt::thread_record(&mut bytes, 0, 7, 10);
    // No record defines these indices.
    let name = StringRef::Index(fxt::MAX_STRING_INDEX);
    fxt::event(&mut bytes, &Event { thread: ThreadRef::Index(255), name, ..instant(&[]) });

    let (mut reader, mut strings, mut threads) = (RecordReader::new(&bytes[..]), Vec::new(), Vec::new());
    while let Some((_, record)) = reader.next().unwrap() {
        match record {
            Record::String { index, value } => strings.push((index, value.to_vec())),
            Record::Thread { index, thread, .. } => threads.push((index, thread)),
            Record::Event(event) => {
                assert_eq!((event.thread, event.name), (ThreadRef::Index(255), name));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(strings, [(1, b"one".to_vec()), (1, b"another".to_vec()), (0, b"no index".to_vec())]);
    assert_eq!(threads, [(1, 8), (1, 9), (0, 10)]);
}

#[test]
fn arguments_of_all_unknown_types_are_passed_over() {
    let unknown = (11..16).map(|kind| argument::TYPE.set(kind) | argument::SIZE.set(1) | u64::MAX << 16);
    let bytes = event_of(5, &unknown.collect::<Vec<_>>());
    let mut reader = RecordReader::new(&bytes[..]);
    let Some((0, Record::Event(event))) = reader.next().unwrap() else { panic!() };
    let mut args = event.args();
    assert!(args.next().is_none());
    assert_eq!(args.skipped(), 5);
}

#[test]
fn an_argument_can_be_longer_than_its_value_and_a_record_than_its_arguments() {
    let wide = argument::TYPE.set(2) | argument::SIZE.set(3) | argument::INTEGER.set(77);
    let null = argument::SIZE.set(1);
    // The header counts one of two arguments of three words each.
    with_event(&event_of(1, &[wide, u64::MAX, u64::MAX, null, u64::MAX]), |_, args| {
        assert_eq!(args, [(StringRef::Empty, ArgumentValue::Value(Value::U64(77)))]);
    });
}

#[test]
fn each_malformed_argument_is_reported_at_its_own_offset() {
    let null = argument::SIZE.set(1);
    let inline = |bytes: u64| 0x8000 | bytes;
    for (words, offset, what) in [
        // The error is found when the record is read: without a size, the next argument cannot be found.
        (vec![null, 0], 24, "an argument of size 0"),
        (vec![null, argument::SIZE.set(4095)], 24, "an argument reaches past"),
        (vec![null], 24, "an argument reaches past"),
    ] {
        let bytes = event_of(2, &words);
        match &read(&bytes[..])[..] {
            [Err(e)] => assert_eq!((e.offset, e.to_string().contains(what)), (offset, true), "{e}"),
            other => panic!("{other:?}"),
        }
    }
    for (words, offset, what) in [
        // The name and the value fit the record, but not their argument.
        (vec![null | argument::NAME.set(inline(1)), null], 24, "an argument's name"),
        (vec![argument::SIZE.set(2) | argument::NAME.set(inline(9)), 0, null], 24, "an argument's name"),
        (vec![argument::TYPE.set(4) | argument::SIZE.set(1), null], 24, "an argument's value"),
        (
            vec![argument::TYPE.set(3) | argument::SIZE.set(2) | argument::NAME.set(inline(8)), 0, null],
            32,
            "value",
        ),
        (
            vec![argument::TYPE.set(10) | argument::SIZE.set(2) | argument::BLOB_LENGTH.set(9), 0, null],
            24,
            "value",
        ),
        (
            vec![argument::TYPE.set(6) | argument::SIZE.set(2) | argument::STRING.set(inline(9)), 0, null],
            24,
            "value",
        ),
    ] {
        let bytes = event_of(2, &words);
        let mut reader = RecordReader::new(&bytes[..]);
        let Some((0, Record::Event(event))) = reader.next().unwrap() else { panic!() };
        match &event.args().collect::<Vec<_>>()[..] {
            [Err(e), Ok((StringRef::Empty, ArgumentValue::Value(Value::Null)))] => {
                assert_eq!((e.offset, e.to_string().contains(what)), (offset, true), "{e}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_record_without_the_parts_of_its_header_is_refused_and_the_next_one_read() {
    let (koid, name) = (77, u64::from_le_bytes(*b"12345678"));
    let object = |words| head(RecordType::KernelObject, words);
    for (words, offset, what) in [
        (vec![head(RecordType::Initialization, 1)], 8, "the clock's rate"),
        (
            vec![head(RecordType::Metadata, 1) | metadata::KIND.set(1) | metadata::NAME_LENGTH.set(1)],
            8,
            "a provider's name",
        ),
        (vec![head(RecordType::String, 1) | string::INDEX.set(1) | string::LENGTH.set(1)], 8, "a string"),
        (vec![head(RecordType::Thread, 1) | thread::INDEX.set(1)], 8, "a process"),
        (vec![head(RecordType::Thread, 2) | thread::INDEX.set(1), 7], 16, "a thread"),
        (vec![head(RecordType::Blob, 2) | blob::NAME.set(0x8009), name], 8, "a blob's name"),
        (vec![head(RecordType::Blob, 2) | blob::NAME.set(0x8008) | blob::LENGTH.set(1), name], 16, "a blob"),
        (vec![object(1)], 8, "a koid"),
        (vec![object(3) | kernel_object::NAME.set(0x8009), koid, name], 16, "a name"),
        (vec![object(2) | kernel_object::ARGS.set(1), koid], 16, "an argument"),
        (vec![object(3) | kernel_object::ARGS.set(1), koid, 0], 16, "an argument of size 0"),
        (vec![fxt::event_header(EventKind::Instant, 3, 0, 1, 0x8009, 1), 5, name], 16, "a category"),
        (vec![fxt::event_header(EventKind::Instant, 3, 0, 1, 0x8008, 0x8001), 5, name], 24, "a name"),
    ] {
        reads_on_after(&words, offset, what);
    }
}

#[test]
fn a_large_record_of_its_header_alone_is_passed_over() {
    let header = record::TYPE.set(15) | large::SIZE.set(1) | large::KIND.set(15);
    let all = good(&trace(&[header, fxt::MAGIC]));
    assert_eq!((all.len(), all[1].0, all[1].1.as_str()), (2, 8, "Magic"));
}

#[test]
fn text_can_contain_nul_and_ends_at_its_first_wrong_byte() {
    for (bytes, text) in
        [(*b"a\0b\0\0\0\0\0", "a\0b"), (*b"\xffxx\0\0\0\0\0", ""), (*b"a\xe2\x82\0\0\0\0\0", "a")]
    {
        let word = u64::from_le_bytes(bytes);
        let header = head(RecordType::String, 2) | string::INDEX.set(1) | string::LENGTH.set(3);
        let mut all = trace(&[header, word]);
        all.extend(trace(&[
            head(RecordType::Metadata, 2) | metadata::KIND.set(1) | metadata::NAME_LENGTH.set(3),
            word,
        ]));
        all.extend(trace(&[head(RecordType::KernelObject, 3) | kernel_object::NAME.set(0x8003), 7, word]));
        all.extend(trace(&[head(RecordType::Blob, 2) | blob::NAME.set(0x8003), word]));
        let mut reader = RecordReader::new(&all[..]);
        // The bytes of a String record are returned unchanged.
        match reader.next().unwrap() {
            Some((_, Record::String { index: 1, value })) => assert_eq!(value, &bytes[..3]),
            other => panic!("{other:?}"),
        }
        match reader.next().unwrap() {
            Some((_, Record::ProviderInfo { id: 0, name })) => assert_eq!(name, text),
            other => panic!("{other:?}"),
        }
        match reader.next().unwrap() {
            Some((_, Record::KernelObject { koid: 7, name, .. })) => {
                assert_eq!(name, StringRef::Inline(text));
            }
            other => panic!("{other:?}"),
        }
        match reader.next().unwrap() {
            Some((_, Record::Blob { name, bytes: [], .. })) => assert_eq!(name, StringRef::Inline(text)),
            other => panic!("{other:?}"),
        }
        assert!(reader.next().unwrap().is_none());
    }
}

#[test]
fn padding_need_not_be_zero() {
    let header = head(RecordType::String, 2) | string::INDEX.set(1) | string::LENGTH.set(3);
    let bytes = trace(&[header, u64::from_le_bytes(*b"abc\xff\xff\xff\xff\xff")]);
    let mut reader = RecordReader::new(&bytes[..]);
    assert!(matches!(reader.next().unwrap(), Some((0, Record::String { index: 1, value: b"abc" }))));
}

#[test]
fn an_empty_inline_string_takes_no_word() {
    let header = fxt::event_header(EventKind::Instant, 2, 0, 1, 0x8000, 0x8000);
    with_event(&trace(&[header, 5]), |event, _| {
        assert_eq!((event.category, event.name), (StringRef::Inline(""), StringRef::Inline("")));
    });
}
