//! FXT: logs, profiles and bulk data. The importer passes over all of it but Perfetto's own.

use hairline_formats::fxt::{
    BLOB_DATA, BLOB_LAST_BRANCH, BLOB_PERFETTO, Backtrace, EventKind, LargeBlob, LargeBlobMetadata,
    MAX_RECORD_WORDS, Mmap, Module, StringRef, backtrace, blob, event, large_blob, large_blob_words, log,
    mmap, module,
};
use hairline_formats::track_event::{self as te, EventType, Name, SequenceId, TrackUuid};
use hairline_formats::{Value, fxt};
use hairline_tests::judge::{load_bytes, try_load_bytes};

use super::{SLICES, THREAD, fxt_trace, inline, of_thread, require_passed_over, rows};

#[test]
fn a_log_record_is_passed_over() {
    require_passed_over(|out| log(out, 5, THREAD, "a message"));
}

#[test]
fn profiler_records_are_passed_over() {
    require_passed_over(|out| {
        let build_id = [1, 2, 3];
        module(out, &Module { timestamp: 5, thread: THREAD, id: 1, name: "libc.so", build_id: &build_id });
        let (start, range, vaddr) = (0x1000, 0x100, 0x10);
        mmap(out, &Mmap { timestamp: 6, thread: THREAD, module_id: 1, flags: 5, start, range, vaddr });
        backtrace(out, &Backtrace { timestamp: 7, thread: THREAD, frames: &[0x1004, 0x1008] });
    });
}

#[test]
fn blobs_of_other_types_than_perfetto_s_are_passed_over() {
    for kind in [BLOB_DATA, BLOB_LAST_BRANCH, 0, 4, 255] {
        require_passed_over(|out| {
            blob(out, inline("data"), kind, b"\x0a\x02\x08\x01");
            blob(out, inline("data"), kind, &[7; 100_000]); // several records of the name
        });
    }
}

#[test]
fn a_blob_of_perfetto_s_type_is_read_as_a_trace_and_one_of_nonsense_passed_over() {
    let mut packets = Vec::new();
    let track = te::CustomTrack { uuid: TrackUuid(5), name: "of the blob", ..te::CustomTrack::default() };
    te::custom_descriptor(&mut packets, SequenceId(1), &track);
    let name = Some(Name::Text("inside"));
    let instant = te::Event {
        clock_id: Some(te::fields::clock::BOOTTIME),
        needs_state: false,
        name,
        track_uuid: Some(TrackUuid(5)),
        ..te::Event::new(SequenceId(1), EventType::Instant, 77)
    };
    te::event(&mut packets, &instant);
    let trace = fxt_trace(|out| {
        blob(out, inline("perfetto"), BLOB_PERFETTO, &packets);
        event(out, &of_thread(EventKind::Instant, 50, "outside"));
    });
    let slices = "select s.ts, s.name, t.name from slice s join track t on s.track_id = t.id order by s.ts";
    assert_eq!(rows(&trace, [slices]), ["50\toutside\tNULL\n77\tinside\tof the blob"]);
    require_passed_over(|out| blob(out, inline("perfetto"), BLOB_PERFETTO, &[1, 2, 3]));
}

/// A large blob of this many words.
fn of_words(words: usize, with_metadata: bool) -> Vec<u8> {
    let bytes = vec![7; words * 8];
    let args = [(inline("key"), Value::I64(1))];
    let metadata = LargeBlobMetadata { timestamp: 5, thread: THREAD, args: &args[..] };
    let metadata = with_metadata.then_some(metadata);
    let empty: LargeBlob<'_, fxt::ArgumentSlice<'_>> =
        LargeBlob { category: inline("c"), name: StringRef::Empty, metadata, bytes: &[] };
    let room = (words - large_blob_words(&empty) as usize) * 8;
    let mut out = Vec::new();
    large_blob(&mut out, &LargeBlob { bytes: &bytes[..room], ..empty });
    assert_eq!(out.len(), words * 8);
    out
}

#[test]
fn a_large_blob_as_long_as_any_other_record_is_passed_over() {
    for with_metadata in [false, true] {
        for words in [16, 17, 100, MAX_RECORD_WORDS] {
            require_passed_over(|out| out.extend(of_words(words, with_metadata)));
        }
    }
}

// The importer reads 12 bits of the size. 4096 words are 0 to it, at which it gives up; 5000 are 904, and
// then it reads the bytes of the blob as if they were records.
#[test]
fn a_larger_blob_fails_the_file_or_hides_what_follows() {
    for with_metadata in [false, true] {
        let followed_by_an_event = |words| {
            fxt_trace(|out| {
                out.extend(of_words(words, with_metadata));
                event(out, &of_thread(EventKind::Instant, 50, "after"));
            })
        };
        let error = try_load_bytes(&followed_by_an_event(MAX_RECORD_WORDS + 1), &[]).unwrap_err();
        assert!(error.to_string().contains("Unexpected record of size 0"), "{error}");
        let verdict = load_bytes(&followed_by_an_event(5000), &[SLICES]);
        assert!(verdict.results[0].is_empty() && !verdict.complaints.is_empty());
    }
}
