//! Malformed records, and records of another version.

use super::*;
use hairline_formats::fxt::layout::{argument, event, large, record, string};

pub(super) fn trace(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Checks that a valid record after a malformed one is read.
pub(super) fn reads_on_after(words: &[u64], offset: u64, what: &str) {
    let mut bytes = trace(words);
    fxt::magic(&mut bytes);
    let all = read(&bytes[..]);
    match &all[..] {
        [Err(e), Ok((_, magic))] => {
            assert_eq!((e.offset, magic.as_str()), (offset, "Magic"));
            assert!(e.to_string().contains(what) && e.to_string().contains(&format!("byte {offset}")), "{e}");
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn head(kind: fxt::RecordType, words: u64) -> u64 {
    record::TYPE.set(kind as u64) | record::SIZE.set(words)
}

fn one_argument(words: u64, kind: EventKind) -> u64 {
    fxt::event_header(kind, words, 1, 1, 1, 1)
}

#[test]
fn a_record_of_size_zero_ends_the_trace() {
    let all = read(&trace(&[fxt::MAGIC, 1 << 40, fxt::MAGIC])[..]);
    assert!(
        matches!(&all[..], [Ok(_), Err(DecodeError { offset: 8, kind: DecodeErrorKind::ZeroSize { .. } })]),
        "{all:?}"
    );
}

#[test]
fn a_string_longer_than_its_record_is_refused() {
    let header = head(fxt::RecordType::String, 2) | string::INDEX.set(1) | string::LENGTH.set(9);
    reads_on_after(&[header, 0], 8, "a string");
}

#[test]
fn an_inline_name_longer_than_its_record_is_refused() {
    let header = fxt::event_header(EventKind::Instant, 2, 0, 1, 1, 0x8000 | 32_000);
    reads_on_after(&[header, 5], 16, "a name");
}

#[test]
fn a_missing_inline_thread_is_refused() {
    reads_on_after(&[fxt::event_header(EventKind::Instant, 3, 0, 0, 1, 1), 5, 6], 24, "an inline thread");
}

#[test]
fn an_event_without_a_timestamp_is_refused() {
    reads_on_after(&[fxt::event_header(EventKind::Instant, 1, 0, 1, 1, 1)], 8, "a timestamp");
}

#[test]
fn a_counter_without_its_id_is_refused() {
    reads_on_after(&[fxt::event_header(EventKind::Counter, 2, 0, 1, 1, 1), 5], 16, "last word");
}

#[test]
fn an_argument_of_size_zero_is_refused() {
    reads_on_after(&[one_argument(3, EventKind::Instant), 5, 0], 16, "an argument of size 0");
}

#[test]
fn an_argument_longer_than_its_record_is_refused() {
    reads_on_after(&[one_argument(3, EventKind::Instant), 5, argument::SIZE.set(2)], 16, "an argument");
}

#[test]
fn missing_arguments_are_refused() {
    let header = fxt::event_header(EventKind::Instant, 3, 15, 1, 1, 1);
    reads_on_after(&[header, 5, argument::SIZE.set(1)], 24, "an argument");
}

#[test]
fn an_argument_too_short_for_its_value_affects_no_other() {
    let bad = argument::TYPE.set(6) | argument::SIZE.set(1) | argument::STRING.set(0x8001);
    let good = argument::TYPE.set(2) | argument::SIZE.set(1) | argument::INTEGER.set(77);
    let header = fxt::event_header(EventKind::Instant, 4, 2, 1, 1, 1);
    let bytes = trace(&[header, 5, bad, good]);
    let mut reader = RecordReader::new(&bytes[..]);
    let Some((_, Record::Event(event))) = reader.next().unwrap() else { panic!() };
    let args: Vec<_> = event.args().collect();
    assert!(
        matches!(&args[0], Err(DecodeError { offset: 24, kind: DecodeErrorKind::PastEnd { .. } })),
        "{args:?}"
    );
    assert_eq!(*args[1].as_ref().unwrap(), (StringRef::Empty, ArgumentValue::Value(Value::U64(77))));
}

#[test]
fn an_argument_with_the_longest_blob_length_is_refused() {
    // Padded to words, this length exceeds 32 bits.
    let blob = argument::TYPE.set(10) | argument::SIZE.set(1) | argument::BLOB_LENGTH.set(u64::MAX);
    let bytes = trace(&[fxt::event_header(EventKind::Instant, 3, 1, 1, 1, 1), 5, blob]);
    let mut reader = RecordReader::new(&bytes[..]);
    let Some((_, Record::Event(event))) = reader.next().unwrap() else { panic!() };
    let args: Vec<_> = event.args().collect();
    assert!(
        matches!(&args[..], [Err(DecodeError { offset: 24, kind: DecodeErrorKind::PastEnd { .. } })]),
        "{args:?}"
    );
}

#[test]
fn an_argument_of_an_unknown_type_is_passed_over_and_counted() {
    let unknown = argument::TYPE.set(13) | argument::SIZE.set(2);
    let good = argument::TYPE.set(0) | argument::SIZE.set(1) | argument::NAME.set(3);
    let header = fxt::event_header(EventKind::Counter, 6, 2, 1, 1, 1);
    let bytes = trace(&[header, 5, unknown, u64::MAX, good, 99]);
    let mut reader = RecordReader::new(&bytes[..]);
    let Some((_, Record::Event(event))) = reader.next().unwrap() else { panic!() };
    let mut args = event.args();
    assert_eq!(args.next().unwrap().unwrap(), (StringRef::Index(3), ArgumentValue::Value(Value::Null)));
    assert!(args.next().is_none());
    assert_eq!((args.skipped(), event.payload), (1, Some(99)));
}

#[test]
fn records_of_unknown_types_are_returned_whole() {
    for words in [
        vec![11 | record::SIZE.set(2), 7], // no such record
        vec![head(fxt::RecordType::Event, 2) | event::KIND.set(11), 7], // no such event
        vec![record::SIZE.set(1) | 9 << 16], // no such metadata
        vec![record::SIZE.set(1) | 4 << 16 | 1 << 20], // no such trace info
        vec![head(fxt::RecordType::Scheduling, 3) | 3 << 60, 1, 2], // no such scheduling record
        vec![head(fxt::RecordType::Scheduling, 4) | 1 << 60 | 6 << 36, 1, 2, 3], // no such thread state
        vec![head(fxt::RecordType::Scheduling, 2) | 1 << 28 | 1 << 36 | 15 << 24, 1], // the same in a legacy record
        vec![head(fxt::RecordType::Profiler, 2) | 3 << 16, 1], // no such profiler record
        vec![15 | large::SIZE.set(2) | 1 << 36, 1],            // no such large record
        vec![15 | large::SIZE.set(2) | 2 << 40, 1],            // no such format of a large blob
    ] {
        let all = trace(&words);
        let mut reader = RecordReader::new(&all[..]);
        match reader.next().unwrap() {
            Some((0, Record::Unknown { record_type, words: n, bytes })) => {
                assert_eq!((u64::from(record_type), n), (words[0] & 15, words.len() as u64));
                assert_eq!(bytes, all);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn words_after_the_known_part_of_a_record_are_passed_over() {
    let all = read(&trace(&[head(fxt::RecordType::Initialization, 3), 10, 11, fxt::MAGIC])[..]);
    assert_eq!(all.into_iter().map(|r| r.unwrap().0).collect::<Vec<_>>(), [0, 24]);
}

#[test]
fn a_large_record_is_passed_over_without_being_kept() {
    let words = 1 << 20; // 8 MiB
    let header = record::TYPE.set(15) | large::SIZE.set(words);
    let body = std::io::Read::take(std::io::repeat(1), words * 8 - 8);
    let (header, magic) = (header.to_le_bytes(), fxt::MAGIC.to_le_bytes());
    let input = std::io::Read::chain(std::io::Read::chain(&header[..], body), &magic[..]);
    let mut reader = RecordReader::new(input);
    assert!(matches!(reader.next().unwrap(), Some((0, Record::TooLarge { words: n })) if n == words));
    assert!(matches!(reader.next().unwrap(), Some((at, Record::Magic)) if at == words * 8));
}

#[test]
fn a_large_record_that_is_cut_is_a_truncated_input() {
    let all = read(&trace(&[record::TYPE.set(15) | large::SIZE.set(u64::from(u32::MAX)), 0])[..]);
    assert!(matches!(&all[..], [Err(e)] if e.is_truncated() && e.offset == 0), "{all:?}");
}

#[test]
fn text_that_is_not_utf8_is_no_error() {
    let mut out = Vec::new();
    let args = [(StringRef::Inline("key.."), Value::Str("value.."))];
    fxt::event(&mut out, &Event { name: StringRef::Inline("name.."), ..instant(&args) });
    out.iter_mut().filter(|b| **b == b'.').for_each(|b| *b = 0xff);
    with_event(&out, |event, args| {
        assert_eq!(event.name, StringRef::Inline("name\u{fffd}\u{fffd}"));
        let value = ArgumentValue::Value(Value::Str("value\u{fffd}\u{fffd}"));
        assert_eq!(args, [(StringRef::Inline("key\u{fffd}\u{fffd}"), value)]);
    });
    let begin = Event { thread: ThreadRef::Index(1), kind: EventKind::DurationBegin, ..instant(&args) };
    fxt::event(&mut out, &Event { name: StringRef::Index(1), category: StringRef::Index(2), ..begin });
    let at = out.windows(5).rposition(|bytes| bytes == b"key..").unwrap();
    out[at + 4] = 0xe9; // of a plain event too
    let mut reader = RecordReader::new(&out[..]);
    assert!(reader.next().unwrap().is_some() && reader.advance_plain().is_none());
    let (_, Record::Event(event)) = reader.next().unwrap().unwrap() else { panic!() };
    let (name, value) = event.args().next().unwrap().unwrap();
    assert_eq!(name, StringRef::Inline("key.\u{fffd}"));
    assert_eq!(value, ArgumentValue::Value(Value::Str("value..")));
    assert!(reader.next().unwrap().is_none());
    assert_eq!(reader.wrong_texts(), 4);
}

/// Reads each record of `bytes` with each smaller size: its last field is missing, and the next record is
/// found.
fn require_refused_when_shorter(bytes: &[u8]) {
    let words: Vec<_> = bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
    let size = if record::TYPE.get(words[0]) == 15 { large::SIZE } else { record::SIZE };
    assert_eq!(size.get(words[0]), words.len() as u64, "one record");
    for len in 1..words.len() {
        let mut cut = words[..len].to_vec();
        cut[0] = words[0] & !size.set(u64::MAX) | size.set(len as u64);
        cut.push(fxt::MAGIC);
        match &read(&trace(&cut)[..])[..] {
            [Err(e), Ok((_, magic))] => {
                assert!(matches!(e.kind, DecodeErrorKind::PastEnd { .. }), "{len}: {e}");
                assert!(e.offset <= len as u64 * 8 && magic == "Magic", "{len}: {e}");
            }
            other => panic!("{len}: {other:?}"),
        }
    }
}

/// Arguments of each length.
const ARGS: [(StringRef<'_>, Value<'_>); 3] = [
    (StringRef::Inline("a long name"), Value::U64(u64::MAX)),
    (StringRef::Index(1), Value::Bool(true)),
    (StringRef::Index(2), Value::Str("a long value")),
];

#[test]
fn an_object_without_its_last_words_is_refused() {
    let mut out = Vec::new();
    fxt::userspace_object(&mut out, 1, ProcessRef::Inline(7), StringRef::Inline("a long name"), &ARGS);
    require_refused_when_shorter(&out);
    let mut out = Vec::new();
    fxt::kernel_object(&mut out, 1, 7, StringRef::Inline("a long name"), &ARGS);
    require_refused_when_shorter(&out);
}

#[test]
fn an_object_whose_name_exceeds_it_is_refused() {
    let header = head(fxt::RecordType::UserspaceObject, 3) | 1 << 16 | (0x8000 | 9) << 24;
    reads_on_after(&[header, 5, 6], 16, "a name");
}

#[test]
fn a_scheduling_record_without_its_last_words_is_refused() {
    let mut out = Vec::new();
    fxt::context_switch(&mut out, &switch(&ARGS));
    require_refused_when_shorter(&out);
    let mut out = Vec::new();
    fxt::thread_wakeup(&mut out, &ThreadWakeup { timestamp: 5, cpu: 1, thread: 71, args: &ARGS });
    require_refused_when_shorter(&out);
    let mut out = Vec::new();
    let incoming = ThreadRef::Inline { process: 1, thread: 2 };
    fxt::legacy_context_switch(&mut out, &LegacyContextSwitch { incoming, ..legacy_switch() });
    require_refused_when_shorter(&out);
}

#[test]
fn missing_arguments_of_a_switch_are_refused() {
    let header = head(fxt::RecordType::Scheduling, 5) | 1 << 60 | 2 << 16;
    reads_on_after(&[header, 5, 71, 72, argument::SIZE.set(1)], 40, "an argument");
}

#[test]
fn a_log_record_without_its_last_words_is_refused() {
    let mut out = Vec::new();
    fxt::log(&mut out, 5, ThreadRef::Inline { process: 1, thread: 2 }, "a long message");
    require_refused_when_shorter(&out);
}

#[test]
fn a_message_longer_than_its_record_is_refused() {
    let header = head(fxt::RecordType::Log, 3) | 9 << 16 | 1 << 32;
    reads_on_after(&[header, 5, 6], 16, "a log message");
    let header = head(fxt::RecordType::Log, 3) | 0x7fff << 16 | 1 << 32;
    reads_on_after(&[header, 5, 6], 16, "a log message");
}

#[test]
fn a_profiler_record_without_its_last_words_is_refused() {
    let mut out = Vec::new();
    fxt::module(&mut out, &loaded());
    require_refused_when_shorter(&out);
    let mut out = Vec::new();
    fxt::mmap(&mut out, &mapped());
    require_refused_when_shorter(&out);
    let mut out = Vec::new();
    let (thread, frames) = (ThreadRef::Inline { process: 1, thread: 2 }, &[7; 9][..]);
    fxt::backtrace(&mut out, &Backtrace { timestamp: 5, thread, frames });
    require_refused_when_shorter(&out);
}

#[test]
fn a_profiler_record_shorter_than_its_content_is_refused() {
    let head = head(fxt::RecordType::Profiler, 3) | 1 << 20;
    reads_on_after(&[head | 255 << 44, 5, 6], 16, "a module's name");
    reads_on_after(&[head | 8 << 44 | 1 << 52, 5, 6], 24, "a build id");
    reads_on_after(&[head | 2 << 16 | 2 << 28, 5, 6], 16, "a backtrace");
}

#[test]
fn a_large_blob_without_its_last_words_is_refused() {
    for metadata in [large_blob(&ARGS).metadata, None] {
        let mut out = Vec::new();
        fxt::large_blob(&mut out, &LargeBlob { metadata, ..large_blob(&[]) });
        require_refused_when_shorter(&out);
    }
}

#[test]
fn a_large_blob_longer_than_its_record_is_refused() {
    let header = 15 | large::SIZE.set(4) | 1 << 40;
    for len in [9, 1 << 32, u64::MAX / 2 - 6, u64::MAX / 2, u64::MAX - 8, u64::MAX - 7, u64::MAX] {
        reads_on_after(&[header, 0, len, 1], 24, "a large blob");
    }
    reads_on_after(&[header, 0x8000 | 17, 2, 3], 16, "a category");
    reads_on_after(
        &[15 | large::SIZE.set(4), 2 << 32 | 1 << 36, 5, argument::SIZE.set(1)],
        32,
        "an argument",
    );
}

#[test]
fn a_large_record_within_the_limit_that_is_cut_is_a_truncated_input() {
    let all = read(&trace(&[15 | large::SIZE.set(1000), 0, 0])[..]);
    assert!(matches!(&all[..], [Err(e)] if e.is_truncated() && e.offset == 0), "{all:?}");
}

#[test]
fn a_large_record_of_size_zero_ends_the_trace() {
    let all = read(&trace(&[15 | 1 << 40, fxt::MAGIC])[..]);
    assert!(matches!(&all[..], [Err(e)] if matches!(e.kind, DecodeErrorKind::ZeroSize { .. })), "{all:?}");
}
