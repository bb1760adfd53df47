//! Invalid inputs and outputs: each gives one line with the reason and the place, and leaves no files.

use std::fs;
use std::io::{self, Cursor, Read, repeat};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use hairline::{Session, trace_counter, trace_instant, trace_scope};
use hairline_formats::proto::put_varint;
use hairline_formats::track_event::{self as te, EventType, SequenceId, TrackUuid};

/// A folder with something of each kind that is no trace, and one that is.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().expect("a folder"));
        for (name, bytes) in files() {
            fs::write(folder.at(name), bytes).expect("a file");
        }
        fs::create_dir(folder.at("folder.pftrace")).expect("a folder");
        folder
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn hairline(&self, arguments: &[&str]) -> Output {
        hairline(self.0.path(), arguments)
    }

    /// The names of what is there, with the bytes of files.
    fn contents(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let paths =
            fs::read_dir(self.0.path()).expect("the folder").map(|entry| entry.expect("an entry").path());
        let mut contents: Vec<_> = paths.map(|path| (path.clone(), fs::read(path).ok())).collect();
        contents.sort();
        contents
    }
}

fn hairline(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline"));
    command
        .env_remove("HAIRLINE")
        .current_dir(folder)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
}

const TRACE: &[u8] = br#"[{"name":"a","ph":"X","ts":1,"dur":2,"pid":1,"tid":1}]"#;

fn files() -> [(&'static str, &'static [u8]); 10] {
    [
        ("good.json", TRACE),
        ("empty", b""),
        ("garbage", b"\x7fELF is no trace"),
        ("blank", b" \n"),
        ("huge.pftrace", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ("long.pftrace", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
        ("field.pftrace", b"\x0a\x02\x50\x80"),
        // A record that says it has no words, and one that says it has more than there are.
        ("zero.fxt", b"\x10\x00\x04FxT\x16\x00\x04\x00\x00\x00\x00\x00\x00\x01"),
        ("cut.gz", b"\x1f\x8b\x08\x00"),
        ("deep.json", &[b'['; 4000]),
    ]
}

/// Arguments, the exit code, and what the one line has in it.
type Case = (&'static [&'static str], i32, &'static str);

const CASES: &[Case] = &[
    (&["convert", "empty", "o.fxt"], 1, "empty: byte 0: it is empty"),
    (&["convert", "blank", "o.fxt"], 1, "blank: byte 0: neither"),
    (&["convert", "garbage", "o.json"], 1, "garbage: byte 0: neither"),
    (&["convert", "missing", "o.json"], 1, "missing: "),
    (&["convert", "folder.pftrace", "o.json"], 1, "folder.pftrace: it is a folder"),
    (&["convert", "huge.pftrace", "o.json"], 1, "huge.pftrace: byte "),
    (&["convert", "long.pftrace", "o.json"], 1, "long.pftrace: byte "),
    (&["convert", "field.pftrace", "o.json"], 1, "field.pftrace: byte "),
    (&["convert", "zero.fxt", "o.json"], 1, "zero.fxt: byte "),
    (&["convert", "cut.gz", "o.json"], 1, "cut.gz: "),
    (&["convert", "deep.json", "o.fxt"], 1, "deep.json: byte "),
    (&["convert", "good.json", "o.txt"], 2, "o.txt: its name says no format"),
    (&["convert", "good.json", "good.json"], 1, "good.json: it is an input"),
    (&["convert", "good.json", "folder.pftrace"], 1, "folder.pftrace: it is a folder"),
    (&["convert", "good.json", "missing/o.fxt"], 1, "missing/o.fxt: "),
    (&["convert", "good.json", "o.fxt", "--from", "fxt"], 1, "good.json: byte 0: "),
    (&["merge", "good.json", "empty", "-o", "o.fxt"], 1, "empty: byte 0: it is empty"),
    (&["merge", "good.json", "missing", "-o", "o.fxt"], 1, "missing: "),
    (&["merge", "good.json", "zero.fxt", "-o", "o.fxt"], 1, "zero.fxt: byte "),
    (&["merge", "empty", "good.json", "-o", "good.json"], 1, "good.json: it is an input"),
    (&["merge", "good.json", "-o", "folder.pftrace"], 1, "folder.pftrace: it is a folder"),
    (&["convert", "empty", "o.otlp"], 1, "empty: byte 0: it is empty"),
    (&["convert", "huge.pftrace", "o.otlp"], 1, "huge.pftrace: byte "),
    (&["convert", "deep.json", "o.otlp.json"], 1, "deep.json: byte "),
    (&["convert", "cut.gz", "o.otlp.json"], 1, "cut.gz: "),
    (&["convert", "missing", "o.otlp"], 1, "missing: "),
    (&["convert", "good.json", "o.fxt", "--one-in", "2"], 2, "only an output .otlp"),
    (&["diff", "good.json", "empty"], 1, "empty: byte 0: it is empty"),
    (&["diff", "garbage", "good.json"], 1, "garbage: byte 0: neither"),
    (&["diff", "good.json", "missing"], 1, "missing: "),
    (&["diff", "good.json", "folder.pftrace"], 1, "folder.pftrace: it is a folder"),
    (&["diff", "zero.fxt", "good.json"], 1, "zero.fxt: byte "),
    (&["diff", "good.json", "--", "good.json", "field.pftrace"], 1, "field.pftrace: byte "),
    (&["diff", "good.json"], 2, "give two traces"),
    (&["view", "--no-open", "missing"], 1, "missing: "),
    (&["view", "--no-open", "empty"], 1, "empty: is empty"),
    (&["view", "--no-open", "folder.pftrace"], 1, "folder.pftrace: it is no regular file"),
    (&["view", "--no-open", "good.json", "--ui", "folder.pftrace"], 1, "folder.pftrace: has no index.html"),
    (&["recover", "./missing"], 3, "missing"),
    (&["recover", "./empty"], 1, "empty"),
    (&["recover", "./garbage"], 1, "garbage"),
    (&["recover", "./folder.pftrace"], 1, "folder.pftrace"),
    (&["recover", "./huge.pftrace", "-o", "o.pftrace"], 1, "huge.pftrace"),
    (&["snapshot", "./missing", "-o", "o.pftrace"], 3, "missing"),
    (&["snapshot", "./garbage", "-o", "o.pftrace"], 1, "garbage"),
    (&["snapshot", "./folder.pftrace", "-o", "o.pftrace"], 1, "folder.pftrace"),
    (&["snapshot", "./empty"], 3, "empty: is no region of a process"),
    (&["snapshot", "4294967295"], 3, "process 4294967295 is not being traced"),
    (&["record", "--buffer", "plenty", "--", "touch", "ran"], 125, "--buffer: "),
    (&["record", "--overflow", "block:soon", "--", "touch", "ran"], 125, "--overflow: "),
    (&["record", "--categories", "a,,b", "--", "touch", "ran"], 125, "--categories: "),
    (&["record", "-o", "o.txt", "--", "touch", "ran"], 125, "o.txt: no extension of a trace"),
    (&["record", "-o", "folder.pftrace", "--", "touch", "ran"], 125, "folder.pftrace: "),
    (&["record", "-o", "missing/o.fxt", "--", "touch", "ran"], 125, "missing/o.fxt: "),
    (&["record", "--", "./missing"], 127, "missing"),
    (&["record", "--", "./garbage"], 126, "garbage"),
];

#[test]
fn what_makes_no_sense_is_one_line_and_leaves_nothing() {
    let mut wrong = Vec::new();
    for (arguments, code, words) in CASES {
        let folder = Folder::new();
        let before = folder.contents();
        let output = folder.hairline(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        let is_line = said.starts_with("hairline: ") && said.lines().count() == 1 && said.contains(words);
        if !is_line || output.status.code() != Some(*code) {
            wrong
                .push(format!("{arguments:?}: {:?}, not {code} and {words:?}\n{said}", output.status.code()));
        }
        if folder.contents() != before {
            wrong.push(format!("{arguments:?}: changed something\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Small traces in the three formats.
fn traces() -> &'static [(&'static str, Vec<u8>)] {
    // A process has one session at a time, and each test asks for the traces.
    static TRACES: OnceLock<Vec<(&str, Vec<u8>)>> = OnceLock::new();
    TRACES.get_or_init(recorded)
}

fn recorded() -> Vec<(&'static str, Vec<u8>)> {
    let folder = tempfile::tempdir().expect("a folder");
    let mut traces = Vec::new();
    for name in ["a.fxt", "a.pftrace"] {
        let path = folder.path().join(name);
        let session = Session::builder().output(&path).start().expect("a session");
        for n in 0..5 {
            trace_scope!("cli", "scope", n, text = "some", list = [1, 2]);
            trace_instant!("cli", "instant");
            trace_counter!("cli", "count", n);
        }
        session.stop().expect("a trace");
        traces.push((name, fs::read(path).expect("the trace")));
    }
    traces.push(("a.json", include_bytes!("../../../tests/conversion/corpus/chrome.json").to_vec()));
    traces
}

/// A packet with an event, whose name has this many bytes.
fn named(len: usize) -> impl Read {
    let mut head = Vec::new();
    let body = head_of(&mut head, &[0xba, 0x01], len); // the name
    let body = head_of(&mut head, &[0x5a], body); // the event
    head_of(&mut head, &[0x0a], body); // the packet
    Cursor::new(head).chain(repeat(b'a').take(len as u64))
}

/// Puts the tag and the length of a field before what is there. Returns the size of the whole field.
fn head_of(out: &mut Vec<u8>, tag: &[u8], len: usize) -> usize {
    let mut head = tag.to_vec();
    put_varint(&mut head, len as u64);
    out.splice(0..0, head.iter().copied());
    head.len() + len
}

fn zlib(mut content: impl Read) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    io::copy(&mut content, &mut encoder).expect("copied");
    encoder.finish().expect("compressed")
}

fn gzip(mut content: impl Read) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    io::copy(&mut content, &mut encoder).expect("copied");
    encoder.finish().expect("compressed")
}

/// Traces of some MB at most with much content, and what is counted of each.
fn bombs() -> [(&'static str, Vec<u8>, &'static str); 4] {
    const LARGE: usize = 200 << 20;
    let mut good = Vec::new();
    let event = te::Event::new(SequenceId(1), EventType::Instant, 1_000);
    te::event(&mut good, &te::Event { needs_state: false, name: Some(te::Name::Text("good")), ..event });
    let mut compressed = Vec::new();
    te::compressed_packets(&mut compressed, &zlib(named(LARGE)));
    // Each of these packets is below the limit.
    let mut many = Vec::new();
    te::compressed_packets(&mut many, &zlib(All((0..3).map(|_| named(40 << 20)), None)));
    let names = (1..=8).map(|n| {
        let (mut packet, name) = (Vec::new(), "a".repeat(40 << 20));
        let track = te::CustomTrack { uuid: TrackUuid(n), name: &name, ..te::CustomTrack::default() };
        te::custom_descriptor(&mut packet, SequenceId(1), &track);
        Cursor::new(packet)
    });
    let cut = "compressed packet with more than 64 MiB, cut there";
    [
        ("compressed.pftrace", [&compressed[..], &good].concat(), cut),
        ("many.pftrace", [&many[..], &good].concat(), cut),
        ("packet.pftrace.gz", gzip(named(LARGE).chain(&good[..])), "of more than 64 MiB left out"),
        ("names.pftrace.gz", gzip(All(names, None).chain(&good[..])), "longer than 1 MiB, cut"),
    ]
}

/// One input after the other.
struct All<I, R>(I, Option<R>);

impl<R: Read, I: Iterator<Item = R>> Read for All<I, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(input) = self.1.take().or_else(|| self.0.next()) {
            let read = self.1.insert(input).read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            self.1 = None;
        }
        Ok(0)
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_small_file_with_much_content_takes_little_memory() {
    // In KiB of addresses. The C library reserves 64 MiB of them for each thread that allocates, but for this.
    const LIMITED: &str = r#"ulimit -v 150000; MALLOC_ARENA_MAX=1 exec "$0" "$@""#;
    for (name, trace, counted) in bombs() {
        assert!(trace.len() < 6 << 20, "{name}: {}", trace.len());
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join(name), &trace).expect("a file");
        for arguments in [&["convert", name, "o.json"][..], &["stats", name]] {
            let mut command = Command::new("sh");
            command.args(["-c", LIMITED, env!("CARGO_BIN_EXE_hairline")]).args(arguments);
            let output = command.env_remove("HAIRLINE").current_dir(folder.path()).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{name} {arguments:?}: {said}");
            assert!(said.contains(counted) || arguments[0] == "stats", "{name} {arguments:?}: {said}");
        }
        let json = fs::read_to_string(folder.path().join("o.json")).expect("the output");
        assert!(json.contains("\"good\""), "{name}: what follows is read");
    }
}

/// Numbers that are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).expect("it is below")
    }

    /// The trace with a few bytes changed, taken out, put in or doubled, or cut.
    fn damaged(&mut self, trace: &[u8]) -> Vec<u8> {
        let mut bytes = trace.to_vec();
        for _ in 0..=self.below(4) {
            if bytes.is_empty() {
                break;
            }
            let at = self.below(bytes.len());
            match self.below(6) {
                0 => bytes.truncate(at.max(1)),
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, 0xff),
                3 => bytes[at] = 0xff,
                4 => bytes.extend_from_within(at..),
                _ => bytes[at] ^= 1 << self.below(8),
            }
        }
        bytes
    }
}

const RUNS: usize = 40;

#[test]
fn damaged_traces_are_converted_or_refused_as_a_whole() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    for &(name, ref trace) in traces() {
        for run in 0..RUNS {
            let folder = tempfile::tempdir().expect("a folder");
            let damaged = numbers.damaged(trace);
            fs::write(folder.path().join(name), &damaged).expect("a file");
            let to = ["o.pftrace", "o.fxt", "o.json"][run % 3];
            let output = match run % 2 {
                0 => hairline(folder.path(), &["convert", name, to]),
                _ => hairline(folder.path(), &["merge", name, name, "-o", to]),
            };
            let said = String::from_utf8_lossy(&output.stderr);
            let about = format!("{name}, run {run}: {said}");
            assert!(matches!(output.status.code(), Some(0 | 1)) && !said.contains("panicked"), "{about}");
            let is_written = folder.path().join(to).exists();
            let is_said = output.status.success() || said.contains("is in the output");
            assert_eq!(is_written, is_said, "{about}");
            assert_eq!(fs::read(folder.path().join(name)).expect("the input"), damaged, "{about}");
            let there = fs::read_dir(folder.path()).expect("the folder").count();
            assert_eq!(there, 1 + usize::from(is_written), "{about}");
        }
    }
}

/// The spans of OTLP's JSON have ids of their own, and end after they begin.
fn check_spans(path: &Path, about: &str) {
    let all: serde_json::Value = serde_json::from_slice(&fs::read(path).expect("the spans")).expect("JSON");
    let mut ids = std::collections::HashSet::new();
    for resource in all["resourceSpans"].as_array().expect("resources") {
        for span in resource["scopeSpans"][0]["spans"].as_array().expect("spans") {
            let text = |key: &str| span[key].as_str().unwrap_or_else(|| panic!("{about}: {key}")).to_owned();
            let is_id = |id: &str, len| id.len() == len && id.bytes().any(|digit| digit != b'0');
            assert!(is_id(&text("traceId"), 32) && is_id(&text("spanId"), 16), "{about}: {span}");
            assert!(ids.insert(text("spanId")), "{about}: {span}");
            let time = |key: &str| text(key).parse::<u64>().expect("a time");
            assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{about}: {span}");
        }
    }
}

#[test]
fn damaged_traces_become_valid_spans_or_nothing() {
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for &(name, ref trace) in traces() {
        for run in 0..RUNS {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join(name), numbers.damaged(trace)).expect("a file");
            let to = ["o.otlp", "o.otlp.json"][run % 2];
            let output = hairline(folder.path(), &["convert", name, to]);
            let said = String::from_utf8_lossy(&output.stderr);
            let about = format!("{name}, run {run}: {said}");
            assert!(matches!(output.status.code(), Some(0 | 1)) && !said.contains("panicked"), "{about}");
            let (path, is_whole) = (folder.path().join(to), output.status.success());
            assert_eq!(path.exists(), is_whole || said.contains("is in the output"), "{about}");
            let there = fs::read_dir(folder.path()).expect("the folder").count();
            assert_eq!(there, 1 + usize::from(path.exists()), "{about}");
            if path.exists() && to.ends_with(".json") {
                check_spans(&path, &about);
            }
        }
    }
}

#[test]
fn damaged_traces_are_compared_or_refused() {
    let mut numbers = Numbers(0x9e6c_63d0_876a_3f6b);
    for &(name, ref trace) in traces() {
        for run in 0..RUNS {
            let folder = tempfile::tempdir().expect("a folder");
            fs::write(folder.path().join("whole"), trace).expect("a file");
            fs::write(folder.path().join(name), numbers.damaged(trace)).expect("a file");
            let form = ["--json", "--csv", "--all"][run % 3];
            let few = ["diff", form, "--fail-if", "p99 > +10%", "whole", name];
            let many =
                ["diff", form, "whole", "whole", "whole", "whole", name, "--", name, name, name, name, name];
            let output = hairline(folder.path(), if run % 2 == 0 { &few[..] } else { &many[..] });
            let said = String::from_utf8_lossy(&output.stderr);
            let about = format!("{name}, run {run}: {said}");
            assert!(matches!(output.status.code(), Some(0 | 1 | 6)) && !said.contains("panicked"), "{about}");
            let is_json = serde_json::from_slice::<serde_json::Value>(&output.stdout).is_ok();
            assert!(form != "--json" || output.stdout.is_empty() || is_json, "{about}");
            assert!(fs::read_dir(folder.path()).expect("the folder").count() == 2, "{about}");
        }
    }
}
