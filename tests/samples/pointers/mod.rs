//! `SessionBuilder::frame_pointers`: threads record the addresses of their chain of frame pointers, in a
//! program that has them, and one that has not is told so.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use hairline::recovery::{self, RecoverOptions};
use hairline::{Format, MemoryOutput, Session};
use hairline_tests::judge::{self, Verdict};
use hairline_tests::recording::{FORMATS, extension};
use hairline_tests::regions::region_of;

use crate::burn::burn;
use crate::programs::BURN;
use crate::record::{STACKS, numbers};

/// Builds the program with frame pointers, or without, in a folder that the next run of the tests finds
/// again.
fn program(has_pointers: bool) -> &'static Path {
    static BUILT: [OnceLock<PathBuf>; 2] = [const { OnceLock::new() }; 2];
    BUILT[usize::from(has_pointers)].get_or_init(|| {
        let name = if has_pointers { "with_pointers" } else { "without_pointers" };
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        let sdk = tests.parent().expect("the workspace").join("sdk");
        std::fs::create_dir_all(folder.join("src")).expect("a folder");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nedition = \"2024\"\n[workspace]\n\
             [dependencies]\nhairline = {{ path = {sdk:?}, features = [\"sampling\"] }}\n\
             [profile.dev]\nopt-level = 1\ndebug = \"line-tables-only\"\n"
        );
        std::fs::write(folder.join("Cargo.toml"), manifest).expect("a file");
        std::fs::copy(BURN, folder.join("src/burn.rs")).expect("a file");
        std::fs::copy(tests.join("samples/pointers/program.rs"), folder.join("src/main.rs")).expect("a file");
        std::fs::copy(tests.join("../Cargo.lock"), folder.join("Cargo.lock")).expect("a file");
        let flags = if has_pointers { "-Cforce-frame-pointers=yes" } else { "-Cforce-frame-pointers=no" };
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--offline", "--target-dir", "target"])
            .env("RUSTFLAGS", flags)
            .current_dir(&folder)
            .output()
            .expect("cargo");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        folder.join("target/debug").join(name)
    })
}

/// The settings of all that threads record of their own stacks.
const SETTINGS: [(&str, &str); 4] = [
    ("HAIRLINE_SAMPLE", "signals:997"),
    ("HAIRLINE_STACKS", "db"),
    ("HAIRLINE_HEAP", "64K"),
    ("HAIRLINE_TRIGGER", "slow:net/request:20ms,stack"),
];

fn command(has_pointers: bool, trace: &Path) -> Command {
    let mut command = Command::new(program(has_pointers));
    command.env("HAIRLINE", trace).envs(SETTINGS).env("HAIRLINE_FRAME_POINTERS", "on");
    command
}

fn run(has_pointers: bool, trace: &Path, rounds: &str, more: &[(&str, &str)]) -> Output {
    let output =
        command(has_pointers, trace).arg(rounds).envs(more.iter().copied()).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    output
}

/// Whether there are callers missing: in samples of CPU time, and in the stacks of events.
const CUT: &str = "select count(*), sum(unwind_error is not null) from perf_sample";

/// The samples of both functions, those with all callers, those whose root is that of a thread; the same of
/// the events and of slow slices; the bytes that are live; stacks below the C library.
fn questions() -> [String; 6] {
    let of = |what: &str| format!("coalesce(sum({what}), 0)");
    let chain = "(stack glob '*spend:* *seventy:* *burn:*' or stack glob '*spend:* *thirty:* *burn:*')";
    let root = "(stack glob '* *_start:* ' or stack glob '*clone*:* ')";
    let asked = "stack glob '* *asks:* *serves:* *main:*'";
    let slow = "stack glob '*sleep* *is_slow:* *main:*'";
    [
        STACKS.to_owned(),
        CUT.to_owned(),
        format!(
            "select {}, {}, {}, {} from stacks",
            of("stack glob '*seventy:*'"),
            of("stack glob '*thirty:*'"),
            of(chain),
            of(root)
        ),
        format!("select {}, {}, {} from stacks", of("stack glob '*asks:*'"), of(asked), of(slow)),
        "with recursive up(size, at) as (select size, callsite_id from heap_profile_allocation where size > 0 \
           union all select size, parent_id from up join stack_profile_callsite c on c.id = at \
           where parent_id is not null) \
         select coalesce(sum(size), 0) from up join stack_profile_callsite c on c.id = at \
           join stack_profile_frame f on f.id = c.frame_id join stack_profile_symbol s using (symbol_set_id) \
           where s.name glob '*keeps'"
            .to_owned(),
        // Below a function without a frame pointer the callers are there, or are known to be missing.
        "select count(*), coalesce(sum(stack glob '*compares:*sorts:*' or unwind_error is not null), 0) \
           from stacks join perf_sample p on p.id = sample where stack glob '*burn:*compares:*'"
            .to_owned(),
    ]
}

fn ask(trace: &Path) -> Verdict {
    let questions = questions();
    let verdict = judge::load(trace, &questions.each_ref().map(String::as_str));
    verdict.require_clean();
    verdict
}

fn share(seventy: i64, thirty: i64) -> f64 {
    seventy as f64 * 100.0 / (seventy + thirty) as f64
}

#[test]
fn stacks_of_frame_pointers_have_the_shares_the_callers_and_the_root() {
    let _one = crate::ONE.lock();
    for format in FORMATS {
        // On a busy machine it can be the other function that runs at each tick of the kernel.
        let near = (0..3).any(|_| (require_true_stacks(format) - 70.0).abs() <= 3.0);
        assert!(near, "{format:?}: the shares are not 70 and 30 %");
    }
}

/// Runs the program and requires that its stacks tell the truth. Returns the percentage of `seventy`.
fn require_true_stacks(format: Format) -> f64 {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join(format!("t.{}", extension(format)));
    let output = run(true, &trace, "200", &[]);
    assert!(!String::from_utf8_lossy(&output.stderr).contains("frame pointers"), "{output:?}");
    let verdict = ask(&trace);
    let [all, cut] = numbers(&verdict, 1)[..] else { panic!() };
    let [seventy, thirty, chain, rooted] = numbers(&verdict, 2)[..] else { panic!() };
    let [asks, asked, slow] = numbers(&verdict, 3)[..] else { panic!() };
    let [below, true_ones] = numbers(&verdict, 5)[..] else { panic!() };
    let (of_both, what) = (seventy + thirty, format!("{format:?}, {all} samples"));
    assert!(of_both > 600 && (share(seventy, thirty) - 70.0).abs() <= 8.0, "{what}: {seventy} : {thirty}");
    assert!(chain * 50 >= of_both * 49, "{what}: {chain} of {of_both} have the callers");
    assert!(cut * 10 <= all && rooted * 20 >= all * 19, "{what}: {cut} cut, {rooted} rooted");
    // A sample of CPU time may be in the same function.
    assert!(asks == asked && (200..210).contains(&asks), "{what}: {asked} of {asks} events have callers");
    assert!(below > 10 && true_ones == below, "{what}: {true_ones} of {below} below the C library");
    assert!(slow >= 4, "{what}: {slow} of slow slices, at the limit and at the end");
    let kept = verdict.results[4].single_i64() as f64;
    assert!((kept / 20e6 - 1.0).abs() < 0.25, "{what}: {kept} bytes are kept, of 20 million");
    share(seventy, thirty)
}

#[test]
fn a_sleeping_thread_has_a_stack_of_frame_pointers_by_the_clock() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        let trace = folder.path().join(format!("t.{}", extension(format)));
        run(true, &trace, "60", &[("HAIRLINE_SAMPLE", "wall:99:sleeper")]);
        let sql = [
            STACKS,
            "select count(*), sum(stack glob '* *sleeps:* *clone*:* ') from stacks \
                            where stack glob '*sleep*' and stack not glob '*is_slow*'",
        ];
        let verdict = judge::load(&trace, &sql);
        verdict.require_clean();
        let [all, whole] = numbers(&verdict, 1)[..] else { panic!() };
        assert!(all > 30 && whole * 20 >= all * 19, "{format:?}: {whole} of {all}");
    }
}

#[test]
fn recovery_has_the_stacks_of_frame_pointers_of_a_killed_process() {
    let _one = crate::ONE.lock();
    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        for settings in [&[][..], &[("HAIRLINE_OVERFLOW", "overwrite"), ("HAIRLINE_BUFFER", "1M")]] {
            let trace = folder.path().join(format!("t{}.{}", settings.len(), extension(format)));
            let mut command = command(true, &trace);
            command.envs(settings.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::null());
            let mut child = command.spawn().expect("it runs");
            let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
            let last = lines.map_while(Result::ok).nth(100).expect("it goes on");
            child.kill().expect("it runs");
            child.wait().expect("it ended");
            let recovered = recovery::recover(&region_of(&trace), &RecoverOptions::new()).expect("a trace");
            let verdict = ask(&recovered.path.expect("a path"));
            let [all, cut] = numbers(&verdict, 1)[..] else { panic!() };
            let [seventy, thirty, chain, rooted] = numbers(&verdict, 2)[..] else { panic!() };
            let what = format!(
                "{format:?}, {settings:?}, {last}: {all}, {cut}, {seventy}, {thirty}, {chain}, {rooted}"
            );
            assert!(seventy + thirty > 200 && (share(seventy, thirty) - 70.0).abs() <= 8.0, "{what}");
            assert!(
                chain * 50 >= (seventy + thirty) * 49 && cut * 10 <= all && rooted * 20 >= all * 19,
                "{what}"
            );
        }
    }
}

#[test]
fn a_program_without_frame_pointers_is_recorded_and_told_that_callers_are_missing() {
    let _one = crate::ONE.lock();
    const SAID: &str = "lack callers, because functions without frame pointers are in them";
    let folder = tempfile::tempdir().expect("a folder");
    for format in FORMATS {
        let trace = folder.path().join(format!("t.{}", extension(format)));
        let output = run(false, &trace, "100", &[]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(SAID) && said.contains("-C force-frame-pointers=yes"), "{said}");
        let verdict = ask(&trace);
        let [all, cut] = numbers(&verdict, 1)[..] else { panic!() };
        let [seventy, thirty, ..] = numbers(&verdict, 2)[..] else { panic!() };
        assert!(seventy + thirty > 300, "{seventy} and {thirty} of {all}: the innermost frame needs none");
        assert!(cut * 3 > all, "{format:?}: {cut} of {all} are known to lack callers");
        // The same program without the option has all of them, and no such note.
        let output = run(false, &trace, "50", &[("HAIRLINE_FRAME_POINTERS", "off")]);
        assert!(!String::from_utf8_lossy(&output.stderr).contains(SAID), "{output:?}");
        let verdict = ask(&trace);
        let [all, cut] = numbers(&verdict, 1)[..] else { panic!() };
        assert!(cut * 50 <= all, "{format:?}: {cut} of {all}");
    }
}

#[test]
fn the_kernels_samples_are_said_to_follow_no_frame_pointers() {
    let _one = crate::ONE.lock();
    let memory = MemoryOutput::new();
    let session = Session::builder().output_memory(&memory).sampling(997).frame_pointers(true).start();
    let session = session.expect("it starts");
    burn(1);
    let notes = session.stop().expect("it stops").notes;
    let by_signals = notes.iter().any(|note| note.contains("taken by signals"));
    let is_said = notes.iter().any(|note| note.contains("the kernel's samples do not follow frame pointers"));
    assert!(by_signals != is_said, "{notes:?}");
}
