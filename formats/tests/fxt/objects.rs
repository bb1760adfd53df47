//! Userspace objects.

use super::*;

#[test]
fn a_userspace_object_has_the_words_of_the_document() {
    let mut out = Vec::new();
    let args = [(StringRef::Inline("n"), Value::U64(7))];
    let process = ProcessRef::Inline(70);
    fxt::userspace_object(&mut out, 0xdead_beef, process, StringRef::Inline("heap"), &args);
    fxt::userspace_object(&mut out, 1, ProcessRef::Index(5), StringRef::Index(9), &[]);
    require_words(
        &out,
        &[
            0x0000_0180_0400_0066, // one argument, a name of 4 bytes, an inline process, 6 words
            0x0000_0000_dead_beef,
            70,
            u64::from_le_bytes(*b"heap\0\0\0\0"),
            0x0000_0007_8001_0022,
            u64::from_le_bytes(*b"n\0\0\0\0\0\0\0"),
            0x0000_0000_0905_0026,
            1,
        ],
    );
}

#[test]
fn a_process_of_index_zero_is_written_inline() {
    let mut out = Vec::new();
    fxt::userspace_object(&mut out, 1, ProcessRef::Index(0), StringRef::Empty, &[]);
    require_words(&out, &[0x36, 1, 0]);
}

#[test]
fn an_object_that_is_too_long_loses_arguments_from_its_end() {
    let text = "x".repeat(MAX_STRING);
    let args = [(StringRef::Index(1), Value::Bool(true)), (StringRef::Index(2), Value::Str(&text))];
    let mut out = Vec::new();
    fxt::userspace_object(&mut out, 1, ProcessRef::Inline(7), StringRef::Inline(&text), &args);
    match RecordReader::new(&out[..]).next().unwrap() {
        Some((0, Record::UserspaceObject { name, args: read, .. })) => {
            assert_eq!(name, StringRef::Inline(&text));
            require_arguments(read, &args[..1]);
        }
        other => panic!("{other:?}"),
    }
}

fn process() -> impl Strategy<Value = ProcessRef> {
    prop_oneof![(1..=u8::MAX).prop_map(ProcessRef::Index), unsigned().prop_map(ProcessRef::Inline)]
}

proptest! {
    #[test]
    fn a_userspace_object_is_read_back(
        pointer in unsigned(), process in process(), name in name(), owned in owned_arguments(),
    ) {
        let args = borrowed(&owned);
        let mut out = Vec::new();
        fxt::userspace_object(&mut out, pointer, process, name.reference(), &args);
        let mut reader = RecordReader::new(&out[..]);
        match reader.next().unwrap() {
            Some((0, Record::UserspaceObject { pointer: p, process: of, name: n, args: read })) => {
                assert_eq!((p, of, n), (pointer, process, name.reference()));
                require_arguments(read, &args);
            }
            other => panic!("{other:?}"),
        }
        prop_assert!(reader.next().unwrap().is_none());
    }
}
