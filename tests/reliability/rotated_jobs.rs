//! Rotated outputs of slices that one thread begins and another ends: each file is a trace of its own.
//!
//! ```text
//! left   |begin 0  |begin 1   ...          end 5000|  end 5001|
//! right            end 0|     end 1| ...   |begin 5000  |begin 5001
//! ```
//!
//! The drain thread reads one thread after the other, so it writes the ends of one of them before the begins.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc;

use hairline::{Format, Mode, Session, Track, trace_async};
use hairline_formats::fxt;
use hairline_tests::judge;
use hairline_tests::mortal::files;
use hairline_tests::recording::{FORMATS, extension, turn};

const JOBS: u64 = 10_000;
/// The most jobs of one thread that wait for their end.
const OPEN: usize = 256;

/// A job that the other thread ends.
trait Job: Send {}
impl<T: Send> Job for T {}

/// Ends its slice on a track of its own.
struct OnTrack(Track);

impl Drop for OnTrack {
    fn drop(&mut self) {
        hairline::trace_end!(&self.0);
    }
}

/// Calls `begin` for half of the jobs on one thread, and for the others on a second thread. Each thread ends
/// the jobs of the other. A flush is a pass of the drain thread, in the middle of their work.
fn exchange(session: &Session, begin: impl Fn(u64) -> Box<dyn Job> + Sync) {
    let (to_right, at_right) = mpsc::sync_channel::<Box<dyn Job>>(OPEN);
    let (to_left, at_left) = mpsc::sync_channel::<Box<dyn Job>>(OPEN);
    let dispatch = tracing::dispatcher::get_default(Clone::clone);
    std::thread::scope(|threads| {
        for (side, send, receive) in [(0, to_right, at_left), (1, to_left, at_right)] {
            let (begin, dispatch) = (&begin, &dispatch);
            threads.spawn(move || {
                let _default = tracing::dispatcher::set_default(dispatch);
                for number in (side..JOBS).step_by(2) {
                    let mut job = begin(number);
                    while let Err(mpsc::TrySendError::Full(back)) = send.try_send(job) {
                        job = back;
                        receive.try_iter().for_each(drop);
                        std::thread::yield_now();
                    }
                    receive.try_iter().for_each(drop);
                    if number % 400 == 0 {
                        session.flush().expect("no error");
                    }
                }
                drop(send);
                receive.into_iter().for_each(drop);
            });
        }
    });
}

/// The ends of intervals in an FXT file that have no begin in it. The importer ignores them silently.
fn ends_without_begins(path: &Path) -> usize {
    let bytes = std::fs::read(path).expect("a file");
    let mut reader = fxt::RecordReader::new(bytes.as_slice());
    let (mut begins, mut ends) = (HashSet::new(), Vec::new());
    let mut of_lane: BTreeMap<u64, Vec<(u64, bool)>> = BTreeMap::new();
    while let Some((_, record)) = reader.next().expect("a record") {
        let fxt::Record::Event(event) = record else { continue };
        let is_begin = match event.kind {
            fxt::EventKind::AsyncBegin => true,
            fxt::EventKind::AsyncEnd => false,
            _ => continue,
        };
        of_lane.entry(event.payload.unwrap_or(0)).or_default().push((event.timestamp, is_begin));
    }
    for (lane, mut events) in of_lane {
        events.sort_unstable();
        let mut is_open = false;
        for (time, is_begin) in events {
            if is_begin {
                begins.insert((lane, time));
            } else if !is_open {
                ends.push((lane, time));
            }
            is_open = is_begin;
        }
    }
    ends.len()
}

/// Checks each file, and that each job has its end in one of them.
fn check(files: &[PathBuf], format: Format, name: &str) {
    let mut ended: BTreeMap<i64, usize> = BTreeMap::new();
    let mut last_open: BTreeMap<i64, usize> = BTreeMap::new();
    for (place, file) in files.iter().enumerate() {
        let jobs = "select (select int_value from args a where a.arg_set_id = s.arg_set_id and \
                    a.key like '%number'), dur >= 0 from slice s where name = 'job' and \
                    track_id not in (select id from thread_track)";
        let verdict = judge::load(file, &[jobs]);
        verdict.require_clean();
        let mut in_file = HashSet::new();
        for row in verdict.results[0].text().lines() {
            let (number, has_end) = row.split_once('\t').expect("two columns");
            let number = number.parse().unwrap_or_else(|_| panic!("{name}, {}: {row}", file.display()));
            assert!(in_file.insert(number), "{name}: job {number} is twice in {}", file.display());
            if has_end == "1" {
                let before = ended.insert(number, place);
                assert_eq!(before, None, "{name}: job {number} ends in two files");
            } else {
                last_open.insert(number, place);
            }
        }
        if format == Format::Fxt {
            assert_eq!(ends_without_begins(file), 0, "{name}: {}", file.display());
        }
    }
    assert_eq!(ended.len() as u64, JOBS, "{name}: each job has an end");
    for (number, place) in last_open {
        assert!(place < ended[&number], "{name}: job {number} is open in file {place}, after its end");
    }
}

fn record(what: &str, program: impl Fn(&Session)) {
    for format in FORMATS {
        for compress in [false, true] {
            let _turn = turn();
            let directory = tempfile::tempdir().expect("a directory");
            let path = directory.path().join(format!("t.{}", extension(format)));
            let builder = Session::builder().output(&path).compress(compress).rotate(100 << 10, 0);
            let session = builder.start().expect("a session");
            program(&session);
            let summary = session.stop().expect("no error");
            assert_eq!(summary.lost.total(), 0, "{summary:?}");
            let files = files(&path);
            assert!(files.len() > if compress { 1 } else { 3 }, "{files:?}");
            check(&files, format, &format!("{what}, {format:?}, compress: {compress}"));
        }
    }
}

#[test]
fn in_each_file_an_interval_that_another_thread_ended_is_open_only_before_its_end() {
    record("intervals", |session| exchange(session, |number| Box::new(trace_async!("jobs", "job", number))));
}

#[test]
fn in_each_file_a_slice_on_a_track_that_another_thread_ended_is_open_only_before_its_end() {
    let program = |session: &Session| {
        let parent = Track::process().child("jobs");
        exchange(session, |number| {
            let track = parent.child(format!("job {}", number % 3000));
            hairline::trace_begin!("jobs", "job", number, track: &track);
            Box::new(OnTrack(track))
        });
    };
    record("tracks", program);
}

#[test]
fn in_each_file_a_span_that_another_thread_closed_is_open_only_before_its_end() {
    let program = |session: &Session| {
        let subscriber = hairline::Subscriber::new().mode(Mode::Lifetimes);
        tracing::subscriber::with_default(subscriber, || {
            exchange(session, |number| Box::new(tracing::info_span!("job", number)));
        });
    };
    record("spans", program);
}
