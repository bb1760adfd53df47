//! `hairline record --sample`, as an ordinary user.

#![allow(unsafe_code)] // geteuid

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::programs::{burn, caller, line};

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// Runs the command in a folder, as an ordinary user also if the tests run as root.
pub(crate) fn hairline(folder: &Path, arguments: &[&str]) -> Output {
    as_user(folder, env!("CARGO_BIN_EXE_hairline_command"), arguments).expect("it runs")
}

fn as_user(folder: &Path, program: &str, arguments: &[&str]) -> io::Result<Output> {
    let mut command = Command::new(program);
    command.current_dir(folder).args(arguments);
    // SAFETY: asks for a number.
    if unsafe { libc::geteuid() } == 0 {
        let all = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(folder, all).expect("the folder's mode is set");
        command.uid(NOBODY).gid(NOBODY);
    }
    command.output()
}

/// Whether this system permits samples. Some containers do not.
pub(crate) fn is_permitted(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let is_forbidden = said.contains("no samples: ");
    if is_forbidden {
        eprintln!("skipped: {said}");
    }
    !is_forbidden
}

/// For each sample, the functions of its stack, the innermost first, with their lines: one text.
pub(crate) const STACKS: &str = "create perfetto table stacks as \
    with recursive up(sample, callsite, level) as (\
      select id, callsite_id, 0 from perf_sample union all \
      select sample, parent_id, level + 1 from up join stack_profile_callsite c on c.id = callsite \
        where parent_id is not null), \
    functions as (select sample, level, s.id as inlined, \
      coalesce(s.name, '?') || ':' || coalesce(s.line_number, 0) as function \
      from up join stack_profile_callsite c on c.id = callsite join stack_profile_frame f on f.id = c.frame_id \
      left join stack_profile_symbol s using (symbol_set_id) order by sample, level, s.id) \
    select sample, ' ' || group_concat(function, ' ') || ' ' as stack from functions group by sample";

/// Records the program and requires that its samples tell the truth.
fn require_true_samples(folder: &Path, program: &Path) {
    let _one = crate::ONE.lock(); // each user has a limited amount of memory for rings
    for format in FORMATS {
        require_true_samples_in(folder, program, &format!("out.{}", extension(format)));
    }
}

fn require_true_samples_in(folder: &Path, program: &Path, trace: &str) {
    let program = program.to_str().expect("UTF-8");
    let output = hairline(folder, &["record", "--sample", "1499", "-o", trace, "--", program]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    if !is_permitted(&output) {
        return;
    }
    let at = |function: &str| line(&format!("line of {function}"));
    // `seventy` and what is inlined into it, with their lines, below their caller.
    let chain = |stir: i64| {
        let (spend, seventy) = (at("spend"), at("seventy"));
        format!("stack glob '*stir:{stir} *spend:{spend} *seventy:{seventy} *burn:*main*'")
    };
    let (body, head) = (chain(at("stir")), chain(line("for _ in 0..20_000")));
    let chain = format!("select count(*) from stacks where {body} or {head}");
    let sql = [
        STACKS,
        "select count(*), count(callsite_id), sum(unwind_error is not null), count(distinct utid) from perf_sample",
        "select count(*) from stacks where stack glob '*seventy:*'",
        "select count(*) from stacks where stack glob '*thirty:*'",
        &chain,
        "select count(*) from stacks where stack glob '*_start:*'",
        "select count(*) from thread join process using (upid) where process.name != '' and thread.name != '' \
            and utid in (select utid from perf_sample)",
    ];
    let verdict = judge::load(folder.join(trace), &sql);
    verdict.require_clean();
    let [samples, with_stack, cut, threads] = numbers(&verdict, 1)[..] else { panic!() };
    let count = |at: usize| verdict.results[at].single_i64();
    let (seventy, thirty, chain, rooted) = (count(2), count(3), count(4), count(5));
    assert!(samples > 1_000, "2 s of CPU time at 1499 Hz gave {samples} samples");
    assert_eq!((with_stack, threads), (samples, 1));
    assert!(said.contains(" samples"), "{said}");
    assert!(cut * 50 <= samples && rooted * 50 >= samples * 49, "{cut} of {samples} without their root");
    let share = |part: i64| part as f64 * 100.0 / (seventy + thirty) as f64;
    assert!((share(seventy) - 70.0).abs() <= 3.0, "{seventy} : {thirty}");
    if let Some(perfs) = share_by_perf(folder, program) {
        assert!((share(seventy) - perfs).abs() <= 3.0, "{seventy} : {thirty}, and {perfs} % by perf");
    }
    assert!((seventy + thirty) * 50 >= samples * 49, "{seventy} + {thirty} of {samples}");
    assert!(chain * 50 >= seventy * 49, "{chain} of {seventy} in the loop, with these lines");
    assert_eq!(count(6), 1, "the thread and its process have names");
}

/// The percentage of `seventy` in the samples of `perf record`. `None`, with the reason on stderr, where perf
/// is not installed or takes none.
fn share_by_perf(folder: &Path, program: &str) -> Option<f64> {
    let perf = |arguments: &[&str]| {
        let output = as_user(folder, "perf", arguments).map_err(|e| e.to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(said)
        }
    };
    let record = ["record", "-q", "-e", "cpu-clock:u", "-F", "1499", "-o", "perf.data", "--", program];
    let script = ["script", "-i", "perf.data", "-F", "ip,sym"];
    match perf(&record).and_then(|_| perf(&script)) {
        Ok(samples) => {
            let count =
                |function: &str| samples.lines().filter(|line| line.contains(function)).count() as f64;
            let (seventy, thirty) = (count("seventy"), count("thirty"));
            assert!(seventy + thirty > 1_000.0, "perf's samples:\n{samples:.500}");
            Some(seventy * 100.0 / (seventy + thirty))
        }
        Err(e) => {
            eprintln!("not compared with perf: {e}");
            None
        }
    }
}

/// The first row of a result.
pub(crate) fn numbers(verdict: &judge::Verdict, at: usize) -> Vec<i64> {
    verdict.results[at].rows[0].iter().map(|cell| cell.as_i64().expect("a number")).collect()
}

#[test]
fn shares_names_inlined_functions_and_lines_are_right_without_frame_pointers() {
    let folder = tempfile::tempdir().expect("a folder");
    require_true_samples(folder.path(), &burn(folder.path(), &["-Cforce-frame-pointers=no"]));
}

#[test]
fn shares_names_inlined_functions_and_lines_are_right_with_frame_pointers() {
    let folder = tempfile::tempdir().expect("a folder");
    require_true_samples(folder.path(), &burn(folder.path(), &["-Cforce-frame-pointers=yes"]));
}

#[test]
fn shares_names_inlined_functions_and_lines_are_right_in_a_shared_library() {
    let folder = tempfile::tempdir().expect("a folder");
    require_true_samples(folder.path(), &caller(folder.path()));
}

/// Whether this process may lock 2 MiB for each processor.
fn may_lock_large_rings() -> bool {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: writes one `rlimit`.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) }, 0);
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
    limit.rlim_cur >= cpus * (2 << 20)
}

#[test]
fn a_deep_stack_keeps_its_root_where_the_rings_may_be_large() {
    let _one = crate::ONE.lock();
    if !may_lock_large_rings() {
        eprintln!("ulimit -l is below 2 MiB for each processor: not tested");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = burn(folder.path(), &[]);
    let program = program.to_str().expect("UTF-8");
    for format in FORMATS {
        let trace = format!("out.{}", extension(format));
        let arguments = ["record", "--sample", "-o", &trace, "--", program, "deep"];
        let output = hairline(folder.path(), &arguments);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        if !is_permitted(&output) {
            return;
        }
        let rooted = "select count(*) from stacks where stack glob '*burn:*deep:*_start:*'";
        let verdict =
            judge::load(folder.path().join(&trace), &[STACKS, "select count(*) from perf_sample", rooted]);
        verdict.require_clean();
        let (samples, rooted) = (verdict.results[1].single_i64(), verdict.results[2].single_i64());
        assert!(samples > 200, "0.4 s of CPU time at 997 Hz gave {samples} samples");
        assert!(rooted * 50 >= samples * 49, "{rooted} of {samples} have their root");
    }
}

#[test]
fn samples_are_in_one_trace_with_the_events_of_other_processes() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    let program = burn(folder.path(), &[]);
    for format in FORMATS {
        let trace = format!("out.{}", extension(format));
        let both = format!("{} parent 2 0 && {}", env!("CARGO_BIN_EXE_family"), program.display());
        let output = hairline(folder.path(), &["record", "--sample", "-o", &trace, "--", "sh", "-c", &both]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        if !is_permitted(&output) {
            return;
        }
        let sql = [
            "select count(*) from perf_sample join thread using (utid) join process p using (upid) where p.name = 'burn'",
            "select count(*) from slice where name = 'step'",
            // Whoever has slices has one thread, samples or not.
            "select count(*) - count(distinct tid) from thread where tid != 0",
        ];
        let verdict = judge::load(folder.path().join(&trace), &sql);
        verdict.require_clean();
        assert!(verdict.results[0].single_i64() > 1_000, "{format:?}: {:?}", verdict.results[0]);
        assert_eq!(verdict.results[1].single_i64(), 400, "{format:?}");
        assert_eq!(verdict.results[2].single_i64(), 0, "{format:?}: no thread is there twice");
    }
}

#[test]
fn a_program_that_replaces_another_one_at_its_path_has_its_own_functions() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    // Their functions have other addresses.
    std::fs::rename(burn(folder.path(), &["-Copt-level=1"]), folder.path().join("one")).expect("renamed");
    std::fs::rename(burn(folder.path(), &["-Copt-level=3"]), folder.path().join("two")).expect("renamed");
    for (way, replace) in [("anew", "rm prog; cp two prog"), ("in place", "cat two > prog")] {
        let script = format!("cp one prog; ./prog; {replace}; ./prog; rm prog");
        let output =
            hairline(folder.path(), &["record", "--sample", "-o", "t.fxt", "--", "sh", "-c", &script]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        if !is_permitted(&output) {
            return;
        }
        let programs = "select count(distinct m.build_id) from stack_profile_frame f \
            join stack_profile_mapping m on m.id = f.mapping where m.name glob '*/prog'";
        let verdict = judge::load(folder.path().join("t.fxt"), &[programs]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].single_i64(), 2, "{way}");
    }
}

#[test]
fn the_exit_code_and_a_missing_command_are_the_same_with_samples() {
    let folder = tempfile::tempdir().expect("a folder");
    let code = |arguments: &[&str]| {
        let all = [&["record", "--sample", "--"], arguments].concat();
        hairline(folder.path(), &all).status.code()
    };
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["./does-not-exist"]), Some(127));
    assert_eq!(code(&["/"]), Some(126));
}
