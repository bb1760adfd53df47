//! The heap profile of an output in several files: each has the whole of it at its end.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hairline::{Format, HeapProfile, Session, trace_instant};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension, turn};

use crate::{ALLOCATIONS, EVERY, Pace, Sums, ask_file, drops, keeps, question, sums};

const BLOCK: usize = 100_000;

/// Records events until the output has its `n`th finished file, with its profile.
fn fill(session: &Session, folder: &Path, format: Format, n: usize) {
    let path = folder.join(format!("t.{n}.{}", extension(format)));
    let until = Instant::now() + Duration::from_secs(60);
    while !path.exists() {
        assert!(Instant::now() < until, "not enough files");
        for n in 0..200 {
            trace_instant!("heap", "filler", n);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    session.flush().expect("flushed");
}

/// The files, in their order.
fn files(folder: &Path, format: Format) -> Vec<PathBuf> {
    let path = |n: usize| folder.join(format!("t.{n}.{}", extension(format)));
    let last = folder.join(format!("t.{}", extension(format)));
    (1..).map(path).take_while(|path| path.exists()).chain([last]).collect()
}

fn check(format: Format, compress: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let output = folder.join(format!("t.{}", extension(format)));
    let builder = Session::builder().output(&output).rotate(64 << 10, 0).compress(compress);
    let session = builder.heap_profile(HeapProfile::new().every(EVERY)).start().expect("a session");
    let mut kept = Vec::with_capacity(100);
    let mut ended_before = Vec::new(); // by round: the files that had ended after it
    for round in 1..=4 {
        keeps(Pace::of(&session), &mut kept, 20, BLOCK);
        drops(Pace::of(&session), 10, BLOCK);
        session.flush().expect("flushed");
        ended_before.push(files(folder, format).len() - 1);
        fill(&session, folder, format, 3 * round);
    }
    kept.truncate(5);
    let summary = session.stop().expect("a stopped session");
    assert!(summary.notes.iter().all(|note| !note.contains("heap")), "{:?}", summary.notes);
    let files = files(folder, format);
    assert!(files.len() > 12, "{} files", files.len());
    let mut before = Sums::default();
    for (number, path) in (1..).zip(&files) {
        let [keeps, drops] = ask_file(path, ["keeps", "drops"]);
        // At least those of the rounds that were over when it ended.
        let rounds = ended_before.iter().filter(|ended| **ended < number).count() as f64;
        let is_last = number == files.len();
        assert!(keeps.blocks >= 20.0 * rounds && keeps.blocks >= before.blocks, "{path:?}: {keeps:?}");
        assert_eq!(keeps.live_blocks, if is_last { 5.0 } else { keeps.blocks }, "{format:?} {path:?}");
        assert_eq!(keeps.live, keeps.live_blocks * BLOCK as f64, "{format:?} {path:?}");
        assert!(drops.live == 0.0 && drops.blocks >= 10.0 * rounds, "{format:?} {path:?}: {drops:?}");
        before = keeps;
    }
    assert_eq!(before.blocks, 80.0, "{format:?}");
    // What the session's own threads allocate, to look functions up, is not the program's.
    let live = judge::load(&output, &["select sum(size) from heap_profile_allocation"]);
    assert!(live.results[0].text().parse::<f64>().expect("a number") < 1e6, "{format:?}");
}

#[test]
fn each_file_has_the_whole_profile_at_its_end_with_functions() {
    let _turn = turn();
    FORMATS.into_iter().for_each(|format| check(format, false));
    check(Format::TrackEvent, true);
}

#[test]
fn a_peak_is_in_the_file_of_its_time() {
    let _turn = turn();
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let output = folder.join(format!("t.{}", extension(format)));
        let builder = Session::builder().output(&output).rotate(64 << 10, 0);
        let profile = HeapProfile::new().every(EVERY).at_peaks(4 << 20);
        let session = builder.heap_profile(profile).start().expect("a session");
        fill(&session, folder, format, 2);
        let mut kept = Vec::with_capacity(50);
        keeps(Pace::of(&session), &mut kept, 50, BLOCK);
        session.flush().expect("flushed");
        kept.clear();
        session.flush().expect("flushed");
        fill(&session, folder, format, 6);
        session.stop().expect("a stopped session");
        let mut with_peak = 0;
        let files = files(folder, format);
        for path in &files {
            let (first, all) = (question("keeps", Some(1)), question("keeps", None));
            let dumps = "select count(distinct ts) from heap_profile_allocation";
            let verdict = judge::load(path, &[ALLOCATIONS, &first, &all, dumps]);
            verdict.require_clean();
            assert_eq!(sums(&verdict, 2).live, 0.0, "{format:?} {path:?}: nothing is live at its end");
            with_peak += u32::from(sums(&verdict, 1).live >= f64::from(4 << 20));
        }
        assert_eq!(with_peak, 1, "{format:?}: of {} files", files.len());
    }
}

/// A burst ends more files in a pass of the session's thread than can wait for their profile.
#[test]
fn files_that_end_too_many_at_a_time_have_their_profile_or_a_note_counts_them() {
    let _turn = turn();
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let output = folder.join(format!("t.{}", extension(format)));
        let builder = Session::builder().output(&output).rotate(64 << 10, 0).buffer_size(32 << 20);
        let session = builder.heap_profile(HeapProfile::new().every(EVERY)).start().expect("a session");
        let mut kept = Vec::with_capacity(50);
        keeps(Pace::of(&session), &mut kept, 50, BLOCK);
        session.flush().expect("flushed");
        for n in 0..300_000 {
            trace_instant!("heap", "filler", n);
        }
        let summary = session.stop().expect("a stopped session");
        drop(kept);
        let count = |what: &str| {
            let note = summary.notes.iter().find(|note| note.contains(what));
            note.map_or(0, |note| note.split(' ').find_map(|word| word.parse().ok()).expect("a number"))
        };
        let (without_profile, without_functions) = (count("no heap profile"), count("no functions"));
        let files = files(folder, format);
        assert!(files.len() > 40, "{} files", files.len());
        let (mut empty, mut nameless) = (0, 0);
        for path in &files {
            let keeps = question("keeps", None);
            let rows = "select count(*) from heap_profile_allocation";
            let verdict = judge::load(path, &[ALLOCATIONS, rows, &keeps]);
            verdict.require_clean();
            let is_empty = verdict.results[1].text() == "0";
            empty += usize::from(is_empty);
            nameless += usize::from(!is_empty && sums(&verdict, 2).blocks == 0.0);
        }
        assert_eq!(
            (empty, nameless),
            (without_profile, without_functions),
            "{format:?}: {:?}",
            summary.notes
        );
        assert!(empty > 0, "{format:?}: the thread came soon enough; nothing is shown");
    }
}
