//! The cases as traces of each format.

use std::fmt::Write as _;

use hairline_convert::TraceFormat::{self, Fxt, Json, TrackEvent};
use hairline_formats::Value;
use hairline_formats::fxt::{self, StringRef, ThreadRef};
use hairline_formats::proto::put_message;
use hairline_formats::track_event::{
    self as te, CounterValue, EventType, FlowDirection, LegacyEvent, LegacyId, Name, SequenceId, TrackUuid,
    fields::track_event,
};

use super::cases::{Case, Record, Step, Twist, What};

/// The window of a case, in nanoseconds.
pub(super) const WINDOW: u64 = 1_000_000;

/// A record's place and ids in a trace of many cases.
#[derive(Clone, Copy)]
pub(super) struct At {
    pub(super) time: u64,
    /// Of all formats, packets tell processes of one id apart.
    pub(super) process: u64,
    pub(super) pid: u64,
    pub(super) tid: u64,
    pub(super) id: u64,
    pub(super) name: &'static str,
    pub(super) twist: Twist,
}

/// Three bytes in names that [`encode`] replaces by others that are not UTF-8.
pub(super) const WRONG: &[u8; 3] = b"~~~";

pub(super) fn at(case: &Case, number: u64, record: &Record) -> At {
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

pub(super) fn encode(cases: &[(u64, Case)], format: TraceFormat) -> Vec<u8> {
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

pub(super) fn each(cases: &[(u64, Case)], mut show: impl FnMut(At, What)) {
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

pub(super) fn json(cases: &[(u64, Case)]) -> Vec<u8> {
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

pub(super) fn records_of_fxt(cases: &[(u64, Case)]) -> Vec<u8> {
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

pub(super) const SEQUENCE: SequenceId = SequenceId(1);

pub(super) fn packets(cases: &[(u64, Case)]) -> Vec<u8> {
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
