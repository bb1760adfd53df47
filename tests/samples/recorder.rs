//! The samples of a flight recorder: each snapshot has those up to its moment, with their functions.

use hairline::{Format, MemoryOutput, Overflow, Session, SessionBuilder};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::burn::burn;
use crate::record::{STACKS, numbers};
use crate::refused::without_perf;

#[test]
fn a_snapshot_has_the_samples_up_to_its_moment_with_functions() {
    let _one = crate::ONE.lock();
    snapshots(Format::TrackEvent, |builder| builder.kernel_sampling(249));
    without_perf(|| FORMATS.into_iter().for_each(|format| snapshots(format, |b| b.sampling(249))));
}

#[test]
fn a_flight_recorder_is_sampled_by_signals_and_says_so() {
    let _one = crate::ONE.lock();
    let by_signals = |builder: SessionBuilder| {
        let summary = builder.start().expect("it starts").stop().expect("it stops");
        summary.notes.join("\n").contains("samples are taken by signals")
    };
    let recorder = || Session::builder().overflow(Overflow::Overwrite);
    assert!(by_signals(recorder().sampling(99)));
    if by_signals(Session::builder().output_memory(&MemoryOutput::new()).sampling(99)) {
        return; // the kernel permits no others here
    }
    assert!(!by_signals(recorder().kernel_sampling(99)));
    assert!(!by_signals(recorder().sampling(4999)), "more than the kernel has ticks");
    assert!(!by_signals(recorder().signal_sampling(99)), "who asks for them knows");
}

fn snapshots(format: Format, with: impl FnOnce(SessionBuilder) -> SessionBuilder) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(format!("{name}.{}", extension(format)));
    let builder = with(Session::builder().output(path("end")).overflow(Overflow::Overwrite));
    let session = builder.start().expect("it starts");
    let work = || {
        hairline::trace_scope!("samples", "work");
        burn(40);
    };
    work();
    session.snapshot(path("first")).expect("a thread of the program writes it");
    work();
    let summary = session.stop().expect("it stops");
    assert!(!summary.notes.iter().any(|note| note.contains("not recorded")), "{:?}", summary.notes);
    let sql = [
        STACKS,
        "select coalesce(sum(stack glob '*seventy:*' or stack glob '*thirty:*'), 0), count(*) from stacks \
            join perf_sample p on p.id = sample join thread_track t using (utid) join slice s on s.track_id = t.id \
            where s.name = 'work' and p.ts between s.ts and s.ts + s.dur",
        "select (max(s.ts + s.dur) - max(p.ts)) * 100 / max(s.dur) from perf_sample p, slice s where s.name = 'work'",
    ];
    let mut before = 0;
    for (name, slices) in [("first", 1), ("end", 2)] {
        let (path, sql) = (path(name), &sql);
        let verdict = judge::load(&path, sql);
        verdict.require_clean();
        let [named, all] = numbers(&verdict, 1)[..] else { panic!() };
        let missing = verdict.results[2].single_i64();
        assert!(named * 10 >= all * 9 && all >= 30 * slices, "{format:?} {path:?}: {named} of {all}");
        // Two samples are 4 ms apart, or many ticks of the kernel on a busy machine: another thread may run
        // at each.
        assert!(missing <= 50, "{format:?} {path:?}: no sample in the last {missing} % of the work");
        assert!(all >= before, "the history has all so far");
        before = all;
    }
}

#[test]
fn threads_that_have_ended_keep_their_names_in_the_window() {
    let _one = crate::ONE.lock();
    for overflow in [Overflow::Drop, Overflow::Overwrite] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.pftrace");
        without_perf(|| {
            let session =
                Session::builder().output(&path).overflow(overflow).sampling(997).start().expect("it starts");
            for round in 0..4 {
                std::thread::scope(|scope| {
                    for n in 0..4 {
                        let thread = std::thread::Builder::new().name(format!("short {round} {n}"));
                        thread.spawn_scoped(scope, || burn(40)).expect("a thread");
                    }
                });
            }
            session.stop().expect("it stops");
        });
        let sql = "select count(distinct utid), count(distinct iif(name glob 'short*', utid, null)) from perf_sample \
            join thread using (utid) where not is_main_thread and coalesce(name, '') not glob 'hairline*'";
        let verdict = judge::load(&path, &[sql]);
        let [sampled, named] = numbers(&verdict, 0)[..] else { panic!() };
        assert_eq!(named, 16, "{overflow:?}: of {sampled} threads");
    }
}

#[test]
fn samples_are_read_while_the_sessions_own_thread_writes_a_snapshot() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.pftrace");
    let summary = without_perf(|| {
        let builder = Session::builder().output(&path).overflow(Overflow::Overwrite).sampling(997);
        let session = builder.start().expect("it starts");
        std::thread::scope(|scope| {
            (0..2).for_each(|_| _ = scope.spawn(|| burn(100)));
            burn(10);
            hairline::trigger!(); // looks up the functions of all files: more than the ring has room for
            burn(10);
        });
        session.stop().expect("it stops")
    });
    assert_eq!(summary.lost.kernel_ring, 0, "{:?}", summary.notes);
}
