//! The heap profile: what functions allocated and what is live, by their stacks, before the judge.

#![allow(unsafe_code)] // fork, and calls of an allocator

mod killed;
mod recorder;
mod rotated;

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use hairline::{Format, Heap, HeapProfile, Overflow, Session};
use hairline_tests::children;
use hairline_tests::judge::{self, Verdict};
use hairline_tests::recording::{FORMATS, Trace, extension, record_with, turn};
#[cfg(feature = "command")]
use serde_json::Value;

#[global_allocator]
static HEAP: Heap<System> = Heap::new(System).report_above(usize::MAX);

/// One sample in so many bytes.
const EVERY: u64 = 4 << 10;

/// The rows of the profile, each with the names of its functions: `function` and `at`, `count`, `size`.
const ALLOCATIONS: &str = "create perfetto table allocations as \
    with recursive up(callsite, at) as ( \
      select distinct callsite_id, callsite_id from heap_profile_allocation union all \
      select callsite, parent_id from up join stack_profile_callsite c on c.id = at where parent_id is not null) \
    select distinct h.id, h.ts, h.upid, h.count, h.size, s.name as function from heap_profile_allocation h \
      join up on up.callsite = h.callsite_id join stack_profile_callsite c on c.id = up.at \
      join stack_profile_frame f on f.id = c.frame_id join stack_profile_symbol s using (symbol_set_id)";

/// Bytes and blocks of a function: allocated, and live.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    allocated: f64,
    blocks: f64,
    live: f64,
    live_blocks: f64,
}

fn sums(verdict: &Verdict, at: usize) -> Sums {
    let text = verdict.results[at].text();
    let numbers: Vec<f64> = text.split('\t').map(|n| n.parse().unwrap_or(0.0)).collect();
    let [allocated, blocks, live, live_blocks] = numbers[..] else { panic!("{text}") };
    Sums { allocated, blocks, live, live_blocks }
}

/// The question for the sums of a function, up to the dump with this number; all for `None`.
fn question(function: &str, dumps: Option<u32>) -> String {
    let until = dumps.map_or(String::new(), |n| {
        format!("and ts <= (select ts from (select distinct ts from heap_profile_allocation order by ts limit {n}) \
                 order by ts desc limit 1)")
    });
    format!(
        "select sum(max(size, 0)), sum(max(count, 0)), sum(size), sum(count) from \
         (select distinct id, ts, size, count from allocations where function glob '*{function}' {until})"
    )
}

fn ask<const N: usize>(trace: &Trace, functions: [&str; N]) -> [Sums; N] {
    ask_file(trace.path(), functions)
}

fn ask_file<const N: usize>(path: &Path, functions: [&str; N]) -> [Sums; N] {
    let questions = functions.map(|function| question(function, None));
    let sql: Vec<&str> = [ALLOCATIONS].into_iter().chain(questions.iter().map(String::as_str)).collect();
    let verdict = judge::load(path, &sql);
    verdict.require_clean();
    std::array::from_fn(|n| sums(&verdict, n + 1))
}

fn profiled(format: Format, program: impl FnOnce(&Session)) -> Trace {
    let trace = record_with(format, |b| b.heap_profile(HeapProfile::new().every(EVERY)), program);
    let notes = trace.summary.notes.join("\n");
    assert!(!notes.contains("not recorded"), "{notes}");
    assert!(!notes.contains("found no room"), "{notes}");
    trace
}

/// Waits after some allocations until the session has taken their samples: on a busy machine the ring would
/// be full.
struct Pace<'s> {
    session: Option<&'s Session>,
    allocated: usize,
}

impl<'s> Pace<'s> {
    fn of(session: &'s Session) -> Self {
        Self { session: Some(session), allocated: 0 }
    }

    fn add(&mut self, size: usize) {
        self.allocated += size;
        if let Some(session) = self.session.filter(|_| self.allocated > 64 * EVERY as usize) {
            self.allocated = 0;
            session.flush().expect("flushed");
        }
    }
}

/// Allocates so many blocks, which the caller keeps.
#[inline(never)]
fn keeps(mut pace: Pace<'_>, kept: &mut Vec<Vec<u8>>, times: usize, size: usize) {
    for _ in 0..times {
        kept.push(black_box(Vec::with_capacity(size)));
        pace.add(size);
    }
}

/// Allocates so many blocks and frees each.
#[inline(never)]
fn drops(mut pace: Pace<'_>, times: usize, size: usize) {
    for _ in 0..times {
        drop(black_box(Vec::<u8>::with_capacity(size)));
        pace.add(size);
    }
}

/// Makes a block larger, again and again.
#[inline(never)]
fn grows(times: usize, step: usize) -> Vec<u8> {
    let mut grown: Vec<u8> = Vec::with_capacity(step);
    for n in 1..times {
        // SAFETY: bytes of any value, which the vector has room for and nobody reads.
        unsafe { grown.set_len(n * step) };
        grown.reserve_exact(step);
    }
    grown
}

#[track_caller]
fn require_within(percent: f64, found: f64, truth: f64) {
    assert!((found / truth - 1.0).abs() <= percent / 100.0, "{found} instead of {truth}");
}

/// Three sessions: with so many samples live in one, a bucket of their table could be full by chance.
#[test]
fn the_sums_of_functions_are_what_they_allocated_and_what_is_live() {
    const TIMES: usize = 200_000;
    const SESSIONS: usize = 3;
    for format in FORMATS {
        let mut all = [Sums { allocated: 0.0, blocks: 0.0, live: 0.0, live_blocks: 0.0 }; 2];
        for _ in 0..SESSIONS {
            let mut kept = Vec::with_capacity(TIMES);
            let mut freed = Vec::with_capacity(TIMES);
            let trace = profiled(format, |session| {
                std::thread::scope(|scope| {
                    scope.spawn(|| keeps(Pace::of(session), &mut freed, TIMES, 80));
                });
                freed.clear(); // the other thread has ended
                keeps(Pace::of(session), &mut kept, TIMES, 80);
                drops(Pace::of(session), 20_000, 1000);
            });
            for (all, one) in all.iter_mut().zip(ask(&trace, ["keeps", "drops"])) {
                all.allocated += one.allocated;
                all.blocks += one.blocks;
                all.live += one.live;
                all.live_blocks += one.live_blocks;
            }
            drop(kept);
        }
        let [keeps, drops] = all;
        let times = (SESSIONS * TIMES) as f64;
        // Some 11,700 samples are live, and 14,600 were dropped: 5 % are five standard deviations.
        require_within(5.0, keeps.allocated, 2.0 * times * 80.0);
        require_within(5.0, keeps.blocks, 2.0 * times);
        require_within(5.0, keeps.live, times * 80.0);
        require_within(5.0, keeps.live_blocks, times);
        require_within(5.0, drops.allocated, times / 10.0 * 1000.0);
        require_within(5.0, drops.blocks, times / 10.0);
        assert!((drops.live, drops.live_blocks) == (0.0, 0.0), "{format:?}: {drops:?}");
    }
}

#[test]
fn large_blocks_are_exact_and_a_reallocation_is_a_move() {
    for format in FORMATS {
        let (mut kept, mut grown) = (Vec::with_capacity(50), Vec::new());
        let trace = profiled(format, |session| {
            keeps(Pace::of(session), &mut kept, 50, 200_000);
            grown = grows(50, 100_000);
        });
        let [keeps, grows] = ask(&trace, ["keeps", "grows"]);
        let kept_50 = Sums { allocated: 1e7, blocks: 50.0, live: 1e7, live_blocks: 50.0 };
        assert_eq!(keeps, kept_50, "{format:?}");
        let all = (1..=50).map(|n| f64::from(n) * 100_000.0).sum();
        let expected = Sums { allocated: all, blocks: 50.0, live: 5_000_000.0, live_blocks: 1.0 };
        assert_eq!(grows, expected, "{format:?}");
        drop((kept, grown));
    }
}

/// The UI draws the flame graph of this table, in which each inlined function of an innermost frame has the
/// whole sum.
#[test]
fn the_flame_graph_of_the_ui_has_each_byte_once() {
    for format in FORMATS {
        let mut kept = Vec::with_capacity(50);
        let trace = profiled(format, |session| keeps(Pace::of(session), &mut kept, 50, 200_000));
        let verdict = trace.ask(&[
            "include perfetto module android.memory.heap_profile.callstacks",
            "select sum(self_size), sum(self_count) from _android_heap_profile_callstacks_for_allocations!(( \
                select callsite_id, size, count, max(size, 0) as alloc_size, max(count, 0) as alloc_count \
                from heap_profile_allocation))",
            "select sum(size), sum(count) from heap_profile_allocation",
        ]);
        verdict.require_clean();
        assert_eq!(verdict.results[1].text(), verdict.results[2].text(), "{format:?}");
        drop(kept);
    }
}

/// Debug information of lines has names without their paths, so the source file tells whose a function is.
#[test]
fn no_function_of_hairlines_is_in_the_stack_of_an_allocation_and_the_innermost_frame_is_the_call() {
    for format in FORMATS {
        let (mut kept, mut grown) = (Vec::with_capacity(50), Vec::new());
        let trace = profiled(format, |session| {
            keeps(Pace::of(session), &mut kept, 50, 200_000);
            grown = grows(50, 100_000);
        });
        let of_leaves = "select group_concat(distinct s.name) from heap_profile_allocation h \
            join stack_profile_callsite c on c.id = h.callsite_id join stack_profile_frame f on f.id = c.frame_id \
            left join stack_profile_symbol s using (symbol_set_id)";
        // Those of stacks that have `keeps` or `grows`.
        let own = "with recursive up(callsite, at) as ( \
              select distinct callsite_id, callsite_id from heap_profile_allocation where id in \
                (select id from allocations where function glob '*keeps' or function glob '*grows') union all \
              select callsite, parent_id from up join stack_profile_callsite c on c.id = at \
                where parent_id is not null) \
            select coalesce(group_concat(distinct s.name), '') from up \
              join stack_profile_callsite c on c.id = up.at \
              join stack_profile_frame f on f.id = c.frame_id left join stack_profile_symbol s using (symbol_set_id) \
              where s.source_file glob '*/sdk/src/*' or s.source_file glob '*/sampler/src/*' or s.name glob '*hairline::*'";
        let verdict = trace.ask(&[ALLOCATIONS, of_leaves, own]);
        verdict.require_clean();
        assert_eq!(verdict.results[1].text(), "[allocation]", "{format:?}");
        assert_eq!(verdict.results[2].text(), "", "{format:?}");
        drop((kept, grown));
    }
}

#[test]
fn what_the_own_threads_of_a_session_allocate_is_not_in_its_profile() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.heap_profile(HeapProfile::new().every(EVERY)).sampling(997),
            |session| {
                let until = Instant::now() + Duration::from_millis(100);
                while Instant::now() < until {
                    drops(Pace::of(session), 1000, 1000); // with a pause at each 64 samples
                }
            },
        );
        let verdict = trace.ask(&[
            ALLOCATIONS,
            "select coalesce(group_concat(distinct function), '') from allocations where function glob '*drain_thread*' \
                or function glob '*ProgramFile*'",
        ]);
        verdict.require_clean();
        assert_eq!(verdict.results[1].text(), "", "{format:?}");
    }
}

#[test]
fn a_slow_leak_is_what_is_live_at_the_end() {
    const LEAKED: usize = 80 * 512; // in each round
    for format in FORMATS {
        let mut leaked = Vec::with_capacity(100 * 80);
        let trace = profiled(format, |session| {
            for _ in 0..100 {
                drops(Pace::of(session), 200, 1000);
                keeps(Pace::of(session), &mut leaked, 80, 512);
                session.flush().expect("flushed");
            }
        });
        let [keeps, drops] = ask(&trace, ["keeps", "drops"]);
        require_within(15.0, keeps.live, 100.0 * LEAKED as f64); // some 1,000 samples
        assert_eq!(drops.live, 0.0, "{format:?}");
        let live = trace.rows("select sum(size) from heap_profile_allocation");
        assert!(keeps.live * 2.0 > live.parse().expect("a number"), "{format:?}: {keeps:?} of {live}");
        drop(leaked);
    }
}

#[test]
fn a_block_whose_allocator_fails_to_move_it_stays_where_it_is() {
    for format in FORMATS {
        let layout = Layout::from_size_align(1 << 20, 16).unwrap();
        let mut block = std::ptr::null_mut();
        let trace = profiled(format, |_| {
            // SAFETY: the layout has a size, and the block is freed below.
            unsafe {
                block = HEAP.alloc(layout);
                assert!(HEAP.realloc(block, layout, isize::MAX as usize - 4096).is_null());
            }
        });
        let live = "select sum(size), sum(count) from heap_profile_allocation where size >= 1048576 or size <= -1048576";
        assert_eq!(trace.rows(live), "1048576\t1", "{format:?}");
        // SAFETY: allocated above with the same layout.
        unsafe { HEAP.dealloc(block, layout) };
    }
}

#[test]
fn a_dump_has_what_was_live_at_each_peak() {
    for format in FORMATS {
        let mut kept = Vec::with_capacity(100);
        let trace = record_with(
            format,
            |b| b.heap_profile(HeapProfile::new().every(EVERY).at_peaks(4 << 20)),
            |session| {
                for blocks in [50, 100] {
                    keeps(Pace::of(session), &mut kept, blocks, 100_000);
                    session.flush().expect("flushed");
                    kept.clear();
                    session.flush().expect("flushed");
                }
            },
        );
        let (first, second) = (question("keeps", Some(1)), question("keeps", Some(2)));
        let verdict = trace.ask(&[
            ALLOCATIONS,
            &first,
            &second,
            &question("keeps", None),
            "select count(distinct ts) from heap_profile_allocation",
        ]);
        verdict.require_clean();
        let live = [1, 2, 3].map(|at| sums(&verdict, at).live);
        assert!((4_194_304.0..=5_000_000.0).contains(&live[0]), "{format:?}: {live:?}");
        assert!((8_388_608.0..=10_000_000.0).contains(&live[1]), "{format:?}: {live:?}");
        assert_eq!((live[2], verdict.results[4].single_i64()), (0.0, 3), "{format:?}");
    }
}

#[cfg(feature = "command")]
#[test]
fn the_command_says_that_nothing_is_live() {
    let trace = profiled(Format::Fxt, |session| drops(Pace::of(session), 10, 100_000));
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
    let output =
        command.args(["flame", "--heap", "--by", "all"]).arg(trace.path()).output().expect("it runs");
    let (folded, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // What the program's other parts allocate meanwhile may be.
    assert!(
        !folded.contains("::drops") && (!folded.is_empty() || said.contains("nothing was live")),
        "{said}"
    );
}

/// The trace as a profile of pprof, decoded by protobuf's own package.
#[cfg(feature = "command")]
fn pprof(trace: &Path) -> Value {
    let profile = trace.with_extension("pb.gz");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
    assert!(command.arg("convert").arg(trace).arg(&profile).status().expect("it runs").success());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/pprof.py");
    let output = Command::new("python3").arg(script).arg(&profile).output().expect("python3");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "run tests/oracle/setup.sh first: {said}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[cfg(feature = "command")]
#[test]
fn the_command_draws_what_is_live_what_was_allocated_and_the_peak() {
    for format in FORMATS {
        let mut kept = Vec::with_capacity(100);
        let trace = record_with(
            format,
            |b| b.heap_profile(HeapProfile::new().every(EVERY).at_peaks(4 << 20)),
            |session| {
                keeps(Pace::of(session), &mut kept, 100, 100_000);
                session.flush().expect("flushed");
                kept.truncate(10);
                drops(Pace::of(session), 100, 100_000);
            },
        );
        let bytes = |part: &[&str], function: &str| -> u64 {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
            // A part means the heap profile.
            let heap: &[&str] = if part.is_empty() { &["--heap"] } else { &[] };
            command.args(["flame", "--by", "all"]).args(heap).args(part).arg(trace.path());
            let output = command.output().expect("it runs");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let folded = String::from_utf8_lossy(&output.stdout).into_owned();
            let of_function = folded.lines().filter(|line| line.contains(function));
            of_function.filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
        };
        assert_eq!(bytes(&[], "::keeps"), 1_000_000, "{format:?}");
        assert_eq!(bytes(&["--live"], "::drops"), 0, "{format:?}");
        assert_eq!(bytes(&["--allocated"], "::drops"), 10_000_000, "{format:?}");
        assert_eq!(bytes(&[], "[allocation]"), 0, "{format:?}: it ends in a function");
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
        let explained = command.arg("explain").arg(trace.path()).output().expect("it runs").stdout;
        let explained = String::from_utf8_lossy(&explained).into_owned();
        assert!(explained.starts_with("Heap profile"), "{format:?}, without slices: {explained}");
        assert!(explained.contains("\nheap_profile::keeps "), "{format:?}: {explained}");
        let profile = pprof(trace.path());
        let types = serde_json::json!([["alloc_space", "bytes"], ["inuse_space", "bytes"]]);
        assert_eq!(profile["types"], types, "{format:?}");
        let of = |function: &str| {
            let is_it = |frame: &Value| frame[0].as_str().is_some_and(|name| name.ends_with(function));
            let has = |sample: &&Value| sample["stack"].as_array().expect("frames").iter().any(is_it);
            let samples = profile["samples"].as_array().expect("samples").iter().filter(has);
            samples.fold([0, 0], |sums, sample| {
                [0, 1].map(|n| sums[n] + sample["values"][n].as_u64().expect("a number"))
            })
        };
        assert_eq!((of("::keeps"), of("::drops")), ([10_000_000, 1_000_000], [10_000_000, 0]), "{format:?}");
        let is_call = |sample: &Value| sample["stack"].to_string().contains("[allocation]");
        assert!(!profile["samples"].as_array().expect("samples").iter().any(is_call), "{format:?}");
        let peak = bytes(&["--peak"], "::keeps");
        assert!((8_000_000..=10_000_000).contains(&peak), "{format:?}: {peak}");
        drop(kept);
    }
}

#[test]
fn the_environment_asks_for_a_profile_and_a_peak_is_in_the_file_of_a_killed_process() {
    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        let file = folder.path().join(format!("out.{}", extension(format)));
        let hoarder = |megabytes: &str, heap: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hoarder"));
            command.arg(megabytes).env("HAIRLINE", &file).env("HAIRLINE_HEAP", heap);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().expect("it runs")
        };
        for (heap, says) in [("often", true), ("peak:", true), ("off", false), ("64K", false)] {
            let said = hoarder("0", heap).wait_with_output().expect("it ends").stderr;
            let said = String::from_utf8_lossy(&said).into_owned();
            assert_eq!(said.contains("HAIRLINE_HEAP"), says, "{heap}: {said}");
        }
        let mut child = hoarder("60", "64K,peak:8M");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        assert_eq!(line, "full\n");
        let live = || sums(&judge::load(&file, &[ALLOCATIONS, &question("hoard", None)]), 1).live;
        let until = Instant::now() + Duration::from_secs(20);
        while live() < f64::from(52 << 20) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(100)); // the drain thread reads the debug information
        }
        child.kill().expect("killed");
        child.wait().expect("it has ended");
        let live = live();
        assert!((f64::from(52 << 20)..=f64::from(60 << 20)).contains(&live), "{format:?}: {live}");
    }
}

#[test]
fn a_forked_child_has_a_profile_of_its_own() {
    let _turn = turn();
    let both = [Overflow::Drop, Overflow::Overwrite];
    for (format, overflow) in FORMATS.into_iter().flat_map(|format| both.map(|overflow| (format, overflow))) {
        let directory = tempfile::tempdir().expect("a directory");
        let template = directory.path().join(format!("t-%p.{}", extension(format)));
        let builder = Session::builder().output(&template).format(format).overflow(overflow);
        let session = builder.heap_profile(HeapProfile::new().every(EVERY)).start().expect("a session");
        let mut of_parent = Vec::with_capacity(50);
        let at_once = || Pace { session: None, allocated: 0 };
        keeps(at_once(), &mut of_parent, 50, 100_000);
        // SAFETY: glibc lets the child allocate, and the child leaves by `_exit`.
        let child = unsafe { children::fork() };
        if child == 0 {
            hairline::trace_instant!("t", "child");
            let mut kept = Vec::with_capacity(20);
            keeps(at_once(), &mut kept, 20, 100_000);
            drop(of_parent);
            let is_stopped = session.stop().is_ok();
            drop(kept);
            // SAFETY: ends the process.
            unsafe { libc::_exit(i32::from(!is_stopped)) };
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child's session has stopped");
        session.stop().expect("no error");
        for (pid, blocks) in [(child.cast_unsigned(), 20.0), (std::process::id(), 50.0)] {
            let path = directory.path().join(format!("t-{pid}.{}", extension(format)));
            let verdict = judge::load(&path, &[ALLOCATIONS, &question("keeps", None)]);
            verdict.require_clean();
            let sums = sums(&verdict, 1);
            assert_eq!((sums.live_blocks, sums.live), (blocks, blocks * 100_000.0), "{format:?}");
        }
    }
}

#[test]
fn samples_without_room_are_counted_and_the_trace_says_so() {
    for format in FORMATS {
        let trace = record_with(
            format,
            |b| b.heap_profile(HeapProfile::new().every(1)),
            |_| {
                for _ in 0..100_000 {
                    drop(black_box(Vec::<u8>::with_capacity(100)));
                }
            },
        );
        let notes = trace.summary.notes.join("\n");
        assert!(notes.contains("found no room"), "{format:?}: {notes}");
        let verdict = trace.ask(&["select 1"]);
        assert_eq!(verdict.stat("heapprofd_buffer_overran"), 1, "{format:?}");
    }
}
