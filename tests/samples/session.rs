//! `SessionBuilder::sampling` and `HAIRLINE_SAMPLE`: a process samples its own threads.

#![allow(unsafe_code)] // signals

use std::collections::HashMap;
use std::process::Command;

use hairline::{Format, MemoryOutput, Session, Summary};
use hairline_formats::fxt::{Record, RecordReader};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::burn::burn;
use crate::truth::{Truth, require_truth};

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
        let truth =
            Truth { samples: 2_000..i64::MAX, of_threads: &["early", "late"], points: 3.0, lines: 98 };
        let inside = require_truth(&trace, format, &truth);
        assert!(inside > 500, "{format:?}: {inside} samples in the slice");
    }
}

/// A handler that takes all the time of the function that it interrupts.
extern "C" fn handles(_: libc::c_int) {
    std::hint::black_box(burn(5));
}

#[inline(never)]
fn is_interrupted() {
    for _ in 0..40 {
        // SAFETY: the handler calls nothing that a handler may not.
        unsafe { libc::raise(libc::SIGUSR2) };
    }
    std::hint::black_box(());
}

#[test]
fn a_stack_in_a_signal_handler_has_what_the_signal_has_interrupted() {
    let _one = crate::ONE.lock();
    // SAFETY: a handler of this program.
    unsafe { libc::signal(libc::SIGUSR2, handles as extern "C" fn(libc::c_int) as usize) };
    for format in FORMATS {
        let Some((trace, _)) = sampled(format, is_interrupted) else { return };
        let sql = [
            crate::record::STACKS,
            "select count(*) > 300, count(*) = sum(stack glob '*handles:*is_interrupted:*clone*') from stacks \
                where stack glob '*handles:*'",
            "select stack, count(*) from stacks where stack glob '*handles:*' group by 1 order by 2 desc limit 3",
        ];
        let verdict = judge::load_bytes(&trace, &sql);
        verdict.require_clean();
        assert_eq!(verdict.results[1].text(), "1\t1", "{format:?}: {}", verdict.results[2].text());
    }
}

#[inline(never)]
fn recurses(depth: u32) -> u64 {
    let below = if depth == 0 { u64::from(burn(20) > 0) } else { recurses(depth - 1) };
    std::hint::black_box(below) + 1
}

#[test]
fn a_session_says_that_stacks_have_more_frames_than_are_kept() {
    let _one = crate::ONE.lock();
    for depth in [300, 30] {
        let memory = MemoryOutput::new();
        let session = Session::builder().output_memory(&memory).signal_sampling(997).start();
        let session = session.expect("it starts");
        assert!(recurses(depth) > 0);
        let summary = session.stop().expect("it stops");
        let is_said = summary.notes.iter().any(|note| note.contains("more than the 255 frames"));
        assert_eq!(is_said, depth == 300, "{:?}", summary.notes);
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
        for right in ["1997", "signals:1997", "kernel:1997"] {
            let said = run(right);
            assert!(said.is_empty() || said.contains("samples are not recorded"), "{said}");
            judge::load(&trace, &["select count(*) from perf_sample"]).require_clean();
        }
        for wrong in ["often", "10001", "-1", "signals:", "signals:10001", "signals:99:worker*", ":99"] {
            assert!(run(wrong).contains("HAIRLINE_SAMPLE"), "a wrong value is said");
        }
    }
}

/// Bytes that the C library's allocator has given out, or keeps at hand for threads: up to some 10 KiB.
#[cfg(target_env = "gnu")]
fn bytes_in_use() -> usize {
    // SAFETY: no arguments; it returns numbers.
    #[allow(unsafe_code)]
    unsafe { libc::mallinfo2() }.uordblks
}

#[test]
#[cfg(target_env = "gnu")]
fn sessions_one_after_the_other_leave_no_memory_behind() {
    const SESSIONS: usize = 500;
    let _one = crate::ONE.lock();
    let sessions = |count: usize| {
        for _ in 0..count {
            let memory = MemoryOutput::new();
            let builder = Session::builder().output_memory(&memory).sampling(97).slow_stacks(true);
            let session = builder.trigger_on_slow("net/*", std::time::Duration::from_secs(1)).start();
            session.expect("it starts").stop().expect("it stops");
        }
        bytes_in_use()
    };
    let before = sessions(50); // tables have their size
    let left = sessions(SESSIONS).saturating_sub(before);
    assert!(left < 32 * SESSIONS, "{left} bytes of {SESSIONS} sessions");
}
