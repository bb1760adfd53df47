//! Who woke whom is in a trace where the kernel permits it.

use std::path::Path;
use std::process::Command;
use std::thread;

use hairline_tests::calm::when_calm;
use hairline_tests::judge;

use super::{FORMATS, Stage, check, is_permitted, recorded_by_command};

/// The wake-ups of two threads by the main thread, and how many threads were woken by themselves.
const WAKERS: &str = "select count(distinct t.name), sum(w.utid = t.utid) from thread_state s \
    join thread t using (utid) join thread w on w.utid = s.waker_utid \
    where s.state = 'R' and t.name in ('mutex', 'channel') and w.tid in (select pid from process)";

/// FXT names no waker. The threads that were woken, and how many wait for a processor for ever since.
const WOKEN: &str = "select count(distinct t.name), sum(s.dur < 0) from thread_state s \
    join thread t using (utid) where s.state = 'W' and t.name in ('mutex', 'channel')";

fn wake_ups(extension: &str) -> &'static str {
    if extension == "fxt" { WOKEN } else { WAKERS }
}

/// Whether this user may see who wakes whom: root as a rule, where tracefs is mounted.
fn may_see_wakers() -> bool {
    let format = "/sys/kernel/tracing/events/sched/sched_waking/format";
    let may = std::fs::File::open(format).is_ok();
    if !may {
        eprintln!("{format} cannot be read: not tested");
    }
    may
}

#[test]
fn who_woke_whom_is_in_the_trace_where_the_kernel_permits_it() {
    when_calm(|| {
        for extension in FORMATS.into_iter().filter(|_| may_see_wakers()) {
            let stage = Stage { is_root: false, ..Stage::new() };
            let file = stage.path(extension);
            let printed = stage.run("known", &file, &[]);
            if !is_permitted(&printed) {
                return;
            }
            check(&file, &printed);
            let verdict = judge::load(&file, &[wake_ups(extension)]);
            assert_eq!(verdict.results[0].text(), "2\t0", "{extension}");
        }
    });
}

#[test]
fn record_has_the_wake_ups_of_the_command_where_the_kernel_permits_it() {
    // What else wakes threads on the machine can fill the rings.
    when_calm(|| {
        for extension in FORMATS.into_iter().filter(|_| may_see_wakers()) {
            for with_samples in [&[][..], &["--sample"]] {
                let stage = Stage { is_root: false, ..Stage::new() };
                let file = stage.path(extension);
                let mut command = Command::new(env!("CARGO_BIN_EXE_hairline_command"));
                command.args(["record", "--sched"]).args(with_samples).arg("-o").arg(&file).arg("--");
                command.arg(env!("CARGO_BIN_EXE_switching")).arg("plain").arg(stage.path("none"));
                let output = command.env_remove("HAIRLINE").output().expect("it runs");
                let told = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{told}");
                let verdict = judge::load(&file, &[wake_ups(extension)]);
                verdict.require_clean();
                assert_eq!(verdict.results[0].text(), "2\t0", "{extension} {with_samples:?}: {told}");
            }
        }
    });
}

/// Sleeps of `sleep`, which a timer ends, and of the shell that waits for it, which its end ends: how many
/// there are, and how many of them end with a wake-up.
const ENDED: &str = "select t.name, count(*), sum(exists (select 1 from thread_state w where w.utid = s.utid \
    and w.ts = s.ts + s.dur and w.state in ('R', 'W'))) from thread_state s join thread t using (utid) \
    where t.name in ('sh', 'sleep') and s.state = 'S' and s.dur > 15e6 group by 1 order by 1";

/// Kernels are seen on which perf has no tracepoint of an interrupt that finds one of the processors idle, in
/// `perf record` too.
#[test]
fn record_has_the_wake_ups_by_interrupts_and_by_the_ends_of_processes() {
    for extension in FORMATS.into_iter().filter(|_| may_see_wakers()) {
        let stage = Stage { is_root: false, ..Stage::new() };
        let processors = thread::available_parallelism().expect("a number").get().min(8);
        let mut by_interrupt = Vec::new();
        for processor in 0..processors {
            let script = format!(
                "taskset -p -c {processor} $$ >/dev/null; for i in 1 2 3 4 5; do sleep 0.02; done; true"
            );
            let file = stage.path(extension);
            // What else wakes threads on the machine can fill the rings.
            by_interrupt.extend(when_calm(|| ends_of_sleeps(&file, &script)));
        }
        assert!(by_interrupt.is_empty() || by_interrupt.contains(&5), "{extension}: {by_interrupt:?}");
    }
}

/// Requires that the ends of children have woken the shell five times. Returns how many of five sleeps the
/// interrupts of a timer have ended. `None`: this user may not record them.
fn ends_of_sleeps(file: &Path, script: &str) -> Option<i64> {
    let told = recorded_by_command(file, script)?;
    let by_child = "select count(*) from thread_state s join thread t using (utid) \
        join thread w on w.utid = s.waker_utid where t.name = 'sh' and w.name = 'sleep'";
    let verdict = judge::load(file, &[ENDED, by_child]);
    verdict.require_clean();
    let ended = verdict.results[0].text();
    let by_interrupt = ended.strip_prefix("sh\t5\t5\nsleep\t5\t").map(str::parse);
    let by_interrupt = by_interrupt.unwrap_or_else(|| panic!("{ended}: {told}")).expect("a number");
    let by_child = verdict.results[1].single_i64();
    let is_fxt = file.extension().is_some_and(|extension| extension == "fxt");
    assert!(if is_fxt { by_child == 0 } else { by_child >= 5 }, "{by_child}: {told}");
    Some(by_interrupt)
}
