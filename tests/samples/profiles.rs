//! Profiles for pprof and for the Firefox Profiler, and `flame --at`: their samples are those that
//! trace_processor sees.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use hairline::{Format, Overflow, trace_scope};
use hairline_formats::track_event::{self as te, Frame, InternedStack, Mapping, PerfSample, SequenceId};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension, record_with};
use serde_json::Value;

use crate::record::{STACKS, hairline, is_permitted};

/// The stacks with their lines and their number, by thread. Some threads have no name.
const BY_THREAD: &str = "select t.tid, stack, count(*) from stacks \
    join perf_sample p on p.id = sample join thread t using (utid) group by 1, 2 order by 1, 2";

/// Samples inside slices of a name.
fn inside(name: &str) -> String {
    format!(
        "select count(*) from perf_sample p where exists (select 1 from slice s join thread_track k \
         on k.id = s.track_id where k.utid = p.utid and s.name = '{name}' and p.ts >= s.ts \
         and p.ts < s.ts + iif(s.dur < 0, 1 << 60, s.dur))"
    )
}

/// Slices: thread, name, time since the first one, duration.
const SLICES: &str = "select t.tid, s.name, s.ts - (select min(ts) from slice), s.dur from slice s \
    join thread_track k on k.id = s.track_id join thread t using (utid) order by 1, 3, 4 desc";

/// How many samples there are of each thread and stack.
type Stacks = BTreeMap<(String, String), u64>;

fn printed(folder: &Path, arguments: &[&str]) -> String {
    let output = hairline(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// A frame as [`STACKS`] has it: a function without a name has none.
fn frame(function: &str, line: u64) -> String {
    if function.contains("+0x") { "?:0".to_owned() } else { format!("{function}:{line}") }
}

fn stack(frames: &[String]) -> String {
    format!(" {} ", frames.join(" "))
}

/// The profile of a trace, decoded by protobuf's own package.
fn pprof(folder: &Path, trace: &str) -> Value {
    printed(folder, &["convert", trace, "x.pb.gz"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/pprof.py");
    let output = Command::new("python3").arg(script).arg(folder.join("x.pb.gz")).output().expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "run tests/oracle/setup.sh first: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn stacks_of_pprof(profile: &Value, period: u64) -> Stacks {
    let mut stacks = Stacks::new();
    for sample in profile["samples"].as_array().expect("samples") {
        let frames = sample["stack"].as_array().expect("frames").iter();
        let frames: Vec<_> = frames
            .map(|of| frame(of[0].as_str().expect("a name"), of[2].as_u64().expect("a line")))
            .collect();
        // `worker (7)`, or `thread 7`
        let thread = sample["labels"]["thread"].as_str().expect("a thread").trim_end_matches(')');
        let thread = thread.rsplit([' ', '(']).next().unwrap_or_default().to_owned();
        let [count, time] = [0, 1].map(|n| sample["values"][n].as_u64().expect("a number"));
        assert_eq!(time, count * period);
        *stacks.entry((thread, stack(&frames))).or_default() += count;
    }
    stacks
}

fn firefox(folder: &Path, trace: &str) -> Value {
    printed(folder, &["convert", trace, "x.firefox.json"]);
    serde_json::from_slice(&std::fs::read(folder.join("x.firefox.json")).expect("a profile")).expect("JSON")
}

/// A table of a Firefox profile.
struct Table<'p>(&'p Value);

impl<'p> Table<'p> {
    fn cell(&self, column: &str, row: u64) -> &'p Value {
        &self.0[column][usize::try_from(row).expect("a row")]
    }
}

fn stacks_of_firefox(profile: &Value) -> Stacks {
    let table = |name: &str| Table(&profile["shared"][name]);
    let (nodes, frames, functions) = (table("stackTable"), table("frameTable"), table("funcTable"));
    let mut stacks = Stacks::new();
    for thread in profile["threads"].as_array().expect("threads") {
        for node in thread["samples"]["stack"].as_array().expect("stacks") {
            let (mut next, mut all) = (node.as_u64(), Vec::new());
            while let Some(node) = next {
                let row = nodes.cell("frame", node).as_u64().expect("a frame");
                let function = frames.cell("func", row).as_u64().expect("a function");
                let text = functions.cell("name", function).as_u64().expect("a text");
                let text = Table(&profile["shared"]).cell("stringArray", text);
                all.push(frame(text.as_str().expect("text"), frames.cell("line", row).as_u64().unwrap_or(0)));
                next = nodes.cell("prefix", node).as_u64();
            }
            *stacks.entry((thread["tid"].to_string(), stack(&all))).or_default() += 1;
        }
    }
    stacks
}

fn nanoseconds(milliseconds: &Value) -> i64 {
    #[allow(clippy::cast_possible_truncation)] // the times of a short recording
    let ns = (milliseconds.as_f64().expect("a time") * 1e6).round() as i64;
    ns
}

/// The slices of a Firefox profile, as [`SLICES`] has them.
fn slices_of_firefox(profile: &Value) -> String {
    let mut all = Vec::new();
    for thread in profile["threads"].as_array().expect("threads") {
        let markers = Table(&thread["markers"]);
        for row in 0..thread["markers"]["length"].as_u64().expect("a length") {
            let [start, end] = ["startTime", "endTime"].map(|column| nanoseconds(markers.cell(column, row)));
            let text = markers.cell("name", row).as_u64().expect("a text");
            let name = Table(&profile["shared"]).cell("stringArray", text).as_str().expect("text");
            all.push((thread["tid"].as_i64().expect("a thread"), start, end - start, name));
        }
    }
    let first = all.iter().map(|(_, start, ..)| *start).min().expect("slices");
    all.sort_by_key(|(tid, start, duration, _)| (*tid, *start, -*duration));
    let row = |(tid, start, duration, name): &(i64, i64, i64, &str)| {
        format!("{tid}\t{name}\t{}\t{duration}", start - first)
    };
    all.iter().map(row).collect::<Vec<_>>().join("\n")
}

#[test]
fn profiles_have_the_samples_functions_lines_and_slices_of_the_trace() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for format in FORMATS {
        let trace = format!("out.{}", extension(format));
        let program = env!("CARGO_BIN_EXE_together");
        let output = hairline(folder, &["record", "--sample", "1997", "-o", &trace, "--", program, "child"]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        if !is_permitted(&output) {
            return;
        }
        let inside_turns = inside("turn");
        let verdict = judge::load(folder.join(&trace), &[STACKS, BY_THREAD, &inside_turns, SLICES]);
        verdict.require_clean();
        let mut expected = Stacks::new();
        for row in verdict.results[1].text().lines() {
            let [thread, stack, count] = row.split('\t').collect::<Vec<_>>()[..] else { panic!("{row}") };
            expected.insert((thread.to_owned(), stack.to_owned()), count.parse().expect("a number"));
        }
        assert!(expected.values().sum::<u64>() > 500, "{expected:?}");

        let profile = pprof(folder, &trace);
        assert_eq!(profile["types"], serde_json::json!([["samples", "count"], ["cpu", "nanoseconds"]]));
        let period = 1_000_000_000 / 1997;
        assert_eq!((&profile["period"], &profile["period_type"][0]), (&period.into(), &"cpu".into()));
        assert_eq!(stacks_of_pprof(&profile, period), expected, "{format:?}");
        let main = &profile["mappings"][0];
        assert!(main["file"].as_str().is_some_and(|file| file.ends_with("/together")), "{main}");
        assert!(main["build_id"].as_str().is_some_and(|id| id.len() >= 32), "{main}");
        assert!(main["has_line_numbers"] == true && main["has_inline_frames"] == true, "{main}");
        assert!(profile["time"].as_u64().is_some_and(|time| time > 1_600_000_000_000_000_000));

        let profile = firefox(folder, &trace);
        assert_eq!(stacks_of_firefox(&profile), expected, "{format:?}");
        assert_eq!(slices_of_firefox(&profile), verdict.results[3].text(), "{format:?}");
        let turns = profile["threads"].as_array().expect("threads").iter().flat_map(|thread| {
            thread["markers"]["data"].as_array().expect("data").iter().map(|data| &data["arg.n"])
        });
        assert_eq!(turns.filter(|n| n.is_string()).count(), 80, "each turn has its argument");

        let folded = printed(folder, &["flame", &trace, "--at", "together/turn", "--by", "all"]);
        let weight = |line: &str| line.rsplit_once(' ')?.1.parse::<i64>().ok();
        let sum: i64 = folded.lines().filter_map(weight).sum();
        assert_eq!(sum, verdict.results[2].single_i64(), "{format:?}: {folded}");
        let by_thread = printed(folder, &["flame", &trace, "--at", "turn"]);
        for line in by_thread.lines() {
            assert!([";alpha (", ";beta ("].iter().any(|thread| line.contains(thread)), "{line}");
        }
    }
}

/// Samples of a program that another recorder took, in the window that its flight recorder kept.
#[test]
fn flame_at_finds_the_slices_of_a_flight_recorders_window() {
    let _one = crate::ONE.lock();
    let trace = record_with(
        Format::TrackEvent,
        |builder| builder.overflow(Overflow::Overwrite).buffer_size(256 << 10),
        |_| {
            trace_scope!("t", "outer");
            std::thread::sleep(Duration::from_millis(2));
            for n in 0..50_000 {
                trace_scope!("t", "step", n);
            }
        },
    );
    let about = "select tid, pid, s.ts, s.dur, (select min(ts) from slice where name = 'step') from slice s \
        join thread_track k on k.id = s.track_id join thread t using (utid) join process using (upid) \
        where s.name = 'outer'";
    let verdict = trace.ask(&[about]);
    verdict.require_clean();
    let [tid, pid, start, duration, step] = crate::record::numbers(&verdict, 0)[..] else { panic!() };
    assert!(step > start + 2_000_000, "the first steps are no longer in the window");
    let mut bytes = std::fs::read(trace.path()).expect("the trace");
    let sequence = SequenceId(u32::MAX - 9);
    te::interned_stacks(
        &mut bytes,
        sequence,
        true,
        &[
            InternedStack::Function { iid: 1, name: "work" },
            InternedStack::Mapping { iid: 1, mapping: Mapping { path: &[][..], ..Mapping::default() } },
            InternedStack::Frame { iid: 1, frame: Frame { function: 1, mapping: 1, rel_pc: 1 } },
            InternedStack::Callstack { iid: 1, frames: &[1] },
        ],
    );
    let number = |value: i64| u32::try_from(value).expect("an id");
    let sample = PerfSample { pid: number(pid), tid: number(tid), callstack: 1, ..PerfSample::default() };
    // Before the outer slice, in it before the window, in a step, at its end.
    for time in [start - 1, start + 1, step, start + duration] {
        te::perf_sample(&mut bytes, sequence, u64::try_from(time).expect("a time"), &sample);
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("t.pftrace"), bytes).expect("written");
    for (name, count) in [("outer", 2), ("step", 1)] {
        let verdict = judge::load(folder.path().join("t.pftrace"), &[&inside(name)]);
        assert_eq!(verdict.results[0].single_i64(), count, "{name}");
        let folded = printed(folder.path(), &["flame", "t.pftrace", "--at", name, "--by", "all"]);
        assert_eq!(folded, format!("work {count}\n"));
    }
}
