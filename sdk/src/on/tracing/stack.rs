//! The spans that this thread has entered.
//!
//! tracing lets spans be left in any order; slices end like brackets. A span that is left while others are on top of it ends
//! them too, and they begin anew.

use std::cell::RefCell;

use super::super::callsite::Callsite;
use super::super::thread;

/// A span that was entered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The span's id.
    pub(super) span: u64,
    pub(super) callsite: &'static Callsite,
    /// The epoch its slice was recorded in; 0 = it was not.
    pub(super) word: u32,
}

thread_local! {
    static STACK: RefCell<Vec<Entry>> = const { RefCell::new(Vec::new()) };
}

fn with<R>(f: impl FnOnce(&mut Vec<Entry>) -> R) -> Option<R> {
    STACK.try_with(|stack| stack.try_borrow_mut().ok().map(|mut stack| f(&mut stack))).ok().flatten()
}

pub(super) fn push(entry: Entry) {
    let _ = with(|stack| stack.push(entry));
}

/// The span that was entered last.
pub(super) fn top() -> Option<Entry> {
    with(|stack| stack.last().copied()).flatten()
}

/// Takes the span off, and ends its slice by `end`.
pub(super) fn leave(span: u64, end: impl FnOnce(&Entry)) {
    let Some(Some(entry)) = with(|stack| stack.pop()) else { return };
    if entry.span == span {
        end(&entry);
        return;
    }
    // Not the innermost one.
    let found = with(|stack| {
        stack.push(entry);
        let at = stack.iter().rposition(|entry| entry.span == span)?;
        Some((stack[at], stack.split_off(at + 1)))
    });
    let Some(Some((own, above))) = found else { return };
    for entry in above.iter().rev().filter(|entry| entry.word != 0) {
        thread::end_slice(entry.callsite, entry.word);
    }
    end(&own);
    for mut entry in above {
        if entry.word != 0 {
            entry.word = thread::begin_slice(entry.callsite, entry.word);
        }
        push(entry);
    }
    let _ = with(|stack| {
        if let Some(at) = stack.iter().rposition(|entry| entry.span == span) {
            stack.remove(at);
        }
    });
}
