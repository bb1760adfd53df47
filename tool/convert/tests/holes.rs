//! Zeros in the place of a part of a trace: what they leave whole is read, and the rest is counted.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use hairline_convert::{Context, FxtReader, Item, Report, TraceReader, TrackEventReader, TrackKind};
use hairline_formats::Value;
use hairline_formats::fxt::{self, StringRef, ThreadRef};
use hairline_formats::proto::put_bytes;
use hairline_formats::track_event::{
    Event, EventType, Name, SequenceId, ThreadTrack, TrackUuid, event, fields, thread_descriptor,
};

/// What a reader says.
struct Read {
    times: Vec<i64>,
    pids: Vec<i64>,
    report: Report,
    error: Option<String>,
}

fn read(mut reader: impl TraceReader) -> Read {
    let (mut context, mut times, mut pids) = (Context::new(), Vec::new(), Vec::new());
    let error = loop {
        match reader.next(&mut context) {
            Ok(Some(Item::Event(event))) => times.push(event.time),
            Ok(Some(Item::Track(track))) => {
                if let TrackKind::Thread { pid, .. } | TrackKind::Process { pid, .. } = track.kind {
                    pids.push(i64::try_from(pid).unwrap());
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(e) => break Some(e.to_string()),
        }
    };
    Read { times, pids, report: reader.report().clone(), error }
}

impl Read {
    fn count(&self, what: &str) -> u64 {
        self.report.iter().filter(|(known, _)| known.contains(what)).map(|(_, count)| count).sum()
    }
}

const SEQUENCE: SequenceId = SequenceId(7);
const EVENTS: i64 = 20;

/// The first time is far from 0, as in every trace of a machine.
fn time(n: i64) -> i64 {
    77_000_000_000 + 1000 * n
}

/// Where each part of a trace begins, and its end.
fn packets() -> (Vec<u8>, Vec<usize>) {
    let (mut trace, mut begins) = (Vec::new(), vec![0]);
    let thread =
        ThreadTrack { uuid: TrackUuid(5), parent_uuid: TrackUuid(0), pid: 70, tid: 71, name: "main" };
    thread_descriptor(&mut trace, SEQUENCE, &thread);
    for n in 0..EVENTS {
        begins.push(trace.len());
        let kind = if n % 2 == 0 { EventType::SliceBegin } else { EventType::SliceEnd };
        let all = [(Name::Text("bytes"), Value::U64(n as u64)), (Name::Text("text"), Value::Str("four"))];
        let annotations = &all[..(n % 3) as usize];
        let packet = Event::new(SEQUENCE, kind, time(n).cast_unsigned());
        let track_uuid = Some(TrackUuid(5));
        event(&mut trace, &Event { track_uuid, needs_state: false, annotations, ..packet });
    }
    begins.push(trace.len());
    (trace, begins)
}

fn records() -> (Vec<u8>, Vec<usize>) {
    let (mut trace, mut begins) = (Vec::new(), vec![0]);
    fxt::magic(&mut trace);
    fxt::initialization(&mut trace, 1_000_000_000);
    fxt::string_record(&mut trace, 1, "net");
    fxt::string_record(&mut trace, 2, "read");
    fxt::thread_record(&mut trace, 1, 70, 71);
    for n in 0..EVENTS {
        begins.push(trace.len());
        let kind = if n % 2 == 0 { fxt::EventKind::DurationBegin } else { fxt::EventKind::DurationEnd };
        let args = [(StringRef::Index(1), Value::U64(n as u64)), (StringRef::Index(2), Value::Str("four"))];
        let (category, name, thread) = (StringRef::Index(1), StringRef::Index(2), ThreadRef::Index(1));
        let (timestamp, args) = (time(n).cast_unsigned(), &args[..(n % 3) as usize]);
        fxt::event(&mut trace, &fxt::Event { kind, timestamp, thread, category, name, args, payload: None });
        if n % 5 == 4 {
            fxt::thread_record(&mut trace, 2, 80, 80 + n as u64);
        }
    }
    begins.push(trace.len());
    (trace, begins)
}

/// Makes each hole of `size` bytes that leaves the first part and the last two.
fn holes(
    (trace, begins): &(Vec<u8>, Vec<usize>),
    size: usize,
    step: usize,
    mut check: impl FnMut(Read, &str),
    read_it: impl Fn(&[u8]) -> Read,
) {
    let last = begins[begins.len() - 3];
    for from in (begins[1]..=last.saturating_sub(size)).step_by(step) {
        let mut with_hole = trace.clone();
        with_hole[from..from + size].fill(0);
        let found = read_it(&with_hole);
        let is_whole = |n: &usize| begins[n + 2] <= from || begins[n + 1] >= from + size;
        let whole: Vec<_> = (0..EVENTS as usize).filter(is_whole).map(|n| time(n as i64)).collect();
        let at = format!("{size} zeros at {from}: {:?} {:?}", found.times, found.report);
        assert_eq!(found.error, None, "{at}");
        assert!(whole.iter().all(|time| found.times.contains(time)), "{at}");
        let is_known = |at: &i64| (0..EVENTS).any(|n| time(n) == *at);
        assert!(found.times.iter().all(is_known), "{at}");
        assert!(!found.report.is_empty() || found.times.len() == EVENTS as usize, "{at}");
        check(found, &at);
    }
}

#[test]
fn packets_with_a_part_in_a_hole_are_lost_and_the_others_are_read() {
    for size in [16, 40, 100, 200] {
        holes(&packets(), size, 1, |_, _| {}, |trace| read(TrackEventReader::new(trace)));
    }
}

#[test]
fn packets_whose_tail_is_in_a_hole_are_lost_however_short_it_is() {
    let (trace, begins) = packets();
    let tail = begins[4] - begins[3];
    for len in 1..tail {
        let mut with_hole = trace.clone();
        with_hole[begins[4] - len..begins[4] + 100].fill(0);
        let found = read(TrackEventReader::new(&with_hole[..]));
        assert_eq!((found.error, found.times.last()), (None, Some(&time(EVENTS - 1))), "{len}");
    }
}

#[test]
fn a_compressed_packet_with_a_hole_is_lost_as_a_whole() {
    let (trace, begins) = packets();
    // A random order of letters, so that the packet is longer than a hole.
    let noise: Vec<u8> = (0..2000_u64).map(|n| b'a' + (n * n % 97 * 31 % 26) as u8).collect();
    let mut content = trace[begins[1]..begins[8]].to_vec();
    put_bytes(&mut content, 99, &noise);
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&content).unwrap();
    let compressed = encoder.finish().unwrap();
    for size in [1, 15, 16, 100] {
        for from in [compressed.len() / 3, compressed.len() - size] {
            if size < 16 && from + size < compressed.len() {
                continue;
            }
            let mut with_hole = compressed.clone();
            with_hole[from..from + size].fill(0);
            let mut packet = Vec::new();
            put_bytes(&mut packet, fields::trace_packet::COMPRESSED_PACKETS, &with_hole);
            let mut all = trace[..begins[1]].to_vec();
            put_bytes(&mut all, fields::trace::PACKET, &packet);
            all.extend_from_slice(&trace[begins[8]..]);
            let found = read(TrackEventReader::new(&all[..]));
            assert_eq!(
                (found.count("hole"), found.times.len()),
                (1, EVENTS as usize - 7),
                "{size} at {from}"
            );
            assert_eq!(found.error, None);
        }
    }
}

/// A trace in which the packets from one to another are compressed, after a change of their bytes and of the
/// compressed ones.
fn compressed(
    (trace, begins): &(Vec<u8>, Vec<usize>),
    (from, to): (usize, usize),
    change: impl FnOnce(&mut Vec<u8>),
    change_compressed: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut content = trace[begins[from]..begins[to]].to_vec();
    change(&mut content);
    let mut compressed = zlib(&content);
    change_compressed(&mut compressed);
    let packet = (fields::trace_packet::COMPRESSED_PACKETS, &compressed[..]);
    in_place_of(&(trace, begins), (from, to), packet)
}

/// A trace with a packet of one field in the place of the packets from one to another.
fn in_place_of(
    (trace, begins): &(&[u8], &[usize]),
    (from, to): (usize, usize),
    (field, bytes): (u32, &[u8]),
) -> Vec<u8> {
    let (mut packet, mut all) = (Vec::new(), trace[..begins[from]].to_vec());
    put_bytes(&mut packet, field, bytes);
    put_bytes(&mut all, fields::trace::PACKET, &packet);
    all.extend_from_slice(&trace[begins[to]..]);
    all
}

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// A zstd frame of blocks that are stored as they are, and the place of each block.
#[cfg(feature = "unpack")]
fn zstd(content: &[u8]) -> (Vec<u8>, Vec<usize>) {
    let (mut frame, mut places) = (vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38], Vec::new());
    let blocks: Vec<_> = content.chunks(100).collect();
    for (n, block) in (1..).zip(&blocks) {
        places.push(frame.len());
        let head = (block.len() as u32) << 3 | u32::from(n == blocks.len());
        frame.extend(&head.to_le_bytes()[..3]);
        frame.extend(*block);
    }
    (frame, places)
}

/// What is read where the packets from 2 to 10 are this field's content.
fn damaged(field: u32, content: &[u8]) -> Read {
    let (trace, begins) = packets();
    let found = read(TrackEventReader::new(&in_place_of(&(&trace, &begins), (2, 10), (field, content))[..]));
    assert_eq!((&found.error, found.times.last()), (&None, Some(&time(EVENTS - 1))), "{:?}", found.report);
    found
}

/// The rest of the trace was lost, with an error.
#[test]
fn damage_in_a_compressed_packet_is_counted_and_the_trace_goes_on() {
    let (trace, begins) = packets();
    let (content, field) = (&trace[begins[2]..begins[10]], fields::trace_packet::COMPRESSED_PACKETS);
    let whole = zlib(content);
    assert!(damaged(field, &whole).report.is_empty());
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        let found = damaged(field, &changed);
        assert!(found.count("compressed packets") + found.count("hole") > 0, "{at}: {:?}", found.report);
    }
    let mut changed = whole;
    *changed.last_mut().unwrap() ^= 0x55; // of the checksum
    assert_eq!(damaged(field, &changed).count("content is damaged"), 1);
}

#[cfg(feature = "unpack")]
#[test]
fn damage_in_a_packet_compressed_with_zstd_is_as_with_zlib() {
    let (trace, begins) = packets();
    let (content, field) = (&trace[begins[2]..begins[10]], fields::trace_packet::ZSTD_COMPRESSED_PACKETS);
    let (whole, blocks) = zstd(content);
    assert!(damaged(field, &whole).report.is_empty());
    // A change in a stored block without a checksum may remain unknown.
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        damaged(field, &changed);
    }
    let mut changed = whole.clone();
    changed[blocks[2]] |= 3 << 1; // a kind of block that there is not
    let found = damaged(field, &changed);
    assert_eq!(found.count("content is damaged"), 1, "{:?}", found.report);
    assert!(found.times.len() > EVENTS as usize - 8);
    let found = damaged(field, &whole[..blocks[2] + 20]);
    assert_eq!(found.count("whose content is cut"), 1, "{:?}", found.report);
    assert!(found.times.len() > EVENTS as usize - 8);
    let mut changed = whole;
    changed[5] = 0xff; // the size of the window
    assert_eq!(damaged(field, &changed).count("more than 64 MiB"), 1);
}

#[test]
fn zeros_in_a_compressed_packet_are_counted_as_in_other_packets() {
    let plain = packets();
    let (first, begins) = (plain.1[2], &plain.1);
    let hole = |content: &mut Vec<u8>| content[begins[4] - first..begins[6] - first + 5].fill(0);
    let at_end = |content: &mut Vec<u8>| content.resize(content.len() + 100, 0);
    let unknown = |content: &mut Vec<u8>| put_bytes(content, 99, b"a field of the trace");
    let counted = |change: &dyn Fn(&mut Vec<u8>)| {
        let found = read(TrackEventReader::new(&compressed(&plain, (2, 10), change, |_| ())[..]));
        let what = ["holes of zeros, in", "at the end", "unknown fields"].map(|what| found.count(what));
        (what, found.times.len(), found.error)
    };
    assert_eq!(counted(&hole), ([1, 0, 0], EVENTS as usize - 3, None));
    assert_eq!(counted(&at_end), ([0, 1, 0], EVENTS as usize, None));
    assert_eq!(counted(&unknown), ([0, 0, 1], EVENTS as usize, None));
}

#[test]
fn a_packet_with_a_hole_in_a_compressed_one_is_lost_alone() {
    let plain = packets();
    for len in [16, 20] {
        let begin = plain.1[6] - plain.1[2];
        let hole = |content: &mut Vec<u8>| content[begin - len..begin].fill(0);
        let found = read(TrackEventReader::new(&compressed(&plain, (2, 10), hole, |_| ())[..]));
        assert_eq!(found.count("hole of zeros left out"), 1, "{:?}", found.report);
        assert_eq!((found.times.len(), found.error), (EVENTS as usize - 1, None), "{len}");
    }
}

/// To unpack it takes the time of its content, however often it is repeated.
#[test]
fn a_compressed_packet_inside_of_another_is_counted_and_not_unpacked() {
    let plain = packets();
    let nested = |content: &mut Vec<u8>| {
        let inner = compressed(&packets(), (2, 10), |_| (), |compressed| compressed.extend([0; 20]));
        content.extend_from_slice(&inner[plain.1[2]..]);
    };
    let found = read(TrackEventReader::new(&compressed(&plain, (2, 10), nested, |_| ())[..]));
    let counted = ["inside compressed packets", "hole"].map(|what| found.count(what));
    assert_eq!((counted, found.error), ([1, 0], None), "{:?}", found.report);
}

/// What follows the compressed packet is whole. It was lost with the rest of the trace.
#[test]
fn the_cut_end_of_a_compressed_packet_is_counted_and_the_trace_goes_on() {
    let plain = packets();
    let content = |content: &mut Vec<u8>| content.truncate(content.len() - 3);
    let stream = |compressed: &mut Vec<u8>| {
        compressed.truncate(compressed.len() - 6);
        compressed.extend([1]); // no zero, which would be a hole
    };
    for trace in [compressed(&plain, (2, 10), content, |_| ()), compressed(&plain, (2, 10), |_| (), stream)] {
        let found = read(TrackEventReader::new(&trace[..]));
        assert_eq!(found.count("whose content is cut"), 1, "{:?}", found.report);
        assert!(found.times.len() >= EVENTS as usize - 1);
        assert_eq!((found.error, found.times.last()), (None, Some(&time(EVENTS - 1))));
    }
}

#[test]
fn records_that_end_in_a_hole_are_no_events_at_time_zero_and_no_threads_of_process_zero() {
    for size in [16, 24, 64, 160, 240] {
        let check = |found: Read, at: &str| assert!(!found.pids.contains(&0), "{at}: {:?}", found.pids);
        holes(&records(), size, 8, check, |trace| read(FxtReader::new(trace)));
    }
}

#[test]
fn records_before_zeros_that_end_in_zeros_of_their_own_are_read() {
    let (mut trace, _) = records();
    let (category, name, thread) = (StringRef::Index(1), StringRef::Index(2), ThreadRef::Index(1));
    let args = [(name, Value::U64(0))];
    let (kind, timestamp) = (fxt::EventKind::Counter, time(EVENTS).cast_unsigned());
    let payload = Some(0);
    fxt::event(&mut trace, &fxt::Event { kind, timestamp, thread, category, name, args: &args, payload });
    trace.resize(trace.len() + 512, 0);
    let found = read(FxtReader::new(&trace[..]));
    assert_eq!((found.times.last(), found.count("hole")), (Some(&time(EVENTS)), 0));
}

#[test]
fn what_was_counted_before_an_error_is_in_the_report() {
    let (mut trace, begins) = packets();
    trace[begins[3]..begins[5]].fill(0);
    let found = read(TrackEventReader::new(&trace[..trace.len() - 1]));
    assert!(found.error.is_some());
    assert_eq!(found.count("holes of zeros"), 1);

    let (mut trace, begins) = records();
    trace[begins[3]..begins[5]].fill(0);
    let found = read(FxtReader::new(&trace[..trace.len() - 1]));
    assert!(found.error.is_some());
    assert_eq!(found.count("holes of zeros"), 1);
}

/// Bytes without any order.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[test]
fn noise_after_a_hole_is_no_event() {
    for (seed, (trace, begins), is_fxt) in [(1, packets(), false), (2, records(), true)] {
        let mut with_noise = trace[..begins[4]].to_vec();
        with_noise.resize((with_noise.len() + 600) / 8 * 8, 0);
        with_noise.extend(noise(1 << 20, seed));
        with_noise.extend([0; 64]);
        with_noise.extend(&trace[begins[4]..]);
        let read_it = |bytes: &[u8]| {
            if is_fxt { read(FxtReader::new(bytes)) } else { read(TrackEventReader::new(bytes)) }
        };
        let found = read_it(&with_noise);
        assert_eq!((found.error, found.times), (None, read_it(&trace).times), "{is_fxt}");
    }
}

#[test]
fn a_large_packet_after_a_hole_is_read() {
    let (mut trace, begins) = packets();
    let mut last = trace.split_off(begins[10]);
    trace.resize(trace.len() + 1000, 0);
    let text = "t".repeat(300_000);
    let annotations = [(Name::Text("text"), Value::Str(&text))];
    let packet = Event::new(SEQUENCE, EventType::Instant, time(EVENTS).cast_unsigned());
    let track_uuid = Some(TrackUuid(5));
    event(&mut trace, &Event { track_uuid, needs_state: false, annotations: &annotations, ..packet });
    trace.append(&mut last);
    let found = read(TrackEventReader::new(&trace[..]));
    assert_eq!((found.error, found.times.len()), (None, EVENTS as usize + 1));
}

/// This took minutes while all fields of each were read.
#[test]
fn what_only_seems_to_be_packets_after_a_hole_takes_little_time() {
    let (mut trace, begins) = packets();
    let rest = trace.split_off(begins[10]);
    trace.resize(trace.len() + 1000, 0);
    // Each has the begin of a packet of 131,080 bytes in it, whose fields are those of all that follow.
    for _ in 0..400_000 {
        trace.extend([0x08, 0x0a, 0x88, 0x80, 0x08, 0x0d, 0x08, 0x01, 0x08, 0x01]);
    }
    trace.resize(trace.len() + 1000, 0);
    trace.extend(rest);
    let found = read(TrackEventReader::new(&trace[..]));
    assert_eq!((found.error, found.times.len()), (None, EVENTS as usize));
    assert!(found.report.iter().any(|(what, _)| what.contains("holes of zeros")));
}

#[test]
fn a_hole_after_each_packet_takes_little_time() {
    let (trace, begins) = packets();
    let (one, mut all) = (&trace[begins[3]..begins[4]], trace[..begins[3]].to_vec());
    for _ in 0..100_000 {
        all.extend(one);
        all.extend([0; 2]);
    }
    all.extend(one);
    let found = read(TrackEventReader::new(&all[..]));
    assert_eq!((found.times.len(), found.count("holes of zeros")), (100_003, 100_000));
    assert_eq!(found.error, None);
}

/// A string that follows a hole was passed over with it, and so was the thread of all later events.
#[test]
fn definitions_after_a_hole_are_read() {
    let (mut trace, _) = records();
    trace.resize(trace.len() + 1024, 0);
    fxt::string_record(&mut trace, 9, "a name after the hole");
    fxt::thread_record(&mut trace, 9, 90, 91);
    let (category, name, thread) = (StringRef::Index(1), StringRef::Index(9), ThreadRef::Index(9));
    for n in EVENTS..EVENTS + 2 {
        let (kind, timestamp) = (fxt::EventKind::Instant, time(n).cast_unsigned());
        fxt::event(
            &mut trace,
            &fxt::Event { kind, timestamp, thread, category, name, args: &[], payload: None },
        );
    }
    let found = read(FxtReader::new(&trace[..]));
    assert!(found.pids.contains(&90), "{:?}", found.pids);
    assert_eq!((found.times.len(), found.count("undefined")), (EVENTS as usize + 2, 0));
    assert_eq!((found.count("holes of zeros"), found.error), (1, None));
}
