//! Log messages.

use super::*;

#[test]
fn a_log_record_has_the_words_of_the_document() {
    let mut out = Vec::new();
    fxt::log(&mut out, 5, ThreadRef::Index(1), "hello");
    fxt::log(&mut out, 6, ThreadRef::Inline { process: 70, thread: 71 }, "12345678");
    require_words(
        &out,
        &[
            0x0000_0001_0005_0039, // thread 1, 5 bytes, 3 words
            5,
            u64::from_le_bytes(*b"hello\0\0\0"),
            0x0000_0000_0008_0059, // an inline thread, 8 bytes, 5 words
            6,
            70,
            71,
            u64::from_le_bytes(*b"12345678"),
        ],
    );
}

fn require_read(timestamp: u64, thread: ThreadRef, message: &str, kept: &str) {
    let mut out = Vec::new();
    fxt::log(&mut out, timestamp, thread, message);
    let mut reader = RecordReader::new(&out[..]);
    match reader.next().unwrap() {
        Some((0, Record::Log { timestamp: t, thread: by, message })) => {
            assert_eq!((t, by, message), (timestamp, thread, kept.as_bytes()));
        }
        other => panic!("{other:?}"),
    }
    assert!(reader.next().unwrap().is_none());
}

#[test]
fn messages_of_every_length_are_padded_and_cut_at_the_longest() {
    for len in LENGTHS {
        let message = "x".repeat(len);
        let thread = ThreadRef::Inline { process: 1, thread: 2 };
        require_read(5, thread, &message, &message[..len.min(MAX_STRING)]);
    }
}

proptest! {
    #[test]
    fn a_log_record_is_read_back(timestamp in unsigned(), thread in thread(), message in text()) {
        require_read(timestamp, thread, &message, &message);
    }
}
