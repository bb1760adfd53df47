//! The words of common records, computed by hand from the document.

use super::*;

#[test]
fn each_kind_of_event_has_its_number_and_its_last_word() {
    let kinds = [
        (EventKind::Instant, None),
        (EventKind::Counter, Some(1)),
        (EventKind::DurationBegin, None),
        (EventKind::DurationEnd, None),
        (EventKind::DurationComplete, Some(4)),
        (EventKind::AsyncBegin, Some(5)),
        (EventKind::AsyncInstant, Some(6)),
        (EventKind::AsyncEnd, Some(7)),
        (EventKind::FlowBegin, Some(8)),
        (EventKind::FlowStep, Some(9)),
        (EventKind::FlowEnd, Some(10)),
    ];
    for (number, (kind, payload)) in (0..).zip(kinds) {
        let mut out = Vec::new();
        let args = [(StringRef::Index(4), Value::Bool(true))];
        fxt::event(&mut out, &Event { kind, payload, ..instant(&args) });
        // Name 2, category 1, thread 1, one argument.
        let (header, argument) = (0x0002_0001_0110_0004, 0x0000_0001_0004_0019);
        match payload {
            None => require_words(&out, &[header | number << 16 | 3 << 4, 5, argument]),
            Some(last) => require_words(&out, &[header | number << 16 | 4 << 4, 5, argument, last]),
        }
        with_event(&out, |read, _| assert_eq!((read.kind, read.payload), (kind, payload)));
        // Kinds without a payload ignore it; for the others, a missing payload is written as 0.
        let mut other = Vec::new();
        let exchanged = if payload.is_none() { Some(99) } else { None };
        fxt::event(&mut other, &Event { kind, payload: exchanged, ..instant(&args) });
        assert_eq!(other.len(), out.len());
        with_event(&other, |read, _| assert_eq!(read.payload, payload.map(|_| 0)));
    }
}

#[test]
fn an_event_has_its_thread_and_its_names_in_order() {
    let mut out = Vec::new();
    let thread = ThreadRef::Inline { process: 70, thread: 71 };
    let (category, name) = (StringRef::Inline("net"), StringRef::Inline("read"));
    let (kind, payload) = (EventKind::AsyncEnd, Some(9));
    fxt::event(&mut out, &Event { kind, thread, category, name, payload, ..instant(&[]) });
    let (category, name) = (u64::from_le_bytes(*b"net\0\0\0\0\0"), u64::from_le_bytes(*b"read\0\0\0\0"));
    require_words(&out, &[0x8004_8003_0007_0074, 5, 70, 71, category, name, 9]);
}

#[test]
fn each_type_of_argument_has_the_words_of_the_document() {
    let put = |value| {
        let mut out = Vec::new();
        fxt::put_argument(&mut out, StringRef::Index(3), &value);
        out
    };
    require_words(&put(Value::Null), &[0x0003_0010]);
    require_words(&put(Value::I64(-2)), &[0xffff_fffe_0003_0011]);
    require_words(&put(Value::U64(2)), &[0x0000_0002_0003_0012]);
    require_words(&put(Value::I64(-1 << 40)), &[0x0003_0023, 0xffff_ff00_0000_0000]);
    require_words(&put(Value::U64(1 << 40)), &[0x0003_0024, 0x0000_0100_0000_0000]);
    require_words(&put(Value::F64(1.0)), &[0x0003_0025, 0x3ff0_0000_0000_0000]);
    require_words(&put(Value::Str("a")), &[0x0000_8001_0003_0026, 0x61]);
    require_words(&put(Value::Pointer(5)), &[0x0003_0027, 5]);
    require_words(&put(Value::Koid(6)), &[0x0003_0028, 6]);
    require_words(&put(Value::Bool(true)), &[0x0000_0001_0003_0019]);
    require_words(&put(Value::Blob(&[7; 9])), &[0x0000_0009_0003_003a, 0x0707_0707_0707_0707, 7]);
}

#[test]
fn tables_blobs_and_metadata_have_the_words_of_the_document() {
    let mut out = Vec::new();
    fxt::magic(&mut out);
    fxt::provider_info(&mut out, 7, "program");
    fxt::provider_section(&mut out, 7);
    fxt::provider_event(&mut out, 7, 0);
    fxt::initialization(&mut out, 1000);
    fxt::string_record(&mut out, 0x7fff, "net");
    fxt::thread_record(&mut out, 255, 70, 71);
    fxt::blob(&mut out, StringRef::Index(2), fxt::BLOB_LAST_BRANCH, b"123456789");
    fxt::kernel_object(&mut out, fxt::KERNEL_OBJECT_THREAD, 71, StringRef::Index(2), &[]);
    let net = u64::from_le_bytes(*b"net\0\0\0\0\0");
    require_words(
        &out,
        &[
            0x0016_5478_4604_0010,
            0x0070_0000_0071_0020, // a name of 7 bytes, provider 7, kind 1, 2 words
            u64::from_le_bytes(*b"program\0"),
            0x0000_0000_0072_0010,
            0x0000_0000_0073_0010,
            0x21,
            1000,
            0x0000_0003_7fff_0022, // 3 bytes, index 0x7fff, 2 words
            net,
            0x0000_0000_00ff_0033,
            70,
            71,
            0x0002_0009_0002_0035, // type 2, 9 bytes, name 2, 3 words
            u64::from_le_bytes(*b"12345678"),
            u64::from_le_bytes(*b"9\0\0\0\0\0\0\0"),
            0x0000_0000_0202_0027, // name 2, type 2, 2 words
            71,
        ],
    );
}
