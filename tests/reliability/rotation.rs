//! Outputs of several files: each is a trace of its own, and together they are the whole one.
//!
//! ```text
//! t.1.fxt  |outer ...............................
//!          |  step 0, step 1, ... step n (open)
//! t.2.fxt  |outer ...............................     at its own time, though that is before the file's first record
//!          |  step n, step n+1, ...
//! t.fxt    |outer ........................|           the only one with its end
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use hairline::{
    Error, Flow, Format, Session, SessionBuilder, Track, trace_async, trace_counter, trace_instant,
    trace_scope,
};
use hairline_tests::judge;
use hairline_tests::mortal::files;
use hairline_tests::recording::{FORMATS, extension, turn};

use crate::program::run;

const THREADS: u64 = 3;
const STEPS: u64 = 6000;

/// The size of the ring in bytes.
const RING: u64 = 1 << 20;

/// Records steps on three threads inside of slices that are open from the first to the last, on threads and
/// elsewhere.
fn program(session: &Session) {
    let flow = Flow::new();
    let together = std::sync::Barrier::new(THREADS as usize);
    let track = Track::process().child("a track");
    hairline::trace_begin!("rotation", "on the track", track: &track);
    let interval = trace_async!("rotation", "interval");
    {
        trace_scope!("rotation", "outer of main", flow: &flow, what = "main");
        std::thread::scope(|threads| {
            for thread in 0..THREADS {
                let (flow, together) = (&flow, &together);
                let worker = move || {
                    trace_scope!("rotation", "outer", flow: flow, thread);
                    together.wait();
                    for n in 0..STEPS {
                        trace_scope!("rotation", "step", n, text = "the same text each time");
                        if n % 500 == 0 {
                            trace_scope!("rotation", "of the flow", flow: flow);
                            let name = format!("dynamic {n}");
                            trace_instant!("rotation", "named", name: &name);
                            session.flush().expect("no error");
                        }
                        trace_counter!("rotation", "sum", n as i64, incremental: true);
                    }
                    together.wait();
                };
                std::thread::Builder::new()
                    .name(format!("worker {thread}"))
                    .spawn_scoped(threads, worker)
                    .expect("a thread");
            }
        });
    }
    drop(interval);
    hairline::trace_end!(&track);
}

fn record(
    format: Format,
    configure: impl FnOnce(SessionBuilder) -> SessionBuilder,
) -> (tempfile::TempDir, PathBuf, hairline::Summary) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join(format!("t.{}", extension(format)));
    let builder = Session::builder().output(&path).buffer_size(RING);
    let session = configure(builder).start().expect("a session");
    program(&session);
    let summary = session.stop().expect("no error");
    (directory, path, summary)
}

const SQL: [&str; 6] = [
    // Which step, of which thread, and whether it has its end here.
    "select t.name, (select int_value from args a where a.arg_set_id = s.arg_set_id and a.key like '%n'), dur >= 0, \
     (select string_value from args a where a.arg_set_id = s.arg_set_id and a.key like '%text') \
     from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) where s.name = 'step'",
    "select ts, dur >= 0 from slice where name in ('outer', 'outer of main') order by ts",
    "select s.ts, dur >= 0, s.name from slice s where name in ('on the track', 'interval') order by s.name",
    "select count(*) from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid) \
     where s.name = 'outer' and t.name like 'worker %' and t.is_main_thread is not 1",
    "select max(value) from counter c join track t on c.track_id = t.id where t.name like 'sum%'",
    "select count(*) from flow",
];

/// Otherwise tools took one file for a new version of another.
#[test]
fn each_file_has_a_uuid_of_its_own() {
    for format in FORMATS {
        let _turn = turn();
        let (_directory, path, _) = record(format, |builder| builder.rotate(128 << 10, 0));
        let files = files(&path);
        let uuids: Vec<String> = files
            .iter()
            .map(|file| {
                let uuid = "select str_value from metadata where name = 'trace_uuid'";
                let verdict = judge::load(file, &[uuid]);
                verdict.require_clean();
                verdict.results[0].text()
            })
            .collect();
        let distinct: std::collections::HashSet<&str> = uuids.iter().map(|uuid| uuid.trim()).collect();
        assert!(files.len() > 3 && distinct.len() == files.len(), "{uuids:?}");
        assert!(uuids.iter().all(|uuid| uuid.trim().len() == 36), "{uuids:?}");
    }
}

#[test]
fn each_file_is_a_trace_of_its_own_and_every_record_is_in_one() {
    for format in FORMATS {
        for compress in [false, true] {
            let _turn = turn();
            let compress = compress && format == Format::TrackEvent; // FXT is not compressed
            let size = 128 << 10;
            let (_directory, path, summary) = record(format, |builder| {
                builder
                    .rotate(size, 0)
                    .compress(compress)
                    .overflow(hairline::Overflow::Block(std::time::Duration::from_secs(10)))
            });
            assert_eq!((summary.lost.total(), summary.notes.len()), (0, 0), "{summary:?}");
            let files = files(&path);
            let len = |file: &PathBuf| std::fs::metadata(file).expect("a file").len();
            assert!(files.len() > if compress { 1 } else { 6 }, "{files:?}");
            let mut ended: BTreeMap<(String, i64), u32> = BTreeMap::new();
            let (mut outer, mut greatest) = (None, 0.0_f64);
            for (place, file) in files.iter().enumerate() {
                let is_last = place + 1 == files.len();
                // A file ends between two passes of the drain thread, which a busy machine may keep waiting.
                assert!(len(file) <= size + RING, "{}: {}", file.display(), len(file));
                let verdict = judge::load(file, &SQL);
                verdict.require_clean();
                let [steps, outers, elsewhere, named, sum, flows] = &verdict.results[..] else {
                    panic!("six results")
                };
                for row in steps.text().lines() {
                    let cells: Vec<&str> = row.split('\t').collect();
                    assert_eq!(cells[3], "the same text each time", "{row}");
                    if cells[2] == "1" {
                        *ended
                            .entry((cells[0].to_owned(), cells[1].parse().expect("a number")))
                            .or_default() += 1;
                    }
                }
                // All that is open is there, at its own time.
                let begins = |rows: &str| {
                    rows.lines()
                        .map(|row| row.split('\t').next().unwrap_or("").to_owned())
                        .collect::<Vec<_>>()
                };
                let opens = (begins(&outers.text()), begins(&elsewhere.text()));
                if place > 0 && place + 2 < files.len() {
                    assert_eq!(
                        (opens.0.len(), opens.1.len()),
                        (4, 2),
                        "{}: {}",
                        file.display(),
                        outers.text()
                    );
                    assert_eq!(*outer.get_or_insert_with(|| opens.clone()), opens, "{}", file.display());
                    assert_eq!(named.single_i64(), 3);
                    assert!(flows.single_i64() > 0, "{}", file.display());
                    assert!(!outers.text().contains("\t1"), "none has its end yet");
                }
                greatest = greatest.max(sum.text().parse::<f64>().unwrap_or(0.0));
                if is_last {
                    assert!(!elsewhere.text().contains("\t0"), "{}", elsewhere.text());
                }
            }
            assert_eq!(greatest, (STEPS - 1) as f64);
            assert_eq!(ended.len() as u64, THREADS * STEPS);
            assert!(ended.values().all(|times| *times == 1), "each has its end in one file");
        }
    }
}

/// Numbers and contents of the files of an output, the one at the path last.
fn numbered(path: &std::path::Path) -> Vec<(u64, Vec<u8>)> {
    let number = |file: &PathBuf| {
        let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
        name.strip_prefix("t.").map_or(u64::MAX, |number| number.parse().expect("a number"))
    };
    files(path).iter().map(|file| (number(file), std::fs::read(file).expect("a file"))).collect()
}

#[test]
fn the_numbers_of_a_new_run_go_on_and_the_newest_files_of_both_are_kept() {
    for format in FORMATS {
        let _turn = turn();
        let block = hairline::Overflow::Block(std::time::Duration::from_secs(10));
        let (directory, path, _) = record(format, |builder| builder.rotate(128 << 10, 3).overflow(block));
        let first = numbered(&path);
        let numbers: Vec<u64> = first.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [numbers[0], numbers[0] + 1, u64::MAX]);
        let record_again = |keep| {
            let builder = Session::builder().output(&path).rotate(128 << 10, keep).overflow(block);
            let session = builder.start().expect("a session");
            program(&session);
            session.stop().expect("no error")
        };
        let summary = record_again(0);
        let next = numbers[1] + 1;
        let note = format!("t.{next}.{} now", extension(format));
        assert!(summary.notes.iter().any(|n| n.ends_with(&note)), "{:?}", summary.notes);
        let second = numbered(&path);
        assert!(second[..2] == first[..2] && second[2] == (next, first[2].1.clone()), "they stay");
        let in_turn = |pair: &[(u64, Vec<u8>)]| pair[0].0 + 1 == pair[1].0 || pair[1].0 == u64::MAX;
        assert!(second.len() > 5 && second.windows(2).all(in_turn));
        for file in files(&path) {
            judge::load(&file, &[]).require_clean();
        }
        record_again(3);
        assert_eq!(numbered(&path).len(), 3, "of all runs");
        let hidden = std::fs::read_dir(directory.path())
            .expect("a directory")
            .flatten()
            .any(|e| e.file_name().to_string_lossy().starts_with('.'));
        assert!(!hidden, "nothing is left over");
    }
}

#[test]
fn where_no_further_file_can_be_made_the_output_stays_in_one() {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("t.fxt");
    let session = Session::builder().output(&path).rotate(128 << 10, 0).start().expect("a session");
    let moved = directory.path().join("moved.fxt");
    std::fs::rename(&path, &moved).expect("moved");
    std::fs::write(&path, "in the way").expect("written");
    program(&session);
    let summary = session.stop().expect("no error");
    assert!(summary.notes.iter().any(|note| note.contains("one file")), "{:?}", summary.notes);
    let verdict = judge::load(&moved, &["select count(*) from slice where name = 'outer' and dur >= 0"]);
    assert_eq!(verdict.results[0].single_i64(), 3);
    assert_eq!(std::fs::metadata(&moved).expect("a file").len(), summary.bytes);
    assert_eq!(std::fs::read(&path).expect("a file"), b"in the way");
}

#[test]
fn the_environment_may_ask_for_it() {
    for (value, files) in [("64K,2", 1), ("64K", 1)] {
        let run = run(&["return"], &[("HAIRLINE", "t.fxt"), ("HAIRLINE_ROTATE", value)]);
        assert_eq!((run.said().len(), run.files().len()), (0, files), "{value}: {:?}", run.output);
    }
    for value in ["1K", "64K,x", "64K,1,2", ","] {
        let run = run(&["return"], &[("HAIRLINE", "t.fxt"), ("HAIRLINE_ROTATE", value)]);
        assert_eq!((run.said().len(), run.files().len()), (1, 0), "{value}: {:?}", run.output);
    }
    let _turn = turn();
    let builder = Session::builder().output_memory(&hairline::MemoryOutput::new()).rotate(1000, 1);
    assert!(matches!(builder.start(), Err(Error::Value { .. })));
}
