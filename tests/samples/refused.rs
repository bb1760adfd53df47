//! Samples where `perf_event_open` is refused, as in most containers, or not asked for: the threads take
//! their own, in signal handlers.

use std::process::Command;

use hairline::{Error, Format, MemoryOutput, Session, SessionBuilder, Summary};
use hairline_tests::recording::{FORMATS, extension};
use hairline_tests::{judge, seccomp};

use crate::burn::burn;
use crate::record::numbers;
use crate::truth::{Truth, require_truth};

/// Runs `work` on a thread that may not open perf events, and neither may the threads that it starts.
pub(crate) fn without_perf<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let refused = || {
        seccomp::refuse_here(&[libc::SYS_perf_event_open], libc::EPERM);
        work()
    };
    std::thread::scope(|scope| scope.spawn(refused).join().expect("it does not panic"))
}

/// Records what two threads that start late and this one burn, by signals. Requires its truth.
fn signals_have_the_truth(format: Format, sampled: impl FnOnce(SessionBuilder) -> SessionBuilder) -> Summary {
    let memory = MemoryOutput::new();
    let builder = sampled(Session::builder().output_memory(&memory).format(format));
    let session = builder.start().expect("it starts");
    let events = std::fs::read_dir("/proc/self/fd").expect("its descriptors").flatten();
    let events = events.filter_map(|fd| std::fs::read_link(fd.path()).ok());
    assert_eq!(events.filter(|file| file.as_os_str() == "anon_inode:[perf_event]").count(), 0);
    {
        hairline::trace_scope!("samples", "work");
        let late = || std::thread::Builder::new().name("late".to_owned()).spawn(|| burn(250));
        let late = [late(), late()].map(|thread| thread.expect("a thread"));
        burn(100);
        late.into_iter().for_each(|thread| _ = thread.join().expect("it ends"));
    }
    let summary = session.stop().expect("it stops");
    assert_eq!(summary.lost.kernel_ring, 0);
    // At the kernel's ticks: a hundred in a second at least, and a thousand at most, of 6 s and what is around.
    // The kernel's time counts too: that of each look at the clock, between the loops.
    let truth = Truth { samples: 500..8_000, of_threads: &["late"], points: 5.0, lines: 85 };
    let inside = require_truth(&memory.to_vec(), format, &truth);
    assert!(inside > 50, "{format:?}: {inside} samples in the slice");
    summary
}

#[test]
fn threads_take_their_own_samples_with_the_same_shares_functions_and_lines() {
    let _one = crate::ONE.lock();
    for format in FORMATS {
        let summary = without_perf(|| signals_have_the_truth(format, |session| session.sampling(997)));
        let note = summary.notes.iter().find(|note| note.contains("samples are taken by signals"));
        assert!(note.is_some_and(|note| note.contains("seccomp")), "{:?}", summary.notes);
    }
}

#[test]
fn a_program_may_choose_signals() {
    let _one = crate::ONE.lock();
    for format in FORMATS {
        let summary = signals_have_the_truth(format, |session| session.signal_sampling(997));
        assert!(!summary.notes.iter().any(|note| note.contains("signals")), "{:?}", summary.notes);
    }
    let too_often = Session::builder().signal_sampling(10_001).start();
    assert!(matches!(too_often, Err(Error::Value { what: "signal_sampling", .. })), "{too_often:?}");
}

#[test]
fn the_command_lets_the_programs_sample_themselves() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        let trace = folder.path().join(format!("out.{}", extension(format)));
        let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
        command.args(["record", "--sample=997", "-o"]).arg(&trace).arg("--");
        command.arg(env!("CARGO_BIN_EXE_together"));
        seccomp::refuse(&mut command, &[libc::SYS_perf_event_open], libc::EPERM);
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("take their own"), "{said}");
        let sql = "select count(*), count(distinct utid) from perf_sample p join thread_track t using (utid) \
            join slice s on s.track_id = t.id where s.name = 'turn' and p.ts between s.ts and s.ts + s.dur";
        let verdict = judge::load(&trace, &[sql, REFUSED]);
        verdict.require_clean();
        let [samples, threads] = numbers(&verdict, 0)[..] else { panic!() };
        assert!(samples > 20 && threads == 2, "{format:?}: {samples} of {threads}; {said}");
        let refused = verdict.results[1].text();
        assert!(refused.starts_with("stack samples by the command\tno samples: "), "{format:?}: {refused}");
    }
}

#[test]
fn the_command_tells_that_it_was_refused_the_states_of_threads() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        let trace = folder.path().join(format!("out.{}", extension(format)));
        let hairline = || Command::new(env!("CARGO_BIN_EXE_hairline_command"));
        let mut command = hairline();
        command.args(["record", "--sched", "-o"]).arg(&trace).arg("--").arg(env!("CARGO_BIN_EXE_together"));
        seccomp::refuse(&mut command, &[libc::SYS_perf_event_open], libc::EPERM);
        let output = command.output().expect("it runs");
        let verdict = judge::load(&trace, &[REFUSED]);
        verdict.require_clean();
        let refused = verdict.results[0].text();
        let words = "thread states by the command\t--sched: no context switches: ";
        assert!(refused.starts_with(words), "{format:?}: {refused}; {output:?}");
        let output = hairline().arg("explain").arg(&trace).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("When threads ran is not known: --sched: no context switches: "), "{said}");
        assert!(!said.contains("To know more"), "{said}");
    }
}

/// What traces tell of that was refused.
const REFUSED: &str = "select replace(a.key, 'debug.', ''), a.string_value from slice s join args a using (arg_set_id) \
    where s.category = 'hairline' and s.name = 'not recorded' order by 1";

#[test]
fn what_was_refused_is_in_the_trace_and_explain_gives_no_advice_to_record_it() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        let trace = folder.path().join(format!("t.{}", extension(format)));
        let notes = without_perf(|| {
            let session = Session::builder().output(&trace).scheduling(true).start().expect("it starts");
            for _ in 0..50 {
                hairline::trace_scope!("samples", "turn");
                _ = burn(1);
            }
            session.stop().expect("it stops").notes
        });
        let note = notes.iter().find(|note| note.contains("context switches are not recorded"));
        let note = note.unwrap_or_else(|| panic!("{notes:?}"));
        let verdict = judge::load(&trace, &[REFUSED]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), format!("thread states\t{note}"), "{format:?}");
        let mut explain = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
        let output = explain.arg("explain").arg(&trace).arg("samples/turn").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(&format!("When threads ran is not known: {note}.")), "{said}");
        assert!(!said.contains("record scheduling"), "{said}");
    }
    // Where nothing is refused, or asked for, the trace has no such event.
    for format in FORMATS {
        let memory = MemoryOutput::new();
        let session = Session::builder().output_memory(&memory).format(format).sampling(997).start();
        let session = session.expect("it starts");
        _ = burn(1);
        let (summary, trace) = (session.stop().expect("it stops"), memory.to_vec());
        let has_all = !summary.notes.iter().any(|note| note.contains("not recorded"));
        assert!(!has_all || judge::load_bytes(&trace, &[REFUSED]).results[0].is_empty(), "{format:?}");
    }
}
