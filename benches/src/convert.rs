//! The speed of conversions: megabytes of input in a second, in memory, on one thread.

use std::io;
use std::time::Instant;

use hairline::{Format, MemoryOutput, Session, trace_counter, trace_instant, trace_scope};
use hairline_convert::{Context, Item, TraceFormat, create, open};

use crate::Outcome;
use crate::row::{Budget, Row};
use crate::timing::Samples;

const FORMATS: [(TraceFormat, &str); 3] =
    [(TraceFormat::TrackEvent, "TrackEvent"), (TraceFormat::Fxt, "FXT"), (TraceFormat::Json, "JSON")];

/// Records as a program does: scopes, one in four with arguments, instants and counters.
fn record(format: Format, scopes: u32) -> Outcome<Vec<u8>> {
    let memory = MemoryOutput::new();
    let session = Session::builder().output_memory(&memory).format(format).buffer_size(64 << 20).start()?;
    for n in 0..scopes {
        trace_scope!("bench", "request");
        trace_scope!("bench", "parse");
        if n % 2 == 0 {
            trace_scope!("bench", "query", rows = n, text = "select * from t");
            trace_counter!("bench", "in flight", i64::from(n % 64));
        } else {
            trace_instant!("bench", "from the cache");
        }
    }
    session.stop()?;
    Ok(memory.to_vec())
}

/// The bytes of the trace in the third format, which no session records.
fn written(input: &[u8], to: TraceFormat) -> Outcome<Vec<u8>> {
    let mut output = Vec::new();
    convert(input, Some(&mut output), to)?;
    Ok(output)
}

fn convert(input: &[u8], output: Option<&mut Vec<u8>>, to: TraceFormat) -> Outcome<()> {
    let (mut context, mut reader) = (Context::new(), open(input, None)?);
    let mut writer = match output {
        Some(output) => create(to, output),
        None => create(to, io::sink()),
    };
    while let Some(item) = &reader.next(&mut context)? {
        writer.write(item)?;
    }
    Ok(writer.finish()?)
}

fn read(input: &[u8]) -> Outcome<u64> {
    let (mut context, mut reader, mut events) = (Context::new(), open(input, None)?, 0);
    while let Some(item) = &reader.next(&mut context)? {
        events += u64::from(matches!(item, Item::Event(_)));
    }
    Ok(events)
}

fn row(
    name: &str,
    bytes: usize,
    budget: f64,
    rounds: usize,
    mut work: impl FnMut() -> Outcome<()>,
) -> Outcome<Row> {
    let mut slowness = Samples::default();
    for _ in 0..rounds {
        let before = Instant::now();
        work()?;
        slowness.push(before.elapsed().as_secs_f64() * 1e6 / bytes as f64); // s a MB
    }
    Ok(Row::figure(name, "MB/s", 1.0 / slowness.min(), 1.0 / slowness.median(), Budget::AtLeast, budget))
}

/// Measures reading each format, and converting it into each.
///
/// # Errors
/// If a session cannot be started or stopped, or its output is no trace.
pub fn rows(rounds: usize) -> Outcome<Vec<Row>> {
    const SCOPES: u32 = 150_000;
    let (packets, records) = (record(Format::TrackEvent, SCOPES)?, record(Format::Fxt, SCOPES)?);
    let json = written(&packets, TraceFormat::Json)?;
    let mut rows = Vec::new();
    for ((_, from), (input, budget)) in FORMATS.iter().zip([(packets, 200.0), (records, 200.0), (json, 80.0)])
    {
        let len = input.len();
        rows.push(row(&format!("{from}: read"), len, budget, rounds, || read(&input).map(drop))?);
        for (to, name) in FORMATS {
            let name = format!("{from} to {name}");
            rows.push(row(&name, len, budget, rounds, || convert(&input, None, to))?);
        }
    }
    Ok(rows)
}
