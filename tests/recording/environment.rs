//! Recording that the environment asks for, in a program without session code.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hairline_tests::judge;

mod own_sessions;
mod panicking;
mod settings;

struct Run {
    output: Output,
    _directory: tempfile::TempDir,
    directory: PathBuf,
}

impl Run {
    fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// What Hairline said; a panic's own words left out.
    fn stderr(&self) -> Vec<String> {
        let all = String::from_utf8_lossy(&self.output.stderr).into_owned();
        all.lines().filter(|l| l.starts_with("hairline: ")).map(str::to_owned).collect()
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.directory).expect("a directory").flatten();
        let mut names: Vec<_> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// Runs the program without session code in a directory of its own, which `{}` stands for in the variables.
fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    run_program(env!("CARGO_BIN_EXE_victim"), arguments, variables)
}

fn run_program(program: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Run {
    let temporary = tempfile::tempdir().expect("a directory");
    let directory = temporary.path().to_owned();
    let mut command = Command::new(program);
    command.current_dir(&directory).args(arguments).env_remove("HAIRLINE");
    for (name, value) in variables {
        command.env(name, value.replace("{}", &directory.to_string_lossy()));
    }
    Run { output: command.output().expect("it ran"), _directory: temporary, directory }
}

fn work_of_both_threads(trace: &Path) {
    let verdict = judge::load(
        trace,
        &[
            "select t.name, count(*), min(dur) >= 0, s.category from slice s join thread_track tt on s.track_id = tt.id \
           join thread t using (utid) where s.name = 'work' group by t.name order by t.name",
        ],
    );
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "main\t10\t1\tvictim\nother\t10\t1\tvictim", "{}", trace.display());
}

#[test]
fn the_trace_is_complete_however_the_program_ends() {
    for extension in ["fxt", "pftrace"] {
        for (way, code) in [("return", 0), ("exit", 7), ("panic", 101), ("thread-panic", 0)] {
            let run = run(&[way], &[("HAIRLINE", &format!("{{}}/trace.{extension}"))]);
            assert_eq!((run.stdout().as_str(), run.output.status.code()), ("done\n", Some(code)), "{way}");
            assert_eq!(run.stderr(), [""; 0], "{way}");
            work_of_both_threads(&run.path(&format!("trace.{extension}")));
        }
    }
}

#[test]
fn a_program_that_is_not_asked_to_writes_nothing() {
    let run = run(&["return"], &[]);
    assert_eq!((run.stdout().as_str(), run.output.status.code()), ("done\n", Some(0)));
    assert!(run.files().is_empty() && run.output.stderr.is_empty());
}

#[test]
fn the_path_may_name_the_process_and_info_tells_start_and_end() {
    let run = run(&["return"], &[("HAIRLINE", "%e-%p.fxt"), ("HAIRLINE_LOG", "info")]);
    let files = run.files();
    assert_eq!(files.len(), 1);
    let pid = files[0].strip_prefix("victim-").and_then(|f| f.strip_suffix(".fxt")).expect("its name");
    assert!(pid.parse::<u32>().is_ok(), "{pid}");
    work_of_both_threads(&run.path(&files[0]));
    let said = run.stderr();
    assert!(
        said.len() >= 2 && said[1].contains("40 records") && said[1].contains("0 events lost"),
        "{said:?}"
    );
}

#[test]
fn settings_in_the_environment_are_heeded() {
    let settings = [
        ("HAIRLINE", "{}/t.pftrace"),
        ("HAIRLINE_CATEGORIES", "*,-victim"),
        ("HAIRLINE_BUFFER", "256K"),
        ("HAIRLINE_OVERFLOW", "drop"),
        ("HAIRLINE_CLOCK", "system"),
        ("HAIRLINE_COUNTERS", "threads@100"),
    ];
    let run = run(&["return"], &settings);
    assert!(run.stderr().len() == 1 && run.stderr()[0].contains("match nothing"), "{:?}", run.stderr());
    let counters = "select distinct name from process_counter_track";
    let verdict = judge::load(run.path("t.pftrace"), &["select count(*) from slice", counters]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].single_i64(), 0);
    assert_eq!(verdict.results[1].text(), "process: threads");
}

#[test]
fn a_value_that_makes_no_sense_is_one_line_and_an_untraced_run() {
    let good = ("HAIRLINE", "{}/t.fxt");
    let cases: [&[(&str, &str)]; 15] = [
        &[("HAIRLINE", "/nowhere/at/all.fxt")],
        &[("HAIRLINE", "{}/trace.txt")],
        &[("HAIRLINE", "{}/trace")],
        &[good, ("HAIRLINE_CATEGORIES", "a,,b")],
        &[good, ("HAIRLINE_BUFFER", "plenty")],
        &[good, ("HAIRLINE_BUFFER", "1")],
        &[good, ("HAIRLINE_BUFFER", "100T")],
        &[good, ("HAIRLINE_MAX_FILE_SIZE", "much")],
        &[good, ("HAIRLINE_MAX_FILE_SIZE", "1K")],
        &[good, ("HAIRLINE_ROTATE", "1K,5")],
        &[good, ("HAIRLINE_TRIGGER", "slow:no-slash:1s")],
        &[good, ("HAIRLINE_OVERFLOW", "explode")],
        &[good, ("HAIRLINE_CLOCK", "sundial")],
        &[good, ("HAIRLINE_COUNTERS", "rss,memory")],
        &[good, ("HAIRLINE_LOG", "shout")],
    ];
    for case in cases {
        let run = run(&["exit"], case);
        assert_eq!((run.stdout().as_str(), run.output.status.code()), ("done\n", Some(7)), "{case:?}");
        assert_eq!(run.stderr().len(), 1, "{case:?}: {:?}", run.stderr());
        assert!(run.files().is_empty(), "{case:?}: {:?}", run.files());
        let (variable, value) = case[case.len() - 1];
        let named = run.stderr()[0].contains(variable) || value.starts_with("/nowhere");
        assert!(named, "{case:?}: {:?}", run.stderr());
    }
    let small = run(&["exit"], &[good, ("HAIRLINE_BUFFER", "1K")]);
    assert!(small.stderr()[0].contains("at least 64K"), "{:?}", small.stderr());
    let quiet = run(&["exit"], &[("HAIRLINE", "{}/trace.txt"), ("HAIRLINE_LOG", "off")]);
    assert_eq!(quiet.stderr(), [""; 0]);
}

#[test]
fn a_forked_child_is_silent_and_its_parents_trace_unharmed() {
    for extension in ["fxt", "pftrace"] {
        let trace = format!("t.{extension}");
        let run = run(&["fork"], &[("HAIRLINE", &format!("{{}}/{trace}")), ("HAIRLINE_BUFFER", "64M")]);
        assert_eq!(
            (run.stdout().as_str(), run.output.status.code()),
            ("done\n", Some(0)),
            "{:?}",
            run.output
        );
        assert_eq!(run.files(), std::slice::from_ref(&trace));
        let path = run.path(&trace);
        work_of_both_threads(&path);
        let sql = "select sum(name = 'busy'), sum(name = 'of the child'), min(dur) >= 0 from slice";
        assert_eq!(judge::load(&path, &[sql]).results[0].text(), "200000\t0\t1", "{extension}");
    }
}
