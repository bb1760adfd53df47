//! How fast the Trace Event Format is written and read: MB/s of a core's time (on Linux; elsewhere of the
//! clock's), of 100 MB that are like a tracer's.
//!
//! ```text
//! trace_event_json_speed [FILE]      of this trace instead
//! ```

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use hairline_formats::Value;
use hairline_formats::trace_event_json::{Args, Event, Id, Item, Phase, Reader, Writer};

const BYTES: usize = 100_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let trace = match std::env::args().nth(1) {
        Some(path) => std::fs::read(path)?,
        None => generated()?,
    };
    let began = now();
    let events = read(&trace, |_| {})?;
    report("read, arguments as they are", trace.len(), events, began);
    let (began, mut values) = (now(), 0_u64);
    read(&trace, |event| {
        event.args.each(|name, value| {
            black_box((name, value));
            values += 1;
        });
    })?;
    report(&format!("read, {values} arguments decoded"), trace.len(), events, began);
    Ok(())
}

/// The time this process had on a processor, which other processes do not change.
fn now() -> Duration {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let on_cpu = text.split(' ').next().and_then(|ns| ns.parse().ok()).map(Duration::from_nanos);
    on_cpu.unwrap_or_else(|| START.elapsed())
}

fn report(what: &str, bytes: usize, events: u64, began: Duration) {
    let seconds = (now() - began).as_secs_f64();
    println!(
        "{what}: {:.0} MB/s, {:.2} million events/s",
        bytes as f64 / 1e6 / seconds,
        events as f64 / 1e6 / seconds
    );
}

fn read(trace: &[u8], mut each: impl FnMut(&Event<'_>)) -> Result<u64, Box<dyn std::error::Error>> {
    let (mut reader, mut events) = (Reader::new(trace), 0);
    while let Some((_, item)) = reader.next()? {
        if let Item::Event(event) = &item {
            each(event);
            events += 1;
        }
    }
    Ok(events)
}

/// Complete events with a string and two numbers, now and then a counter or a pair without arguments.
fn generated() -> std::io::Result<Vec<u8>> {
    let (began, mut events) = (now(), 0);
    let mut counted = Writer::array(Vec::with_capacity(BYTES + BYTES / 100));
    let mut bytes = 0;
    while bytes < BYTES {
        let ts = 1_700_000_000_000_000_000 + events as i64 * 1_357;
        let common = Event {
            cat: "net,http".into(),
            ts: Some(ts),
            pid: Some(Id::Number(4242)),
            tid: Some(Id::Number(4243 + events % 8)),
            ..Event::default()
        };
        let args = [
            ("url", Value::Str("https://example.org/a/path?query=1")),
            ("bytes", Value::U64(events)),
            ("ratio", Value::F64(events as f64 / 7.0)),
        ];
        let event = match events % 5 {
            0 => Event {
                name: "in flight".into(),
                ph: Some(Phase::Counter),
                args: Args::List(&args[1..2]),
                ..common
            },
            1 => Event { name: "Connection::poll".into(), ph: Some(Phase::Begin), ..common },
            2 => Event { ph: Some(Phase::End), ..common },
            _ => Event {
                name: "Request::handle".into(),
                ph: Some(Phase::Complete),
                dur: Some(12_345),
                args: Args::List(&args),
                ..common
            },
        };
        counted.event(&event)?;
        events += 1;
        bytes = events as usize * 120;
    }
    let trace = counted.finish()?;
    report("written", trace.len(), events, began);
    Ok(trace)
}
