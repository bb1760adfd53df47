//! The samples of an output in several files: each has those of its time, with their functions.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hairline::{Format, Session, trace_instant};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension};

use crate::burn::burn;
use crate::record::{STACKS, numbers};
use crate::refused::without_perf;

/// Records until there are ten finished files, of which all are kept, and returns the paths in their order.
fn files(folder: &std::path::Path, format: Format, compress: bool) -> Vec<PathBuf> {
    let path = |n: usize| folder.join(format!("t.{n}.{}", extension(format)));
    let output = folder.join(format!("t.{}", extension(format)));
    let size = 64 << 10;
    let builder = Session::builder().output(&output).rotate(size, 0).sampling(997).compress(compress);
    let session = builder.start().expect("it starts");
    let until = Instant::now() + Duration::from_secs(60);
    while !path(10).exists() {
        assert!(Instant::now() < until, "not enough files");
        burn(3);
        for n in 0..if compress { 4_000 } else { 400 } {
            trace_instant!("samples", "filler", n);
        }
    }
    let summary = session.stop().expect("it stops");
    assert!(!summary.notes.iter().any(|note| note.contains("not recorded")), "{:?}", summary.notes);
    (1..).map(path).take_while(|path| path.exists()).chain([output]).collect()
}

fn check(format: Format, compress: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = files(folder.path(), format, compress);
    let sql = [
        STACKS,
        "select count(*), coalesce(sum(stack not glob '* [?]:*'), 0), \
            coalesce(sum(stack glob '*seventy:*' or stack glob '*thirty:*'), 0) from stacks",
        // A sample that settles while the file ends is in the next one: some ms before its events.
        "select coalesce(min(p.ts), 0), coalesce(max(p.ts), 0), coalesce((select max(ts) from slice), 0) from perf_sample p",
    ];
    let (mut all, mut named, mut burned, mut events_until) = (0, 0, 0, 0);
    for path in &files {
        let verdict = judge::load(path, &sql);
        let [samples, with_names, in_burn] = numbers(&verdict, 1)[..] else { panic!() };
        verdict.require_few_lost_samples(samples);
        let [first, last, event] = numbers(&verdict, 2)[..] else { panic!() };
        let before = if samples > 0 { events_until - first } else { 0 };
        assert!(before < 500_000_000 && first <= last, "{format:?} {path:?}: {before} ns in the file before");
        events_until = events_until.max(event);
        all += samples;
        named += with_names;
        burned += in_burn;
        assert!(samples < 50 || in_burn > 0, "{format:?} {path:?}: no function of the program");
    }
    assert!(files.len() >= 11 && all >= 50, "{format:?}: {all} samples in {} files", files.len());
    // Others are those of the session's own threads.
    assert!(burned * 2 >= all, "{format:?}: {burned} of {all} are of the program");
    assert!(named * 100 >= all * 85, "{format:?}: all frames of {named} of {all} samples have names");
}

#[test]
fn each_file_of_a_rotation_has_the_samples_of_its_time_with_functions() {
    let _one = crate::ONE.lock();
    without_perf(|| {
        FORMATS.into_iter().for_each(|format| check(format, false));
        check(Format::TrackEvent, true);
    });
    FORMATS.into_iter().for_each(|format| check(format, false));
}
