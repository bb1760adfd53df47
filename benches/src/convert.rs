//! The speed of conversions: megabytes of input in a second, in memory, on one thread. The column of the
//! floor has the speed of Perfetto's tools on the same bytes, where `tests/oracle/setup.sh` has fetched them:
//! beside reading and slices, trace_processor, which reads and pairs at once; beside conversions to JSON,
//! traceconv. It converts to no other of the formats.
//!
//! Then from file to file on two cores, plain and packed, in megabytes of the unpacked input. Their floor is
//! the same on one core.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use flate2::Compression;
use flate2::write::GzEncoder;
use hairline::{Format, MemoryOutput, Session, trace_counter, trace_instant, trace_scope};
use hairline_convert::slices::{Defect, Frame, Key, Slice, SliceSink, Slices};
use hairline_convert::{
    BriefEvent, BriefUse, Context, Item, MOST_BRIEF, ReadAhead, Strings, TraceFormat, TrackId, Unpacked,
    create, open, write_behind,
};

use crate::Outcome;
use crate::row::{Budget, Row};
use crate::timing::Samples;

const FORMATS: [(TraceFormat, &str); 3] =
    [(TraceFormat::TrackEvent, "TrackEvent"), (TraceFormat::Fxt, "FXT"), (TraceFormat::Json, "JSON")];

/// In MB/s, for each format: the goals of reading and pairing, of converting to the formats of sessions, and
/// of converting to JSON, whose text is several times as long.
const BUDGETS: [[f64; 3]; 3] = [[1000.0, 500.0, 200.0], [1000.0, 500.0, 200.0], [400.0, 400.0, 100.0]];

/// What a second core does at least, where it can do nothing.
const NO_SLOWER: f64 = 0.95;

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
    convert(input, &mut output, to)?;
    Ok(output)
}

/// Calls `show` with each item of a trace, and `show_briefs` with the events that come in brief for this use.
fn each<S>(
    input: impl Read,
    wanted: BriefUse,
    state: &mut S,
    mut show_briefs: impl FnMut(&mut S, &[BriefEvent], &Strings) -> io::Result<()>,
    mut show: impl FnMut(&mut S, &Item<'_>) -> io::Result<()>,
) -> Outcome<()> {
    let (mut context, mut reader) = (Context::new(), open(input, None)?);
    let mut briefs = Vec::with_capacity(MOST_BRIEF);
    loop {
        reader.briefs(wanted, &mut context, &mut briefs);
        show_briefs(state, &briefs, &context.strings)?;
        match reader.next(&mut context) {
            // By reference: an item is large.
            Ok(Some(ref item)) => show(state, item)?,
            Ok(None) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}

fn convert(input: impl Read, output: impl Write, to: TraceFormat) -> Outcome<()> {
    let mut writer = create(to, output);
    each(
        input,
        BriefUse::Writing,
        &mut writer,
        |writer, briefs, strings| writer.write_briefs(briefs, strings),
        |writer, item| writer.write(item),
    )?;
    Ok(writer.finish()?)
}

fn read(input: impl Read) -> Outcome<u64> {
    let mut events = 0;
    let count = |events: &mut u64, more: u64| {
        *events += more;
        Ok(())
    };
    each(
        input,
        BriefUse::Counting,
        &mut events,
        |events, briefs, _| count(events, briefs.len() as u64),
        |events, item| count(events, matches!(item, Item::Event(_)).into()),
    )?;
    Ok(events)
}

/// Sums up the slices of a trace.
struct Sum(i64);

impl SliceSink for Sum {
    fn slice(&mut self, slice: &Slice, _: &mut [Frame]) {
        self.0 = self.0.wrapping_add(slice.self_time);
    }

    fn defect(&mut self, _: Defect, _: TrackId, _: i64, _: Key) {}
}

fn pair(input: impl Read) -> Outcome<i64> {
    let mut state = (Slices::new(), Sum(0));
    each(
        input,
        BriefUse::Counting,
        &mut state,
        |(slices, sum), briefs, strings| {
            slices.briefs(briefs, strings, sum);
            Ok(())
        },
        |(slices, sum), item| {
            slices.item(item, sum);
            Ok(())
        },
    )?;
    let (mut slices, mut sum) = state;
    slices.finish(&mut sum)?;
    Ok(sum.0)
}

/// A tool of Perfetto's.
#[derive(Clone, Copy)]
enum Peer {
    TraceProcessor,
    Traceconv,
}

impl Peer {
    /// The command that lets the tool read a trace.
    fn command(self, trace: &Path) -> Command {
        let oracle = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/oracle"));
        let mut command = Command::new("node");
        match self {
            Self::TraceProcessor => {
                command.arg(oracle.join("query.mjs")).arg(trace).arg("select count(*) from slice")
            }
            Self::Traceconv => {
                command.arg(oracle.join("traceconv.mjs")).arg("json").arg(trace).arg("/dev/null")
            }
        };
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The seconds that the tool takes, with its start.
    fn seconds(self, bytes: &[u8]) -> Option<f64> {
        let file = tempfile::NamedTempFile::new().ok()?;
        std::fs::write(file.path(), bytes).ok()?;
        let before = Instant::now();
        let status = self.command(file.path()).status().ok()?;
        status.success().then(|| before.elapsed().as_secs_f64())
    }

    /// The tool's speed in MB/s, without its start. `None` if the tool is not there.
    fn speed(self, input: &[u8]) -> Option<f64> {
        let build = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/oracle/perfetto-ui/ready"));
        if std::env::var_os("PERFETTO_UI_DIR").is_none() && !build.exists() {
            return None;
        }
        let start = self.seconds(br#"[{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}]"#)?;
        let whole = self.seconds(input)?;
        (whole > start).then(|| input.len() as f64 / 1e6 / (whole - start))
    }
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

/// The input of a command: a file, unpacked, and read by a thread of its own where there is a second core.
fn opened(path: &Path, cores: usize) -> Outcome<Box<dyn Read>> {
    let file = File::open(path)?;
    let open = move || Unpacked::new(String::new(), Box::new(file), None);
    Ok(if cores > 1 { Box::new(ReadAhead::new(open)) } else { Box::new(open()) })
}

/// Converts a file to another one as the command does.
fn convert_file(from: &Path, to: (&Path, TraceFormat), is_gzip: bool, cores: usize) -> Outcome<()> {
    let (file, input) = (File::create(to.0)?, opened(from, cores)?);
    let mut file = &file; // which can be written too
    let mut gzip = is_gzip.then(|| GzEncoder::new(file, Compression::default()));
    let output: &mut (dyn Write + Send) = match &mut gzip {
        Some(gzip) => gzip,
        None => &mut file,
    };
    if cores > 1 {
        write_behind(output, |output| convert(input, output, to.1))??;
    } else {
        convert(input, output, to.1)?;
    }
    gzip.map(GzEncoder::finish).transpose()?;
    Ok(())
}

/// Work on two cores, beside the same on one: in turn, so that both meet the same machine.
fn beside_one_core(
    name: &str,
    bytes: usize,
    rounds: usize,
    work: impl Fn(usize) -> Outcome<()>,
) -> Outcome<Row> {
    let mut slowness = [Samples::default(), Samples::default()];
    for _ in 0..rounds {
        for (cores, slowness) in (1..).zip(&mut slowness) {
            let before = Instant::now();
            work(cores)?;
            slowness.push(before.elapsed().as_secs_f64() * 1e6 / bytes as f64); // s a MB
        }
    }
    let [one, two] = slowness;
    let (name, kind) = (format!("{name}, 2 cores"), Budget::AtLeastRatio);
    let row = Row::figure(&name, "MB/s", 1.0 / two.min(), 1.0 / two.median(), kind, NO_SLOWER);
    Ok(Row { floor: 1.0 / one.median(), ..row })
}

/// Reads a trace from plain and packed files, and converts it to its own format, plain and packed.
fn of_files(input: &[u8], (format, name): (TraceFormat, &str), rounds: usize) -> Outcome<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let at = |end: &str| folder.path().join(format!("trace{end}"));
    let mut gzip = GzEncoder::new(File::create(at(".gz"))?, Compression::default());
    gzip.write_all(input)?;
    gzip.finish()?;
    std::fs::write(at(".zst"), zstd::encode_all(input, 3)?)?;
    std::fs::write(at(""), input)?;
    let (len, output) = (input.len(), at(".out"));
    let mut rows = Vec::new();
    for end in ["", ".gz", ".zst"] {
        let read = |cores| read(opened(&at(end), cores)?).map(drop);
        rows.push(beside_one_core(&format!("{name}{end}, a file: read"), len, rounds, read)?);
    }
    for (from, to) in [("", ""), (".gz", ""), ("", ".gz"), (".gz", ".gz")] {
        let convert = |cores| convert_file(&at(from), (&output, format), to == ".gz", cores);
        let name = format!("{name}{from} to {name}{to}, files");
        rows.push(beside_one_core(&name, len, rounds, convert)?);
    }
    Ok(rows)
}

/// Measures reading each format, pairing its begins with their ends, and converting it into each.
///
/// # Errors
/// If a session cannot be started or stopped, or its output is no trace.
pub fn rows(rounds: usize) -> Outcome<Vec<Row>> {
    const SCOPES: u32 = 150_000;
    let (packets, records) = (record(Format::TrackEvent, SCOPES)?, record(Format::Fxt, SCOPES)?);
    let json = written(&packets, TraceFormat::Json)?;
    let (mut rows, mut files) = (Vec::new(), Vec::new());
    let inputs = [(packets, BUDGETS[0]), (records, BUDGETS[1]), (json, BUDGETS[2])];
    for ((format, from), (input, [reading, converting, to_json])) in FORMATS.into_iter().zip(inputs) {
        let len = input.len();
        let floor = Peer::TraceProcessor.speed(&input).unwrap_or(0.0);
        let read = row(&format!("{from}: read"), len, reading, rounds, || read(&input[..]).map(drop))?;
        let slices = row(&format!("{from}: slices"), len, reading, rounds, || pair(&input[..]).map(drop))?;
        rows.extend([Row { floor, ..read }, Row { floor, ..slices }]);
        for (to, name) in FORMATS {
            let name = format!("{from} to {name}");
            let is_json = to == TraceFormat::Json;
            let budget = if is_json { to_json } else { converting };
            let row = row(&name, len, budget, rounds, || convert(&input[..], io::sink(), to))?;
            let peer = is_json.then(|| Peer::Traceconv.speed(&input)).flatten();
            rows.push(Row { floor: peer.unwrap_or(0.0), ..row });
        }
        files.extend(of_files(&input, (format, from), rounds)?);
    }
    rows.extend(files);
    Ok(rows)
}
