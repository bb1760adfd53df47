//! Bad input is a typed error, and nothing is left behind.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hairline::{Error, MemoryOutput, Session, trace_instant, trace_scope};
use hairline_tests::recording::{FORMATS, turn};

#[test]
fn each_bad_setting_is_its_own_error() {
    let _turn = turn();
    let memory = MemoryOutput::new();
    let to_memory = || Session::builder().output_memory(&memory);
    let error = |r: Result<Session, Error>| r.map(|_| ()).expect_err("an error");
    assert!(matches!(error(Session::builder().start()), Error::NoOutput));
    assert!(matches!(error(Session::builder().output("/nowhere/at/all.fxt").start()), Error::Create { .. }));
    assert!(matches!(error(Session::builder().output("trace.txt").start()), Error::UnknownFormat { .. }));
    assert!(matches!(error(Session::builder().output("trace").start()), Error::UnknownFormat { .. }));
    for filter in ["a,,b", "-", "--a"] {
        assert!(matches!(error(to_memory().categories(filter).start()), Error::Filter { .. }), "{filter}");
    }
    for size in [0, 1, 4095, 3 * 16384, u64::MAX] {
        assert!(matches!(error(to_memory().buffer_size(size).start()), Error::Buffer(_)), "{size}");
    }
    for size in [0, 1, 2048, 5000, 1 << 25] {
        assert!(matches!(error(to_memory().chunk_size(size).start()), Error::Buffer(_)), "{size}");
    }
    assert!(matches!(error(to_memory().counters("memory").start()), Error::Value { .. }));
    assert!(matches!(error(to_memory().sampling(10_001).start()), Error::Value { .. }));
    assert!(memory.is_empty());
}

#[test]
fn a_bad_size_touches_no_file() {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("untouched.fxt");
    assert!(Session::builder().output(&path).buffer_size(1).start().is_err());
    assert!(!path.exists());
}

#[test]
fn a_second_start_is_refused_and_the_first_session_goes_on() {
    let _turn = turn();
    let memory = MemoryOutput::new();
    let first = Session::builder().output_memory(&memory).start().expect("a session");
    let second = Session::builder().output_memory(&MemoryOutput::new()).start();
    assert!(matches!(second, Err(Error::AlreadyRunning)));
    {
        trace_scope!("t", "goes on");
    }
    assert_eq!(first.stop().expect("stopped").records, 2);
    Session::builder().output_memory(&memory).start().expect("free again").stop().expect("stopped");
}

/// Takes so many bytes, then fails for good.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let n = bytes.len().min(self.0);
        self.0 -= n;
        if n == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(n) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_fails_costs_the_trace_and_nothing_else() {
    let _turn = turn();
    let session = Session::builder().output_writer(Full(10_000)).start().expect("a session");
    let mut attempted = 0;
    for _ in 0..100 {
        for _ in 0..1000 {
            trace_scope!("t", "into the void");
            attempted += 1;
        }
        let _ = session.flush();
    }
    match session.stop() {
        Err(Error::Write { source, summary, .. }) => {
            assert_eq!(source.kind(), std::io::ErrorKind::StorageFull);
            assert!(summary.lost.output > 0 && summary.lost.output <= 2 * attempted);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_device_is_an_error_of_the_session_only() {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("full.fxt");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
    match Session::builder().output(&path).start() {
        Err(Error::Create { .. }) => {}
        other => panic!("{other:?}"),
    }
}

/// Panics at the second write: the first is the stream's head.
struct Broken(u32);

impl Write for Broken {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += 1;
        assert!(self.0 < 2, "on purpose");
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_panics_is_an_error_of_the_session_only() {
    let _turn = turn();
    let session = Session::builder().output_writer(Broken(0)).start().expect("a session");
    {
        trace_scope!("t", "unlucky");
    }
    let _ = session.flush();
    assert!(matches!(session.stop(), Err(Error::Write { .. })));
    let session = Session::builder().output_memory(&MemoryOutput::new()).start().expect("a session after it");
    session.stop().expect("stopped");
}

#[test]
fn after_an_output_that_panicked_the_next_session_starts_though_nobody_asked_for_the_outcome() {
    let _turn = turn();
    let session = Session::builder().output_writer(Broken(0)).start().expect("started");
    {
        trace_scope!("t", "lost");
    }
    assert!(session.flush().is_err(), "the output has panicked");
    drop(session);
    let next = Session::builder().output_memory(&MemoryOutput::new()).start().expect("the place is free");
    next.stop().expect("stopped");
}

/// An output that has no room left from some moment on.
struct FullFrom(Arc<AtomicBool>);

impl Write for FullFrom {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.load(Ordering::SeqCst) { Err(ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_fails_after_its_size_limit_was_reached_is_an_error() {
    let _turn = turn();
    for format in FORMATS {
        let is_full = Arc::new(AtomicBool::new(false));
        let builder = Session::builder().output_writer(FullFrom(Arc::clone(&is_full))).format(format);
        let session = builder.max_file_size(64 << 10).start().expect("a session");
        (0..20_000).for_each(|n| trace_instant!("t", "event", n));
        session.flush().expect("the limit is no error");
        is_full.store(true, Ordering::SeqCst);
        match session.stop() {
            Err(Error::Write { source, .. }) => {
                assert_eq!(source.kind(), ErrorKind::StorageFull, "{format:?}");
            }
            stopped => panic!("{format:?}: {stopped:?}"),
        }
    }
}
