//! `SessionBuilder::sampling` and `HAIRLINE_SAMPLE`: a process samples its own threads.

use std::collections::HashMap;
use std::process::Command;

use hairline::{Format, MemoryOutput, Session, Summary};
use hairline_formats::fxt::{Record, RecordReader};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::burn::burn;
use crate::programs::line;
use crate::record::{STACKS, numbers};

/// Records what `work` does. Returns `None` where the system does not permit samples.
fn sampled(format: Format, work: impl FnOnce()) -> Option<(Vec<u8>, Summary)> {
    let memory = MemoryOutput::new();
    let builder = Session::builder().output_memory(&memory).format(format).sampling(1997);
    let session = builder.start().expect("it starts");
    work();
    let summary = session.stop().expect("it stops");
    if summary.notes.iter().any(|note| note.contains("samples are not recorded")) {
        eprintln!("skipped: {:?}", summary.notes);
        return None;
    }
    Some((memory.to_vec(), summary))
}

#[test]
fn a_session_samples_present_and_future_threads_with_functions_and_lines() {
    let _one = crate::ONE.lock();
    for format in FORMATS {
        let (go, wait) = std::sync::mpsc::channel();
        let early = std::thread::Builder::new().name("early".to_owned());
        let early = early.spawn(move || wait.recv().map(|()| burn(50))).expect("a thread");
        let recorded = sampled(format, || {
            hairline::trace_scope!("samples", "work");
            go.send(()).expect("it waits");
            let late = std::thread::Builder::new().name("late".to_owned());
            let late = late.spawn(|| burn(100)).expect("a thread");
            burn(50);
            late.join().expect("it ends");
            early.join().expect("it ends").expect("it burnt");
        });
        let Some((trace, summary)) = recorded else { return };
        assert_eq!(summary.lost.kernel_ring, 0);
        let at = |function: &str| line(&format!("line of {function}"));
        let chain = |stir: i64| {
            format!("stack glob '*stir:{stir} *spend:{} *seventy:{} *burn*'", at("spend"), at("seventy"))
        };
        let (body, head) = (chain(at("stir")), chain(line("for _ in 0..20_000")));
        let chain = format!("select count(*) from stacks where {body} or {head}");
        let sql = [
            STACKS,
            "select count(*), count(callsite_id), sum(unwind_error is not null), count(distinct utid) from perf_sample",
            "select sum(stack glob '*seventy:*'), sum(stack glob '*thirty:*') from stacks",
            &chain,
            "select count(*), count(distinct upid) from (select t.name, t.upid from perf_sample p join thread t using (utid) \
                where t.name in ('early', 'late') group by 1, 2)",
            // The slice's thread is the one of its samples.
            "select count(*) from perf_sample p join thread_track t using (utid) join slice s on s.track_id = t.id \
                where s.name = 'work' and p.ts between s.ts and s.ts + s.dur",
        ];
        let verdict = judge::load_bytes(&trace, &sql);
        verdict.require_clean();
        let [samples, with_stack, cut, threads] = numbers(&verdict, 1)[..] else { panic!() };
        let [seventy, thirty] = numbers(&verdict, 2)[..] else { panic!() };
        assert!(samples > 2_000 && with_stack == samples && threads >= 3, "{samples} {with_stack} {threads}");
        assert!(cut * 50 <= samples, "{cut} of {samples} without their root");
        let share = seventy as f64 * 100.0 / (seventy + thirty) as f64;
        assert!((share - 70.0).abs() <= 3.0, "{seventy} : {thirty}");
        let chain = verdict.results[3].single_i64();
        assert!(chain * 50 >= seventy * 49, "{chain} of {seventy} with these lines");
        assert_eq!(numbers(&verdict, 4), [2, 1], "{format:?}: both threads, in one process");
        assert!(verdict.results[5].single_i64() > 500, "{format:?}: samples in the slice");
    }
}

#[test]
fn the_profiler_records_of_fxt_are_the_samples() {
    let _one = crate::ONE.lock();
    let Some((trace, _)) = sampled(Format::Fxt, || _ = std::hint::black_box(burn(20))) else {
        return;
    };
    let verdict = judge::load_bytes(&trace, &["select count(*) from perf_sample"]);
    let (mut backtraces, mut inside) = (0, 0);
    let (mut modules, mut mappings) = (HashMap::new(), Vec::new());
    let mut reader = RecordReader::new(&trace[..]);
    while let Some((_, record)) = reader.next().expect("valid records") {
        match record {
            Record::Module(module) => drop(modules.insert(module.id, module.name.to_owned())),
            Record::Mmap(mmap) => mappings.push((mmap.module_id, mmap.start..mmap.start + mmap.range)),
            Record::Backtrace(backtrace) => {
                backtraces += 1;
                // Each frame is in a mapping before it, and the innermost one in this program or a library.
                let known = |frame: u64| mappings.iter().find(|(_, range)| range.contains(&frame));
                let modules = backtrace.frames.clone().map_while(|frame| modules.get(&known(frame)?.0));
                let modules: Vec<&String> = modules.collect();
                inside += i64::from(
                    modules.len() == backtrace.frames.len()
                        && modules.iter().any(|name| name.contains("samples")),
                );
            }
            _ => {}
        }
    }
    assert_eq!(verdict.results[0].single_i64(), backtraces);
    assert!(backtraces > 100 && inside * 20 >= backtraces * 19, "{inside} of {backtraces}");
}

#[test]
fn the_environment_asks_for_samples_and_a_wrong_number_is_said() {
    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        let trace = folder.path().join(format!("out.{}", extension(format)));
        let run = |frequency: &str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_family"));
            command.args(["parent", "2", "0"]).env("HAIRLINE", &trace).env("HAIRLINE_SAMPLE", frequency);
            let output = command.output().expect("it runs");
            String::from_utf8_lossy(&output.stderr).into_owned()
        };
        let said = run("1997");
        assert!(said.is_empty() || said.contains("samples are not recorded"), "{said}");
        judge::load(&trace, &["select count(*) from perf_sample"]).require_clean();
        for wrong in ["often", "10001", "-1"] {
            assert!(run(wrong).contains("HAIRLINE_SAMPLE"), "a wrong value is said");
        }
    }
}

#[test]
fn a_flight_recorder_says_that_it_has_no_samples_and_records_all_else() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("window.pftrace");
    let builder = Session::builder().output(path).overflow(hairline::Overflow::Overwrite).sampling(997);
    let session = builder.start().expect("it starts");
    hairline::trace_instant!("samples", "here");
    let summary = session.stop().expect("it stops");
    let notes = summary.notes.join("\n");
    assert!(notes.contains("samples are not recorded: a flight recorder"), "{notes}");
    assert_eq!(summary.records, 1);
}
