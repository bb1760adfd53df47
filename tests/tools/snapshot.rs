//! `hairline snapshot`

use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::{Traced, hairline, run, stderr};

/// Each thread: its outer slice, and whether no step is missing between its first and its last. One that did
/// not run while the others filled the ring has none.
const THREADS: &str = "select t.name, sum(s.name = 'outer'), ifnull(max(a.int_value) - min(a.int_value) + 1, 0) = sum(s.name = 'step'), \
    sum(s.name is null) from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) \
    left join args a on s.arg_set_id = a.arg_set_id and s.name = 'step' group by 1 order by 1";

#[test]
fn what_four_threads_record_at_full_speed_is_whole_in_each_snapshot() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let extension = extension(format);
        let never = folder.path().join(format!("never.{extension}"));
        let ring = [("HAIRLINE_OVERFLOW", "overwrite"), ("HAIRLINE_BUFFER", "8M")];
        let program = Traced::start(&["busy", "4"], &never, &ring);
        let pid = program.pid();
        for n in 0..4 {
            let path = format!("snapshot-{n}.{extension}");
            let output = run(hairline(folder.path()).args(["snapshot", &pid, "-o", &path]));
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let missed =
                String::from_utf8_lossy(&output.stdout).contains("was overwritten while it was read");
            let verdict = judge::load(folder.path().join(&path), &[THREADS]);
            verdict.require_clean();
            let threads = verdict.results[0].text();
            let whole: Vec<&str> = threads.lines().collect();
            assert!(whole.len() == 4 || missed, "{format:?}: {threads}");
            assert!(whole.iter().all(|thread| thread.ends_with("\t1\t1\t0")), "{format:?}: {threads}");
        }
    }
}

#[test]
fn of_a_session_with_an_output_it_is_all_of_it_so_far() {
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join(format!("out.{}", extension(format)));
        let program = Traced::start(&["child", "0", "stay"], &out, &[]);
        let pid = program.pid();
        let output = run(hairline(folder.path()).args(["snapshot", &pid]));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let path = folder.path().join(format!("snapshot-{pid}.{}", extension(format)));
        let verdict =
            judge::load(path, &["select name, count(*), min(dur) >= 0 from slice group by 1 order by 1"]);
        verdict.require_clean();
        assert_eq!(verdict.results[0].text(), "life\t2\t1\nstep\t200\t1", "{format:?}");
    }
}

#[test]
fn neither_the_output_of_the_process_nor_a_folder_is_replaced_by_a_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("folder")).expect("made");
    std::os::unix::fs::symlink("out.fxt", folder.path().join("link")).expect("a link");
    let mut program = Traced::start(&["child", "0", "stay"], &folder.path().join("out.fxt"), &[]);
    let pid = program.pid();
    for path in ["out.fxt", "link", "folder", "no/folder.fxt"] {
        let output = run(hairline(folder.path()).args(["snapshot", &pid, "-o", path]));
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{path}: {said}");
        assert!(said.starts_with(&format!("hairline: {path}: ")), "{said}");
    }
    assert_eq!(crate::files(folder.path()), ["folder", "link", "out.fxt"]);
    program.kill();
    let recovered = run(hairline(folder.path()).args(["recover", &pid]));
    assert_eq!(recovered.status.code(), Some(0), "{}", stderr(&recovered));
    judge::load(folder.path().join("out.fxt"), &["select 1"]).require_clean();
}

#[test]
fn a_process_that_is_not_traced_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(hairline(folder.path()).args(["snapshot", &std::process::id().to_string()]));
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(3), 1), "{}", stderr(&output));
    std::fs::write(folder.path().join("garbage"), [7; 100_000]).expect("written");
    let output = run(hairline(folder.path()).args(["snapshot", "./garbage", "-o", "out.fxt"]));
    assert_eq!((output.status.code(), stderr(&output).lines().count()), (Some(1), 1), "{}", stderr(&output));
    assert_eq!(crate::files(folder.path()), ["garbage"]);
}

#[test]
fn a_line_break_in_a_path_makes_no_row_and_no_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t\n4294967290 dead  4.0 MiB  false\u{1b}[2J.fxt");
    let traced = Traced::start(&["child", "0", "stay"], &trace, &[]);
    let listed = run(hairline(folder.path()).arg("ls"));
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(text.contains("false"), "{text}");
    // Other tests have processes too.
    let has_row = text.lines().any(|line| line.trim_start().starts_with("4294967290"));
    assert!(!has_row && !text.contains('\u{1b}'), "{text}");
    let output = run(hairline(folder.path()).args(["snapshot", &traced.pid(), "-o"]).arg(&trace));
    let taken = [&output.stdout[..], &output.stderr].concat();
    assert_eq!(String::from_utf8_lossy(&taken).lines().count(), 1, "{output:?}");
}
