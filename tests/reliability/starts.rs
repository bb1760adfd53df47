//! What may happen while a session starts.

#![allow(unsafe_code)] // fork

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use hairline::{Error, Format, Session, trace_scope};
use hairline_tests::judge;
use hairline_tests::output::kept;
use hairline_tests::recording::turn;

/// A child of this process that ends itself where it hangs.
fn fork() -> libc::pid_t {
    // SAFETY: takes nothing. The child of the test ends as soon as its start has returned.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: takes a number.
        unsafe { libc::alarm(10) };
    }
    child
}

#[test]
fn a_child_that_is_made_while_a_session_starts_has_no_part_in_it() {
    let _turn = turn();
    let child = Arc::new(AtomicI32::new(-1));
    let made = Arc::clone(&child);
    // The first write makes a child, in which it returns too.
    let (output, bytes) = kept(move || {
        if made.load(Ordering::Relaxed) == -1 {
            made.store(fork(), Ordering::Relaxed);
        }
    });
    let started = Session::builder().output_writer(output).format(Format::Fxt).start();
    let child = child.load(Ordering::Relaxed);
    if child == 0 {
        let status = i32::from(!matches!(started, Err(Error::Forked)));
        {
            trace_scope!("t", "of the child");
        }
        // SAFETY: takes a number.
        unsafe { libc::_exit(status) }
    }
    let mut status = -1;
    // SAFETY: `status` is valid, and the child is this process's.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child has no session");
    for _ in 0..10 {
        trace_scope!("t", "of the parent");
    }
    started.expect("a session").stop().expect("stopped");

    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("t.fxt");
    std::fs::write(&path, bytes.recv().expect("the output is dropped")).expect("written");
    let verdict = judge::load(&path, &["select name, count(*) from slice"]);
    verdict.require_clean();
    assert_eq!(verdict.results[0].text(), "of the parent\t10");
}
