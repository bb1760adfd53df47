//! Generated traces: each pair of record kinds of each format, in each relation of their times, in several
//! orders and places, and many triples, before and after each conversion. The rows are equal, or the report
//! says something. The importer complains about no conversion of which the report says nothing, unless it
//! complains about the original too.
//!
//! A trace of trace_processor has many cases, each in a window of time and with threads and ids of its own,
//! because loading a trace takes longer than all else. `HAIRLINE_GENERATED` is the number of cases for each
//! format, or `all` (see ci/generated.sh); without it, a sample runs. `HAIRLINE_GENERATED_SEED` chooses
//! another sample.

use std::fmt::Write as _;

use hairline_convert::TraceFormat::{self, Fxt, Json, TrackEvent};
use hairline_convert::{Context, Report, create, open};
use hairline_formats::Value;
use hairline_formats::fxt::{self, StringRef, ThreadRef};
use hairline_formats::proto::put_message;
use hairline_formats::track_event::{
    self as te, CounterValue, EventType, FlowDirection, LegacyEvent, LegacyId, Name, SequenceId, TrackUuid,
    fields::track_event,
};

use hairline_tests::equal::Shown;
use hairline_tests::judge::{self, Stat};

use crate::convert;
use crate::differences::TABLES;
use crate::matrix::same;

/// The window of a case, in nanoseconds.
const WINDOW: u64 = 1_000_000;
/// The cases of a trace.
const TOGETHER: usize = 250;
/// The cases for each format without `HAIRLINE_GENERATED`.
const SAMPLE: usize = 250;

/// A record at a time, in nanoseconds from the begin of the window.
#[derive(Clone, Copy, Debug)]
struct Record {
    time: u64,
    what: What,
    /// Which of the case's members it belongs to; the place depends on it.
    of: u64,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Begin,
    End,
    /// An end without a name.
    BareEnd,
    Complete(u64),
    Instant,
    AsyncBegin,
    AsyncEnd,
    /// The same with the id that all members of the case share.
    SharedBegin,
    SharedEnd,
    Count(i64),
    Flow(Step),
    /// A complete slice that a flow is bound to.
    Bound(u64, Step),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Begin,
    Through,
    End,
}

/// The kinds of records, each with an interval.
const KINDS: [&str; 12] = [
    "begin and end",
    "begin and bare end",
    "complete",
    "complete of odd nanoseconds",
    "instant",
    "async",
    "counter",
    "flow",
    "flow with a step",
    "bound flow",
    "flow of two ends",
    "async with a shared id",
];

fn records(kind: usize, (from, to): (u64, u64), of: u64) -> Vec<Record> {
    let at = |time, what| Record { time, what, of };
    let (odd, half) = (if kind == 3 { 1 } else { 0 }, from + (to - from) / 2);
    match kind {
        0 => vec![at(from, What::Begin), at(to, What::End)],
        1 => vec![at(from, What::Begin), at(to, What::BareEnd)],
        2 | 3 => vec![at(from + odd, What::Complete(to - from))],
        4 => vec![at(from, What::Instant)],
        5 => vec![at(from, What::AsyncBegin), at(to, What::AsyncEnd)],
        11 => vec![at(from, What::SharedBegin), at(to, What::SharedEnd)],
        6 => vec![at(from, What::Count(3)), at(to, What::Count(5))],
        7 | 8 | 10 => {
            let mut all = vec![at(from, What::Complete(1_000)), at(from, What::Flow(Step::Begin))];
            if kind != 7 {
                let step = if kind == 8 { Step::Through } else { Step::End };
                all.extend([at(half, What::Complete(1_000)), at(half, What::Flow(step))]);
            }
            all.extend([at(to, What::Complete(1_000)), at(to, What::Flow(Step::End))]);
            all
        }
        _ => vec![at(from, What::Bound(1_000, Step::Begin)), at(to, What::Bound(1_000, Step::End))],
    }
}

/// The times of the second of a pair; those of the first are 20 and 40 microseconds.
const TIMES: [(u64, u64); 10] =
    [(20, 40), (20, 30), (20, 60), (30, 40), (10, 40), (40, 60), (25, 35), (30, 60), (10, 60), (40, 40)];

/// In order of time; the second first; reversed.
const ORDERS: usize = 3;
/// On one thread, two threads, two processes.
const PLACES: usize = 3;

/// The number of pairs, and of all cases: pairs and triples.
const PAIRS: usize = KINDS.len() * KINDS.len() * TIMES.len() * ORDERS * PLACES;
const CASES: usize = PAIRS + 12_000;

#[derive(Debug)]
struct Case {
    name: String,
    records: Vec<Record>,
    place: usize,
    twist: Twist,
}

/// What is odd about all records of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Twist {
    None,
    /// Their names have bytes that are not UTF-8.
    NotUtf8,
    /// In JSON, times and durations have parts of a nanosecond, each rounded on its own.
    Rounded,
    /// Processes have one process id: in packets, which have ids of their own for them.
    OneId,
}

const TWISTS: [Twist; 4] = [Twist::None, Twist::NotUtf8, Twist::Rounded, Twist::OneId];

/// The digits of a number, each to a base of its own.
struct Digits(usize);

impl Digits {
    fn next(&mut self, base: usize) -> usize {
        let digit = self.0 % base;
        self.0 /= base;
        digit
    }
}

fn case(number: usize) -> Case {
    // Pairs are counted; triples are too many for that, so each number is spread over all of them.
    let spread = |number: usize| (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 5) ^ number;
    let mut digits = Digits(if number < PAIRS { number } else { spread(number) });
    let members = if number < PAIRS { 2 } else { 3 };
    let (mut all, mut name) = (Vec::new(), format!("{number}:"));
    for of in 0..members {
        let kind = digits.next(KINDS.len());
        let (from, to) = if of == 0 { TIMES[0] } else { TIMES[digits.next(TIMES.len())] };
        all.extend(records(kind, (from * 1000, to * 1000), of));
        write!(name, " {} at {from}..{to},", KINDS[kind]).expect("memory");
    }
    let (order, place) = (digits.next(ORDERS), digits.next(PLACES));
    let twist = if number < PAIRS { Twist::None } else { TWISTS[digits.next(TWISTS.len())] };
    match order {
        0 => all.sort_by_key(|record| record.time),
        1 => all.sort_by_key(|record| members - record.of),
        _ => all.reverse(),
    }
    let order = ["by time", "the last first", "reversed"][order];
    let place_name = ["one thread", "several threads", "several processes"][place];
    write!(name, " {order}, {place_name}, {twist:?}").expect("memory");
    Case { name, records: all, place, twist }
}

/// A record's place and ids in a trace of many cases.
#[derive(Clone, Copy)]
struct At {
    time: u64,
    /// Of all formats, packets tell processes of one id apart.
    process: u64,
    pid: u64,
    tid: u64,
    id: u64,
    name: &'static str,
    twist: Twist,
}

/// Three bytes in names that [`encode`] replaces by others that are not UTF-8.
const WRONG: &[u8; 3] = b"~~~";

fn at(case: &Case, number: u64, record: &Record) -> At {
    let process = 1_000 + 10 * number + if case.place == 2 { record.of } else { 0 };
    let tid = process * 10 + if case.place == 1 { record.of } else { 0 };
    let pid = if case.twist == Twist::OneId { 1_000 + 10 * number } else { process };
    let of = usize::try_from(record.of).expect("small");
    let name = match case.twist {
        Twist::NotUtf8 => ["first ~~~", "~~~ second", "th~~~ird"][of],
        _ => ["first", "second", "third"][of],
    };
    let (time, id) = (number * WINDOW + record.time, 100 + 4 * number + record.of);
    At { time, process, pid, tid, id, name, twist: case.twist }
}

fn encode(cases: &[(u64, Case)], format: TraceFormat) -> Vec<u8> {
    let mut trace = match format {
        Json => json(cases),
        Fxt => records_of_fxt(cases),
        TrackEvent => packets(cases),
    };
    let mut at = 0;
    while let Some(found) = trace[at..].windows(WRONG.len()).position(|bytes| bytes == WRONG) {
        at += found;
        trace[at..at + 3].copy_from_slice(b"\xe9\xff!"); // Latin-1, and what no text has
    }
    trace
}

fn each(cases: &[(u64, Case)], mut show: impl FnMut(At, What)) {
    for (number, case) in cases {
        for record in &case.records {
            let at = at(case, *number, record);
            let shared = At { id: 100 + 4 * number + 3, ..at };
            match record.what {
                // Importers number other flows from 0, and do not keep these apart from them.
                What::Bound(..) => show(At { id: at.id + (1 << 40), ..at }, record.what),
                What::SharedBegin => show(shared, What::AsyncBegin),
                What::SharedEnd => show(shared, What::AsyncEnd),
                what => show(at, what),
            }
        }
    }
}

fn json(cases: &[(u64, Case)]) -> Vec<u8> {
    let mut out = String::from("[");
    each(cases, |At { time, process: pid, tid, id, name, twist, .. }, what| {
        let part = if twist == Twist::Rounded { "6" } else { "" }; // of a nanosecond
        let us = |ns: u64| format!("{}.{:03}{part}", ns / 1000, ns % 1000);
        let flow = |step| match step {
            Step::Begin => 's',
            Step::Through => 't',
            Step::End => 'f',
        };
        let more = match what {
            What::Begin => r#""ph":"B","args":{"a":1}"#.to_owned(),
            What::End => r#""ph":"E","args":{"z":2}"#.to_owned(),
            What::BareEnd => r#""ph":"E","name":"""#.to_owned(),
            What::Complete(length) => format!(r#""ph":"X","dur":{}"#, us(length)),
            What::Instant => r#""ph":"i","s":"t""#.to_owned(),
            What::AsyncBegin => format!(r#""ph":"b","id":"{id:#x}""#),
            What::AsyncEnd => format!(r#""ph":"e","id":"{id:#x}""#),
            What::SharedBegin | What::SharedEnd => unreachable!("made async"),
            What::Count(value) => format!(r#""ph":"C","args":{{"value":{value}}}"#),
            What::Flow(step) => format!(r#""ph":"{}","id":{id},"bp":"e""#, flow(step)),
            What::Bound(length, step) => format!(
                r#""ph":"X","dur":{},"bind_id":"{id:#x}","flow_out":{},"flow_in":{}"#,
                us(length),
                step == Step::Begin,
                step == Step::End
            ),
        };
        let name = if matches!(what, What::BareEnd) {
            String::new()
        } else {
            format!(r#""name":"{name}","cat":"c","#)
        };
        writeln!(out, r#"{{{name}"ts":{},"pid":{pid},"tid":{tid},{more}}},"#, us(time)).expect("memory");
    });
    out.truncate(out.trim_end().len() - 1);
    out += "]";
    out.into_bytes()
}

fn records_of_fxt(cases: &[(u64, Case)]) -> Vec<u8> {
    let mut out = Vec::new();
    fxt::magic(&mut out);
    fxt::provider_info(&mut out, 1, "generated");
    fxt::initialization(&mut out, 1_000_000_000);
    each(cases, |At { time, process: pid, tid, id, name, .. }, what| {
        let flow = |step| match step {
            Step::Begin => fxt::EventKind::FlowBegin,
            Step::Through => fxt::EventKind::FlowStep,
            Step::End => fxt::EventKind::FlowEnd,
        };
        let mut put = |kind, name, args: &[(StringRef<'_>, Value<'_>)], payload| {
            let (thread, category) =
                (ThreadRef::Inline { process: pid, thread: tid }, StringRef::Inline("c"));
            let name = StringRef::Inline(name);
            fxt::event(
                &mut out,
                &fxt::Event { kind, timestamp: time, thread, category, name, args, payload },
            );
        };
        let one = [(StringRef::Inline("a"), Value::I64(1))];
        match what {
            What::Begin => put(fxt::EventKind::DurationBegin, name, &one, None),
            What::End => put(fxt::EventKind::DurationEnd, name, &[], None),
            What::BareEnd => put(fxt::EventKind::DurationEnd, "", &[], None),
            What::Complete(length) => put(fxt::EventKind::DurationComplete, name, &one, Some(time + length)),
            What::Instant => put(fxt::EventKind::Instant, name, &one, None),
            What::AsyncBegin => put(fxt::EventKind::AsyncBegin, name, &[], Some(id)),
            What::AsyncEnd => put(fxt::EventKind::AsyncEnd, name, &[], Some(id)),
            What::SharedBegin | What::SharedEnd => unreachable!("made async"),
            What::Count(value) => {
                put(
                    fxt::EventKind::Counter,
                    name,
                    &[(StringRef::Inline("value"), Value::I64(value))],
                    Some(0),
                );
            }
            What::Flow(step) => put(flow(step), "flow", &[], Some(id)),
            What::Bound(length, step) => {
                put(fxt::EventKind::DurationBegin, name, &[], None);
                put(flow(step), if step == Step::Begin { "begin" } else { "end" }, &[], Some(id));
                let (thread, category) =
                    (ThreadRef::Inline { process: pid, thread: tid }, StringRef::Inline("c"));
                let (kind, timestamp, name) =
                    (fxt::EventKind::DurationEnd, time + length, StringRef::Inline(name));
                fxt::event(
                    &mut out,
                    &fxt::Event { kind, timestamp, thread, category, name, args: &[], payload: None },
                );
            }
        }
    });
    out
}

const SEQUENCE: SequenceId = SequenceId(1);

fn packets(cases: &[(u64, Case)]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut described = std::collections::HashSet::new();
    each(cases, |At { time, process, pid, tid, id, name, .. }, what| {
        let (process, thread) = (TrackUuid(10_000_000 + process), TrackUuid(20_000_000 + tid));
        let [pid, tid_32] = [pid, tid].map(|id| i32::try_from(id).expect("small"));
        if described.insert(process) {
            te::process_descriptor(
                &mut out,
                SEQUENCE,
                &te::ProcessTrack { uuid: process, pid, name: "", cmdline: &[] },
            );
        }
        if described.insert(thread) {
            let track =
                te::ThreadTrack { uuid: thread, parent_uuid: process, pid, tid: tid_32.into(), name: "" };
            te::thread_descriptor(&mut out, SEQUENCE, &track);
        }
        let (lane, counter) = (TrackUuid(30_000_000 + id), TrackUuid(40_000_000 + id));
        let direction = |step| FlowDirection { comes: step != Step::Begin, goes: step != Step::End };
        let phase = |step| match step {
            Step::Begin => b's',
            Step::Through => b't',
            Step::End => b'f',
        };
        let plain = LegacyEvent::default();
        let (kind, track, legacy) = match what {
            What::Begin => (EventType::SliceBegin, thread, None),
            What::End | What::BareEnd => (EventType::SliceEnd, thread, None),
            What::Instant => (EventType::Instant, thread, None),
            What::SharedBegin | What::SharedEnd => unreachable!("made async"),
            What::AsyncBegin => (EventType::SliceBegin, lane, None),
            What::AsyncEnd => (EventType::SliceEnd, lane, None),
            What::Count(_) => (EventType::Counter, counter, None),
            What::Complete(length) => {
                let duration_us = Some((length / 1000).cast_signed());
                (EventType::Unspecified, thread, Some(LegacyEvent { phase: b'X', duration_us, ..plain }))
            }
            What::Flow(step) => {
                let (phase, id) = (phase(step), Some(LegacyId::Unscoped(id)));
                (
                    EventType::Unspecified,
                    thread,
                    Some(LegacyEvent { phase, id, bind_to_enclosing: true, ..plain }),
                )
            }
            What::Bound(_, step) => (
                EventType::SliceBegin,
                thread,
                Some(LegacyEvent { bind: Some((id, direction(step))), ..plain }),
            ),
        };
        if matches!(what, What::AsyncBegin | What::AsyncEnd) && described.insert(lane) {
            let lane = te::CustomTrack {
                uuid: lane,
                parent_uuid: Some(process),
                name,
                ..te::CustomTrack::default()
            };
            te::custom_descriptor(&mut out, SEQUENCE, &lane);
        }
        if matches!(what, What::Count(_)) && described.insert(counter) {
            let counter = te::CounterTrack::new(counter, process, name);
            te::counter_descriptor(&mut out, SEQUENCE, &counter);
        }
        let is_named = matches!(what, What::End | What::BareEnd | What::Count(_));
        let event = te::Event {
            needs_state: false,
            name: (!is_named).then_some(Name::Text(name)),
            track_uuid: Some(track),
            counter: if let What::Count(value) = what { Some(CounterValue::Int(value)) } else { None },
            ..te::Event::new(SEQUENCE, kind, time)
        };
        te::event_with(&mut out, &event, |out| {
            if let Some(legacy) = legacy {
                put_message(out, track_event::LEGACY_EVENT, |out| legacy.put(out));
            }
        });
        if let What::Bound(length, _) = what {
            let end = te::Event {
                needs_state: false,
                track_uuid: Some(thread),
                ..te::Event::new(SEQUENCE, EventType::SliceEnd, time + length)
            };
            te::event_with(&mut out, &end, |_| {});
        }
    });
    out
}

/// Slices around slices: `depth` begins and ends, or complete slices in order of their begins or their ends.
fn nested(depth: u64, way: usize, number: u64) -> (u64, Case) {
    let at = |time, what| Record { time, what, of: 0 };
    let unit = if depth.is_multiple_of(2) { 1_000 } else { 1_001 }; // whole microseconds have a form of their own
    let (begin, end) = (|n: u64| unit * n, |n: u64| unit * (2 * depth - n));
    let complete = |n: u64| at(begin(n), What::Complete(end(n) - begin(n)));
    let records = match way {
        0 => {
            let begins = (0..depth).map(|n| at(begin(n), What::Begin));
            begins.chain((0..depth).rev().map(|n| at(end(n), What::End))).collect()
        }
        1 => (0..depth).map(complete).collect(),
        _ => (0..depth).rev().map(complete).collect(),
    };
    let name = format!("{number}: {depth} deep, way {way}");
    (number, Case { name, records, place: 0, twist: Twist::None })
}

/// Importers drop the begins of slices that are nested deeper than 512. The time of a complete slice is right
/// at any depth.
#[test]
fn slices_at_the_limit_of_depth_and_beyond_it_in_all_formats() {
    for from in [Json, Fxt, TrackEvent] {
        for depth in [300, 511, 512, 513, 600, 1501] {
            for way in 0..3 {
                let case = [nested(depth, way, 0)];
                let trace = encode(&case, from);
                let (before, _) = judged(&trace);
                for to in [TrackEvent, Fxt, Json] {
                    let (converted, report) = convert(&trace, to);
                    let (after, _) = judged(&converted);
                    let of = |shown| TABLES.iter().map(move |table| same(shown, table)).collect::<Vec<_>>();
                    let is_same = of(&before) == of(&after);
                    let name = format!("{} to {}, {}", from.name(), to.name(), case[0].1.name);
                    let rows = |shown: &Shown| shown.table("slices").len();
                    let counts = (rows(&before), rows(&after));
                    assert!(is_same || !report.is_empty(), "{name}: {counts:?} slices");
                    let times = |shown: &Shown| {
                        let rows = shown.table("slices").iter();
                        let mut times: Vec<_> =
                            rows.map(|row| row.split('\t').take(2).collect::<Vec<_>>().join(" ")).collect();
                        times.sort();
                        times
                    };
                    if way != 0 && from != TrackEvent {
                        assert_eq!(times(&before), times(&after), "{name}");
                    }
                }
            }
        }
    }
}

/// The valid part of a conversion, and whether the reader says that the trace is cut.
fn converted_part(trace: &[u8], from: TraceFormat, to: TraceFormat) -> (Vec<u8>, bool) {
    let (mut out, mut context) = (Vec::new(), Context::new());
    let mut writer = create(to, &mut out);
    let mut reader = open(trace, Some(from)).expect("a trace");
    let is_cut = loop {
        match reader.next(&mut context) {
            Ok(Some(item)) => writer.write(&item).expect("memory"),
            Ok(None) => break false,
            Err(e) => {
                assert!(e.is_truncated(), "{e}");
                break true;
            }
        }
    };
    writer.finish().expect("memory");
    drop(writer);
    (out, is_cut)
}

/// The end of the last whole record before a place.
fn whole(trace: &[u8], format: TraceFormat, cut: usize) -> usize {
    let mut ends = vec![0];
    match format {
        Json => ends.extend(trace.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at + 1)),
        Fxt => {
            let mut records = fxt::RecordReader::new(trace);
            while let Some((offset, _)) = records.next().expect("a record") {
                ends.push(usize::try_from(offset).expect("small"));
            }
        }
        TrackEvent => {
            let mut packets = te::PacketReader::new(trace);
            while let Some((offset, _)) = packets.next().expect("a packet") {
                ends.push(usize::try_from(offset).expect("small"));
            }
        }
    }
    ends.into_iter().filter(|end| *end <= cut).max().unwrap_or(0)
}

/// A part of a trace in all formats is what the records before the cut are in them.
#[test]
fn cut_traces_in_all_formats() {
    let cuts = std::env::var("HAIRLINE_GENERATED").ok().and_then(|n| n.parse::<usize>().ok()).unwrap_or(100);
    for from in [Json, Fxt, TrackEvent] {
        for cut in 0..cuts / 50 {
            let numbers = (0..20).map(|n| (cut * 7_919 + n * 1_237) % CASES);
            let cases: Vec<_> = (0..).zip(numbers).map(|(place, number)| (place, case(number))).collect();
            let trace = encode(&cases, from);
            let at = 1_000 + cut.wrapping_mul(0x9e37_79b9) % (trace.len() - 1_000);
            let (to, end) = ([TrackEvent, Fxt, Json][cut % 3], whole(&trace, from, at));
            let mut part = trace[..end].to_vec();
            if from == Json {
                part.truncate(part.len() - 2);
                part.push(b']');
            }
            let (expected, _) = converted_part(&part, from, to);
            let (found, is_cut) = converted_part(&trace[..at], from, to);
            assert!(found == expected, "{} to {}, cut at {at}", from.name(), to.name());
            assert!(is_cut || at == end || from == Json, "{} cut at {at} of {end}", from.name());
        }
    }
}

/// The rows of each case. A row begins with its time.
fn by_case(rows: Vec<String>, count: usize) -> Vec<Vec<String>> {
    let mut cases = vec![Vec::new(); count];
    for row in rows {
        let time: u64 = row.split('\t').next().and_then(|time| time.parse().ok()).expect("a time");
        let number = usize::try_from(time / WINDOW).expect("small");
        cases[number.min(count - 1)].push(row);
    }
    cases
}

/// What became of the cases of a format.
#[derive(Debug, Default)]
struct Outcome {
    /// The conversions of one case to one format: in total, and those with other rows that the report says.
    conversions: usize,
    said: usize,
    /// Differences and complaints about which nothing is said.
    wrong: Vec<String>,
}

fn outcome(from: TraceFormat, numbers: &[usize]) -> Outcome {
    let mut outcome = Outcome::default();
    for numbers in numbers.chunks(TOGETHER) {
        let cases: Vec<_> = (0..).zip(numbers).map(|(place, number)| (place, case(*number))).collect();
        let trace = encode(&cases, from);
        let (before, complaints) = judged(&trace);
        for to in [TrackEvent, Fxt, Json] {
            outcome.conversions += cases.len();
            let (converted, report) = convert(&trace, to);
            let (after, new_complaints) = judged(&converted);
            let mut together = None;
            let mut differences = vec![String::new(); cases.len()];
            for table in TABLES {
                let rows = |shown| by_case(same(shown, table), cases.len());
                for (n, (before, after)) in rows(&before).into_iter().zip(rows(&after)).enumerate() {
                    differences[n] += &difference(table, &before, &after);
                }
            }
            for (difference, (_, case)) in differences.iter().zip(&cases).filter(|(d, _)| !d.is_empty()) {
                // The cases of a trace share limits and the order of time: what comes of that, the trace's
                // own report says, beyond those of its cases.
                let more = together.get_or_insert_with(|| more_together(&report, &cases, from, to));
                if is_said(case, from, to) {
                    outcome.said += 1;
                } else if *more > 0 && is_equal_alone(case, from, to) {
                    *more -= 1;
                    outcome.said += 1;
                } else {
                    let (from, to) = (from.name(), to.name());
                    outcome.wrong.push(format!("{from} to {to}, {}\n{difference}", case.name));
                }
            }
            if new_complaints > complaints {
                let unsaid = numbers.iter().copied().filter(|number| !is_said(&case(*number), from, to));
                complained(from, to, &unsaid.collect::<Vec<_>>(), &mut outcome.wrong);
            }
        }
    }
    outcome
}

/// What trace_processor shows of a trace, and the number of its complaints.
fn judged(trace: &[u8]) -> (Shown, i64) {
    let (shown, complaints) = Shown::with_complaints(trace);
    (shown, complaints.iter().map(|stat| stat.value.max(1)).sum())
}

/// The complaints about a trace.
fn complaints(trace: &[u8]) -> Vec<Stat> {
    judge::load_bytes(trace, &[]).complaints
}

/// The number of things that the report of a trace says beyond those of its cases.
fn more_together(report: &Report, cases: &[(u64, Case)], from: TraceFormat, to: TraceFormat) -> u64 {
    let mut alone = Report::default();
    for (_, case) in cases {
        alone.add_all(&convert(&encode(&[(0, self::case(case.number()))], from), to).1);
    }
    let of_cases = |what| alone.iter().find(|(other, _)| *other == what).map_or(0, |(_, count)| count);
    report.iter().map(|(what, count)| count.saturating_sub(of_cases(what))).sum()
}

fn is_equal_alone(case: &Case, from: TraceFormat, to: TraceFormat) -> bool {
    let alone = encode(&[(0, self::case(case.number()))], from);
    let (before, after) = (judged(&alone).0, judged(&convert(&alone, to).0).0);
    TABLES.iter().all(|table| same(&before, table) == same(&after, table))
}

/// Whether the report of a case's conversion, alone, is not empty.
fn is_said(case: &Case, from: TraceFormat, to: TraceFormat) -> bool {
    let alone = encode(&[(0, self::case(case.number()))], from);
    !convert(&alone, to).1.is_empty()
}

/// Finds the cases whose conversions have more complaints than the originals.
fn complained(from: TraceFormat, to: TraceFormat, numbers: &[usize], wrong: &mut Vec<String>) {
    let cases: Vec<_> = (0..).zip(numbers).map(|(place, number)| (place, case(*number))).collect();
    if cases.is_empty() {
        return;
    }
    let trace = encode(&cases, from);
    let converted = convert(&trace, to).0;
    let said = complaints(&converted);
    let count = |complaints: &[Stat]| complaints.iter().map(|stat| stat.value.max(1)).sum::<i64>();
    if count(&said) <= count(&complaints(&trace)) {
        return;
    }
    if let [(_, case)] = &cases[..] {
        let said: Vec<_> = said.iter().map(ToString::to_string).collect();
        wrong.push(format!("{} to {}, {}\n   {}\n", from.name(), to.name(), case.name, said.join(", ")));
        return;
    }
    let (left, right) = numbers.split_at(numbers.len() / 2);
    complained(from, to, left, wrong);
    complained(from, to, right, wrong);
}

fn difference(table: &str, before: &[String], after: &[String]) -> String {
    if before == after {
        return String::new();
    }
    let count = |rows: &[String], row: &String| rows.iter().filter(|other| *other == row).count();
    let rows = |sign, these: &[String], those: &[String]| {
        let only = these.iter().filter(|row| count(these, row) > count(those, row));
        only.map(|row| format!("   {table} {sign} {row}\n")).collect::<String>()
    };
    rows('-', before, after) + &rows('+', after, before)
}

impl Case {
    fn number(&self) -> usize {
        self.name.split(':').next().and_then(|number| number.parse().ok()).expect("a number")
    }
}

/// The numbers of the cases to run: all, or a sample that is the same each time.
fn numbers() -> Vec<usize> {
    let count = match std::env::var("HAIRLINE_GENERATED").as_deref() {
        Ok("all") => CASES,
        Ok(count) => count.parse().expect("a number of cases"),
        Err(_) => SAMPLE,
    };
    let seed = std::env::var("HAIRLINE_GENERATED_SEED");
    let seed: usize = seed.map_or(0, |seed| seed.parse().expect("a number"));
    let step = (0..).map(|n| CASES / count.max(1) + n).find(|step| gcd(*step, CASES) == 1).expect("a step");
    (0..count.min(CASES)).map(|n| (seed + n * step) % CASES).collect()
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[track_caller]
fn nothing_silent(from: TraceFormat) {
    let numbers = numbers();
    let Outcome { conversions, said, wrong } = outcome(from, &numbers);
    let (name, count) = (from.name(), numbers.len());
    println!("{name}: {count} cases, {conversions} conversions, {said} with other rows, as the report says");
    assert!(
        wrong.is_empty(),
        "{} silent differences\n{}",
        wrong.len(),
        wrong[..wrong.len().min(40)].join("\n")
    );
}

#[test]
fn json_in_all_formats() {
    nothing_silent(Json);
}

#[test]
fn fxt_in_all_formats() {
    nothing_silent(Fxt);
}

#[test]
fn packets_in_all_formats() {
    nothing_silent(TrackEvent);
}
