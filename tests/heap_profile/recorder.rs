//! The heap profile of a flight recorder: each snapshot has that of its moment, whole.

use std::path::Path;

use hairline::{Format, HeapProfile, Overflow, Session, Summary};
use hairline_tests::judge;
use hairline_tests::recording::{FORMATS, extension, turn};

use crate::{ALLOCATIONS, EVERY, Pace, Sums, ask_file, drops, keeps, question, require_within, sums};

const BLOCK: usize = 100_000;

fn blocks(live: u32, all: u32) -> Sums {
    let bytes = |blocks: u32| f64::from(blocks) * BLOCK as f64;
    Sums { allocated: bytes(all), blocks: f64::from(all), live: bytes(live), live_blocks: f64::from(live) }
}

/// Records a program with a flight recorder, whose last snapshot is `end` in the folder.
fn record(
    folder: &Path,
    format: Format,
    profile: HeapProfile,
    program: impl FnOnce(&Session, &dyn Fn(&str)),
) -> Summary {
    let path = |name: &str| folder.join(format!("{name}.{}", extension(format)));
    let builder = Session::builder().output(path("end")).overflow(Overflow::Overwrite);
    let session = builder.heap_profile(profile).start().expect("a session");
    program(&session, &|name| drop(session.snapshot(path(name)).expect("a thread of the program writes it")));
    session.stop().expect("a stopped session")
}

#[test]
fn each_snapshot_has_what_is_live_at_its_moment_whole_and_with_functions() {
    let _turn = turn();
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut kept, mut small) = (Vec::with_capacity(100), Vec::with_capacity(100_000));
        let summary = record(folder.path(), format, HeapProfile::new().every(EVERY), |session, snapshot| {
            snapshot("none");
            keeps(Pace::of(session), &mut kept, 50, BLOCK);
            snapshot("first");
            kept.truncate(20);
            drops(Pace::of(session), 100, BLOCK);
            snapshot("second");
            keeps(Pace::of(session), &mut small, 100_000, 80);
        });
        assert!(summary.notes.iter().all(|note| !note.contains("heap")), "{:?}", summary.notes);
        let of = |name: &str| {
            ask_file(&folder.path().join(format!("{name}.{}", extension(format))), ["keeps", "drops"])
        };
        assert_eq!(of("none"), [Sums::default(); 2], "{format:?}");
        assert_eq!(of("first"), [blocks(50, 50), Sums::default()], "{format:?}");
        assert_eq!(of("second"), [blocks(20, 50), blocks(0, 100)], "{format:?}");
        let [keeps, drops] = of("end");
        assert_eq!(drops, blocks(0, 100), "{format:?}");
        require_within(12.0, keeps.live - 2e6, 8e6); // some 2,000 samples
        require_within(12.0, keeps.live_blocks - 20.0, 1e5);
        drop((kept, small));
    }
}

#[test]
fn each_snapshot_has_the_highest_peak_so_far_too() {
    let _turn = turn();
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let profile = HeapProfile::new().every(EVERY).at_peaks(4 << 20);
        let mut kept = Vec::with_capacity(100);
        record(folder.path(), format, profile, |session, snapshot| {
            for (blocks, name) in [(50, "first"), (100, "second")] {
                keeps(Pace::of(session), &mut kept, blocks, BLOCK);
                session.flush().expect("flushed");
                std::thread::sleep(std::time::Duration::from_millis(100)); // the recorder thread has read
                kept.clear();
                snapshot(name);
            }
        });
        for (name, peak) in [("first", 4 << 20..=5_000_000), ("second", 8 << 20..=10_000_000)] {
            let path = folder.path().join(format!("{name}.{}", extension(format)));
            let (at_peak, at_end) = (question("keeps", Some(1)), question("keeps", None));
            let dumps = "select count(distinct ts) from heap_profile_allocation";
            let verdict = judge::load(&path, &[ALLOCATIONS, &at_peak, &at_end, dumps]);
            verdict.require_clean();
            let live = sums(&verdict, 1).live;
            assert!(peak.contains(&(live as u64)), "{format:?} {name}: {live}");
            assert_eq!((sums(&verdict, 2).live, verdict.results[3].single_i64()), (0.0, 2), "{format:?}");
        }
    }
}

#[test]
fn snapshots_from_several_threads_while_the_program_allocates_are_whole() {
    let _turn = turn();
    for format in FORMATS {
        let folder = tempfile::tempdir().expect("a folder");
        let mut kept = Vec::with_capacity(50);
        record(folder.path(), format, HeapProfile::new().every(EVERY), |session, snapshot| {
            keeps(Pace::of(session), &mut kept, 50, BLOCK);
            std::thread::scope(|scope| {
                let path = |name: String| folder.path().join(format!("{name}.{}", extension(format)));
                for thread in 0..3 {
                    scope.spawn(move || {
                        (0..5).for_each(|n| {
                            drop(session.snapshot(path(format!("t{thread}-{n}"))).expect("a snapshot"));
                        });
                    });
                }
                drops(Pace::of(session), 300, BLOCK);
            });
            snapshot("last");
        });
        for thread in 0..3 {
            for n in 0..5 {
                let path = folder.path().join(format!("t{thread}-{n}.{}", extension(format)));
                let [keeps, drops] = ask_file(&path, ["keeps", "drops"]);
                assert_eq!(keeps, blocks(50, 50), "{format:?} {path:?}");
                assert!(drops.live_blocks <= 1.0 && drops.blocks <= 300.0, "{format:?} {path:?}: {drops:?}");
            }
        }
        drop(kept);
    }
}
