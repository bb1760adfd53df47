//! The writers at the limits of the format.

use super::*;

#[test]
fn the_magic_word_is_as_documented() {
    assert_eq!(everything()[..8], [0x10, 0x00, 0x04, 0x46, 0x78, 0x54, 0x16, 0x00]);
}

#[test]
fn strings_of_every_length_are_padded_and_cut_at_the_longest() {
    for len in LENGTHS {
        let text = "x".repeat(len);
        let kept = &text[..len.min(MAX_STRING)];
        let mut out = Vec::new();
        fxt::string_record(&mut out, 1, &text);
        assert_eq!(out.len(), fxt::string_record_words(&text) * 8);
        assert_eq!(out.len(), 8 + kept.len().next_multiple_of(8));
        let mut reader = RecordReader::new(&out[..]);
        match reader.next().unwrap() {
            Some((0, Record::String { index: 1, value })) => assert_eq!(value, kept.as_bytes()),
            other => panic!("{other:?}"),
        }

        let args = [(StringRef::Inline("a"), Value::Str(&text))];
        let event = instant(&args);
        let mut out = Vec::new();
        fxt::event(&mut out, &event);
        assert_eq!(out.len(), fxt::event_words(&event) * 8);
        with_event(&out, |_, args| {
            assert_eq!(args, [(StringRef::Inline("a"), ArgumentValue::Value(Value::Str(kept)))]);
        });
    }
}

#[test]
fn a_long_string_is_cut_between_two_characters() {
    let text = "é".repeat(MAX_STRING / 2 - 1) + "a€";
    assert_eq!(text.len(), MAX_STRING + 2);
    let mut out = Vec::new();
    fxt::string_record(&mut out, 1, &text);
    match RecordReader::new(&out[..]).next().unwrap() {
        Some((0, Record::String { value, .. })) => assert_eq!(value, &text.as_bytes()[..MAX_STRING - 1]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn integers_of_32_bits_take_a_word_less() {
    let words = |value| fxt::argument_words(StringRef::Index(1), &value);
    for (value, expected) in [
        (Value::I64(0), 1),
        (Value::I64(i64::from(i32::MIN)), 1),
        (Value::I64(i64::from(i32::MIN) - 1), 2),
        (Value::I64(i64::from(i32::MAX)), 1),
        (Value::I64(i64::from(i32::MAX) + 1), 2),
        (Value::U64(u64::from(u32::MAX)), 1),
        (Value::U64(u64::from(u32::MAX) + 1), 2),
        (Value::U64(u64::MAX), 2),
        (Value::Str(""), 1),
        (Value::Bool(true), 1),
        (Value::F64(1.0), 2),
    ] {
        assert_eq!(words(value), expected, "{value:?}");
    }
}

#[test]
fn the_sixteenth_argument_is_dropped() {
    let args = [(StringRef::Index(fxt::MAX_STRING_INDEX), Value::U64(1)); MAX_ARGS + 1];
    let mut out = Vec::new();
    fxt::event(&mut out, &instant(&args));
    with_event(&out, |_, read| assert_eq!(read.len(), MAX_ARGS));
}

#[test]
fn an_event_that_is_too_long_loses_arguments_from_its_end() {
    let text = "x".repeat(20_000);
    let args = [
        (StringRef::Index(1), Value::Str(&text)),
        (StringRef::Index(2), Value::Str(&text)),
        (StringRef::Index(3), Value::Bool(true)),
    ];
    let event = instant(&args);
    assert!(fxt::event_words(&event) > MAX_RECORD_WORDS);
    let mut out = Vec::new();
    fxt::event(&mut out, &event);
    with_event(&out, |_, read| assert_eq!(read, [(args[0].0, ArgumentValue::Value(args[0].1))]));
}

#[test]
fn an_event_whose_names_alone_are_too_long_keeps_the_beginning_of_its_name() {
    let (category, name) = ("c".repeat(MAX_STRING), "n".repeat(MAX_STRING));
    let event =
        Event { category: StringRef::Inline(&category), name: StringRef::Inline(&name), ..instant(&[]) };
    let mut out = Vec::new();
    fxt::event(&mut out, &event);
    assert_eq!(out.len(), MAX_RECORD_WORDS * 8);
    with_event(&out, |read, _| {
        assert_eq!(read.category, event.category);
        assert!(matches!(read.name, StringRef::Inline(n) if !n.is_empty() && name.starts_with(n)));
    });
}

#[test]
fn a_large_blob_becomes_several_records_of_its_name() {
    let bytes: Vec<u8> = (0..100_000_u32).map(|i| i as u8).collect();
    let mut out = Vec::new();
    fxt::blob(&mut out, StringRef::Inline("trace"), fxt::BLOB_PERFETTO, &bytes);
    let (mut joined, mut reader) = (Vec::new(), RecordReader::new(&out[..]));
    while let Some((_, record)) = reader.next().unwrap() {
        let Record::Blob { name: StringRef::Inline("trace"), kind: fxt::BLOB_PERFETTO, bytes } = record
        else {
            panic!("{record:?}")
        };
        joined.extend_from_slice(bytes);
    }
    assert_eq!(joined, bytes);
}

#[test]
fn a_thread_of_index_zero_is_written_inline() {
    let mut out = Vec::new();
    fxt::event(&mut out, &Event { thread: ThreadRef::Index(0), ..instant(&[]) });
    with_event(&out, |read, _| assert_eq!(read.thread, ThreadRef::Inline { process: 0, thread: 0 }));
}

#[test]
fn a_string_value_by_index_is_read() {
    let mut out = Vec::new();
    fxt::event(&mut out, &instant(&[(StringRef::Index(4), Value::Str(""))]));
    // This crate writes no index as a value, so the test sets the index by hand.
    let argument = out.len() - 8;
    out[argument + 4] = 9;
    with_event(&out, |_, args| assert_eq!(args, [(StringRef::Index(4), ArgumentValue::StringIndex(9))]));
}
