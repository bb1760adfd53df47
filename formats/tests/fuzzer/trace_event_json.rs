//! Trace Event Format: valid events, damage to JSON tokens, and a walk through them.

use std::io::Read;

use hairline_formats::trace_event_json::{
    Args, Event, Id, Id2, InstantScope, Item, Json, JsonReader, Phase, put_event,
};
use hairline_formats::{Entries, Value};

use super::alloc::uncounted;
use super::random::Random;
use super::walk::Walk;
use super::{Format, Units};

/// [`JsonReader`].
#[derive(Debug)]
pub(crate) struct TraceEventJson;

/// Tokens of JSON and of traces.
const TOKENS: [&str; 24] = [
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "\\",
    "\\u",
    "\\ud834",
    "-",
    "1e",
    "9999999999999999",
    "0.",
    "null",
    "true",
    "\"a\":",
    "\"ts\":",
    "\"ts\":\"x\",",
    "\"args\":",
    "\"traceEvents\":[",
    "\"samples\":[",
    "\"stackFrames\":{",
    "\u{feff}",
];

const TIME: &[u8] = b"\"ts\":";

impl Format for TraceEventJson {
    const NAME: &'static str = "trace-event-json";
    const MIN_ITEM: usize = 1;
    const READS_AHEAD: bool = true;
    /// Twice as much for a string with escapes: the decoded string grows twofold too, and is copied once. An
    /// object that is not JSON is written anew, with six bytes for a control character.
    const MEMORY_PER_BYTE: usize = 20;
    const UNITS: &'static [fn(Units<'_>)] = &[events, values, foreign];

    fn frame(row: Vec<u8>, random: &mut Random) -> Vec<u8> {
        let member = |random: &mut Random| *random.pick(&MEMBERS);
        let (before, after) = match random.below(4) {
            0 => ("[".to_owned(), ""),
            1 => ("\u{feff} [\n".to_owned(), "]\n"),
            2 => (format!("{{{}\"traceEvents\":[", member(random)), ""),
            _ => (
                format!("{{\"traceEvents\": [{{}}], {} \"traceEvents\" :\n[", member(random)),
                "], \"last\": 1}",
            ),
        };
        [before.as_bytes(), &row, after.as_bytes()].concat()
    }

    fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
        let structural: Vec<usize> =
            (0..bytes.len()).filter(|at| b"[]{},:\"\\".contains(&bytes[*at])).collect();
        let at = if structural.is_empty() { 0 } else { *random.pick(&structural) };
        let token = random.pick(&TOKENS).as_bytes();
        match random.below(6) {
            0 => drop(bytes.splice(at..at, token.iter().copied())),
            1 => drop(bytes.splice(at..(at + 1).min(bytes.len()), token.iter().copied())),
            2 => drop(bytes.drain(at..(at + 1).min(bytes.len()))),
            3 => {
                let times = 1 + random.below(3000);
                let bomb = token.repeat(times);
                bytes.splice(at..at, bomb);
            }
            4 => {
                let times: Vec<usize> =
                    (0..bytes.len()).filter(|at| bytes[*at..].starts_with(TIME)).collect();
                if !times.is_empty() {
                    let at = *random.pick(&times) + TIME.len();
                    let wrong =
                        random.pick(&["1e99,\"ts\":", "\"x\",\"ts\":", "[1],\"ts\":", "null,\"ts\":", "-"]);
                    bytes.splice(at..at, wrong.bytes());
                }
            }
            _ => {
                let to = *random.pick(&[at, at + 1, bytes.len()]);
                let (from, to) = (at.min(bytes.len()), to.min(bytes.len()));
                bytes.drain(from..to);
            }
        }
    }

    fn walk(reader: impl Read, walk: &mut Walk) -> Result<(), String> {
        let (mut reader, mut faults) = (JsonReader::new(reader), 0);
        loop {
            match reader.next() {
                Ok(Some((offset, item))) => {
                    walk.item(offset, &item)?;
                    parts(&item, walk)?;
                }
                Ok(None) => break,
                Err(e) => {
                    faults += u64::from(!e.is_truncated());
                    walk.failed(&e)?;
                }
            }
        }
        walk.skipped(reader.skipped() + reader.mends() + faults)?;
        match reader.next() {
            Ok(None) => Ok(()),
            other => Err(format!("after the end: {other:?}")),
        }
    }
}

fn parts(item: &Item<'_>, walk: &mut Walk) -> Result<(), String> {
    match item {
        Item::Event(event) => {
            walk.show(&event.metadata());
            for json in [event.stack, event.estack].into_iter().flatten() {
                flat(json, walk)?;
            }
            if let Args::Json(json) = event.args {
                flat(json, walk)?;
            }
            Ok(())
        }
        Item::Member { value, .. } => flat(*value, walk),
        _ => Ok(()),
    }
}

/// All scalars of a value.
fn flat(json: Json<'_>, walk: &mut Walk) -> Result<(), String> {
    let (mut failed, mut path) = (Ok(()), uncounted(String::new));
    json.with(|value| {
        value.flatten(&mut path, &mut |path, value| {
            if failed.is_ok() {
                failed = walk.part(Ok((path, value))).map(drop);
            }
        });
    });
    failed
}

const MEMBERS: [&str; 8] = [
    "",
    "\"displayTimeUnit\": \"ns\",",
    "\"otherData\": {\"a\": [1, {\"b\": null}]},",
    "\"stackFrames\": {\"1\": {\"name\": \"main\"}, \"2\": {\"category\": \"c\", \"name\": \"f\", \"parent\": 1}},",
    "\"samples\": [{\"cpu\": 0, \"tid\": 1, \"ts\": 1000.5, \"name\": \"cycles:HG\", \"sf\": 3, \"weight\": 1}],",
    "\"systemTraceEvents\": \"# tracer: \\\"nop\\\" ]}\",",
    "\"na\\u006de\": -1.5e3,",
    "\"traceEvents\": 7,",
];

fn put(out: &mut Vec<u8>, event: &Event<'_>) {
    put_event(out, event);
    out.push(b',');
}

const NUMBER: Option<Id<'static>> = Some(Id::Number(u64::MAX));

fn events(unit: Units<'_>) {
    for phase in Phase::ALL {
        unit(&|out| {
            put(
                out,
                &Event { ph: Some(*phase), name: "name".into(), ts: Some(1_234_567), ..Event::default() },
            );
        });
    }
    let (text, negative) = (Some(Id::Text("0x1f".into())), Some(Id::Negative(-1)));
    let stack = Json::new(r#"["main", "f", {"name": "g"}]"#);
    unit(&|out| {
        put(
            out,
            &Event {
                name: "a \"name\" \\ é€𝄞\0".into(),
                cat: "a,b".into(),
                ph: Some(Phase::Complete),
                ts: Some(i64::MIN),
                dur: Some(i64::MAX),
                tts: Some(1),
                tdur: Some(0),
                pid: NUMBER,
                tid: negative.clone(),
                id: text.clone(),
                id2: Id2 { local: text.clone(), global: NUMBER },
                scope: "scope".into(),
                args: Args::List(&[("x", Value::I64(1))]),
                bp: "e".into(),
                s: Some(InstantScope::Global),
                sf: text.clone(),
                stack,
                esf: NUMBER,
                estack: stack,
                cname: "good".into(),
                bind_id: text.clone(),
                flow_in: true,
                flow_out: true,
                skipped: 0,
            },
        );
    });
    for name in
        ["process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index", "x"]
    {
        let args =
            [("name", Value::Str("main")), ("labels", Value::Str("a,b")), ("sort_index", Value::I64(-5))];
        unit(&|out| {
            put(
                out,
                &Event {
                    ph: Some(Phase::Metadata),
                    name: name.into(),
                    args: Args::List(&args),
                    ..Event::default()
                },
            );
        });
    }
}

struct Nested;

impl Entries for Nested {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("a", Value::I64(1));
        show("b", Value::Array(&Endless));
    }
}

struct Endless;

impl Entries for Endless {
    fn each(&self, show: &mut dyn FnMut(&str, Value<'_>)) {
        show("", Value::Null);
        show("", Value::Array(&Endless));
    }
}

fn values(unit: Units<'_>) {
    let values = [
        Value::Null,
        Value::Bool(true),
        Value::I64(i64::MIN),
        Value::U64(u64::MAX),
        Value::F64(0.1),
        Value::F64(f64::NAN),
        Value::Str("some \"text\"\n"),
        Value::Pointer(0xdead_beef),
        Value::Blob(b"\x00\xff"),
        Value::Dict(&Nested),
        Value::Array(&Endless),
    ];
    for value in values {
        unit(&|out| put(out, &Event { args: Args::List(&[("value", value)]), ..Event::default() }));
    }
}

/// Events that this crate's writer does not write.
fn foreign(unit: Units<'_>) {
    for text in [
        "{},",
        "{} {}",
        " , ,\n",
        "null, 5, \"a]\", [1, [2]], -1.5, true,",
        r#"{"name": 5, "ph": "XX", "ts": "1.5", "dur": 2e1, "pid": "main", "tid": 7.0, "flow_in": 1, "id2": [1]},"#,
        r#"{"ts": 1, "ts": 2, "n\u0061me": "\ud834\udd1e\ud834", "more": {"a": [[]]}},"#,
        r#"{"args": "__stripped__"}, {"args": [1, 18446744073709551616, 1e400, -0]},"#,
    ] {
        unit(&|out| out.extend_from_slice(text.as_bytes()));
    }
    unit(&|out| out.extend_from_slice(b"{\"name\": \"a\xff\xe2\x82\"},"));
    let long = "long \\\" text ".repeat(400);
    unit(&|out| out.extend_from_slice(format!("{{\"args\": {{\"{long}\": \"{long}\"}}}},").as_bytes()));
    unit(&|out| {
        out.extend_from_slice(format!("{{\"args\": {}{}}},", "[".repeat(1000), "]".repeat(1000)).as_bytes());
    });
}
