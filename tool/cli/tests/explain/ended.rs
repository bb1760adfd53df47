//! Of the slices of other threads, `hairline explain` names for a sleep only those that can have ended it.

use hairline_formats::proto::{put_message, put_uint};
use hairline_formats::track_event::fields::trace;
use hairline_formats::track_event::{self as te, SequenceId};

use crate::planted::{HOG, MS, OTHER, Planted, SERVER, Shape, State, explain_both, requests, sleeps};
use crate::truth::text;

#[test]
fn one_sleep_in_three_with_an_end_does_not_rule_others_out() {
    let mut number = 0;
    let trace = requests("request", |trace, middle| {
        sleeps(trace, middle, State::Asleep, 0);
        if number == 0 {
            trace.slice(OTHER, (middle - MS, middle + 20 * MS), "cache", "rebuild");
        }
        number += 1;
        None
    });
    let text = text(&trace.finish(Shape::States), "net/request");
    assert!(
        !text.contains("so they wait for something outside"),
        "a thread without slices may do it: {text}"
    );
}

/// Slow requests that sleep for 50 ms, beside a slice of another thread that is over 10 ms before. With the
/// wake-up at the end of the sleep, if there is one.
fn woken(waker: Option<(u64, bool)>) -> String {
    let mut ends = Vec::new();
    let trace = requests("request", |trace, middle| {
        sleeps(trace, middle, State::Asleep, 0);
        trace.slice(OTHER, (middle - MS, middle + 40 * MS), "cache", "rebuild");
        ends.push(middle + 50 * MS);
        None
    });
    let mut out = trace.finish(Shape::States);
    for end in ends {
        let Some((waker, is_interrupt)) = waker else { continue };
        let of = te::Waking { cpu: 0, waker: waker as u32, is_interrupt, tid: SERVER as u32 };
        te::waking(&mut out, SequenceId(3), end - 1_000, &of);
    }
    text(&out, "net/request")
}

#[test]
fn the_thread_that_wakes_them_is_named() {
    let text = woken(Some((HOG, false)));
    assert!(text.contains("Cause: sleep.") && text.contains("they wait for other threads"), "{text}");
    assert!(text.contains(&format!("Woken by `thread {HOG}` 100 %.")), "{text}");
    let text = woken(Some((OTHER, false)));
    assert!(text.contains("Woken by `rebuilder (102)` 100 %."), "{text}");
    assert!(!text.contains("Without wake-ups"), "{text}");
    let text = woken(None);
    assert!(
        text.contains("`hairline record --sched` records them as root, where tracefs is mounted."),
        "{text}"
    );
}

#[test]
fn a_slice_that_was_over_long_before_has_ended_no_sleep() {
    for waker in [None, Some((OTHER, false)), Some((OTHER, true)), Some((0, true))] {
        let text = woken(waker);
        assert!(text.contains("Cause: sleep."), "{text}");
        assert!(!text.contains("`rebuild` ends") && !text.contains("`rebuild` is open"), "{waker:?}: {text}");
    }
}

#[test]
fn sleeps_that_interrupts_end_are_said_to_be() {
    let text = woken(Some((0, true)));
    assert!(text.contains("Why: an interrupt ended 2 of 2 sleeps"), "{text}");
}

/// 200 requests, two of which sleep ten times for 5 ms, beside slices of another thread that sleeps always:
/// one after the other, with this length.
fn beside(length: u64) -> String {
    let mut trace = requests("request", |trace, middle| {
        for sleep in (0..10).map(|n| middle + 5 * n * MS) {
            trace.switch(sleep, (SERVER, State::Asleep), 0);
            trace.switch(sleep + 5 * MS - MS / 10, (0, State::Asleep), SERVER);
        }
        None
    });
    let first = trace.now - 200 * 6 * MS - 100 * MS;
    trace.switches.insert(0, (first - 1, (OTHER, State::Asleep), 0));
    (first..trace.now).step_by(length as usize).for_each(|at| {
        trace.slice(OTHER, (at, at + length - 1), "", "nap");
    });
    text(&trace.finish(Shape::States), "net/request")
}

#[test]
fn a_thread_that_sleeps_itself_has_woken_nobody() {
    let text = beside(120 * MS);
    assert!(text.contains("Cause: sleep.") && !text.contains("`nap` ends"), "{text}");
}

#[test]
fn a_slice_that_ends_with_each_sleep_by_chance_is_not_the_cause() {
    let text = beside(MS / 4);
    assert!(text.contains("Why: not known") && !text.contains("`nap` "), "{text}");
}

/// Requests, two of which sleep for 50 ms while the other thread has these slices, by name, begin and end
/// after the begin of the sleep. The other thread runs meanwhile, or sleeps until a moment after the sleep.
fn during(slices: &[(&str, i64, i64)], is_running: bool) -> String {
    let trace = requests("request", |trace, middle| {
        if is_running {
            sleeps(trace, middle, State::Asleep, OTHER);
        } else {
            sleeps(trace, middle, State::Disk, 0);
            let after = middle + 50 * MS + MS / 20;
            trace.switch(after, (SERVER, State::Preempted), OTHER);
            trace.switch(after + MS / 20, (OTHER, State::Asleep), SERVER);
        }
        for (name, start, end) in slices {
            let times = [*start, *end].map(|time| middle.saturating_add_signed(time));
            trace.slice(OTHER, times.into(), "", name);
        }
        None
    });
    text(&trace.finish(Shape::States), "net/request")
}

const MS_AFTER: i64 = MS as i64;

#[test]
fn the_innermost_slice_that_was_open_all_the_time_is_named() {
    let write = ("write", -MS_AFTER, 50 * MS_AFTER + 10_000);
    let late = ("flush", 40 * MS_AFTER, 50 * MS_AFTER);
    let outer = ("request", -2 * MS_AFTER, 51 * MS_AFTER);
    let text = during(&[write, late, outer], true);
    assert!(text.contains("2 of 2 sleeps end when `write` ends on the thread rebuilder (102)"), "{text}");
}

#[test]
fn a_slice_that_lasts_beyond_the_sleeps_does_not_end_with_them() {
    let text = during(&[("write", -MS_AFTER, 90 * MS_AFTER)], true);
    assert!(
        text.contains("2 of 2 sleeps pass while `write` is open on the thread rebuilder (102)"),
        "{text}"
    );
}

#[test]
fn a_slice_that_began_during_the_sleep_is_not_what_it_waited_for() {
    let text = during(&[("read", 5 * MS_AFTER, 50 * MS_AFTER)], true);
    assert!(text.contains("Why: not known") && !text.contains("`read` "), "{text}");
}

#[test]
fn a_slice_that_waits_for_the_one_that_sleeps_is_not_its_cause() {
    // Its thread sleeps until the server, which slept on a disk, wakes it.
    for name in ["scan_files", "request"] {
        let text = during(&[(name, -MS_AFTER, 50 * MS_AFTER + MS_AFTER / 10)], false);
        assert!(text.contains("the sleep is uninterruptible"), "{text}");
        assert!(!text.contains(&format!("`{name}` ends")), "{text}");
        assert!(!text.contains(&format!("`{name}` is open")), "{text}");
    }
}

#[test]
fn a_slice_that_is_open_all_the_time_says_nothing() {
    let mut trace = requests("request", |trace, middle| {
        sleeps(trace, middle, State::Asleep, OTHER);
        None
    });
    let now = trace.now;
    trace.slice(OTHER, (1_000 * MS, now), "app", "serve");
    let text = text(&trace.finish(Shape::States), "net/request");
    assert!(text.contains("Why: not known: `serve` was open so long"), "{text}");
}

#[test]
fn a_writer_that_starves_behind_readers_does_not_wait_outside() {
    let trace = requests("request", |trace, middle| {
        sleeps(trace, middle, State::Asleep, OTHER);
        for read in 0..10 {
            let start = middle + read * 5 * MS;
            trace.slice(OTHER, (start, start + 5 * MS), "", "read");
        }
        None
    });
    let text = text(&trace.finish(Shape::States), "net/request");
    assert!(text.contains("Why: not known"), "{text}");
    assert!(!text.contains("outside") && !text.contains("`read` ends"), "{text}");
}

#[test]
fn a_sleep_without_wakeups_contains_the_wait_for_a_core() {
    let note = "the time asleep contains the wait for a core";
    assert!(woken(None).contains(note) && !woken(Some((OTHER, false))).contains(note));
}

#[test]
fn an_interrupted_thread_is_not_called_the_waker() {
    // A waking in the interrupt that came while HOG ran.
    let mut out = requests("request", |trace, middle| {
        sleeps(trace, middle, State::Asleep, HOG);
        None
    })
    .finish(Shape::Ftrace);
    put_message(&mut out, trace::PACKET, |packet| {
        put_message(packet, 1, |bundle| {
            put_uint(bundle, 1, 0);
            for number in [50_u64, 150] {
                let before = u64::from(number == 150);
                let end = 1_000 * MS + number * 6 * MS + before * 50 * MS + 52 * MS;
                put_message(bundle, 2, |event| {
                    put_uint(event, 1, end - MS);
                    put_uint(event, 2, HOG);
                    put_uint(event, 5, 8); // in a hard interrupt
                    put_message(event, 20, |waking| put_uint(waking, 2, SERVER));
                });
            }
        });
    });
    let text = text(&out, "net/request");
    assert!(text.contains("Cause: sleep.") && !text.contains("wake them up"), "{text}");
}

#[test]
fn many_that_take_equally_long_are_called_as_many_as_they_are() {
    let mut trace = Planted::new();
    for number in 0..200 {
        let (start, time) = (trace.now, if number % 10 == 0 { 20 * MS } else { MS });
        trace.slice(SERVER, (start, start + time), "net", "request");
        trace.now = start + time + MS;
    }
    for text in explain_both(&trace.finish(Shape::Nothing), &["net/request"]) {
        assert!(text.contains("The slowest 10 % take 19.0 ms longer"), "{text}");
        assert!(text.contains("\nslowest 10 % ") && !text.contains("slowest 1 %"), "{text}");
    }
}

#[test]
fn a_thread_that_sleeps_too_may_wait_for_the_same() {
    // Both are woken at once, by a thread without slices.
    let trace = requests("request", |trace, middle| {
        trace.switch(middle - MS, (OTHER, State::Asleep), 0);
        sleeps(trace, middle, State::Asleep, 0);
        trace.switch(middle + 50 * MS - MS / 20, (0, State::Asleep), OTHER);
        trace.slice(OTHER, (middle - MS, middle + 50 * MS), "", "step");
        None
    });
    let text = text(&trace.finish(Shape::States), "net/request");
    let words = "2 of 2 sleeps end when `step` ends on the thread rebuilder (102), which is asleep meanwhile too: it may wait \
        for the same, have what they wait for, or neither.";
    assert!(text.contains(words), "{text}");
}

#[test]
fn where_wakeups_are_recorded_a_sleep_without_one_was_ended_by_no_thread() {
    let mut first = 0;
    let trace = requests("request", |trace, middle| {
        sleeps(trace, middle, State::Asleep, 0);
        trace.switch(middle + 50 * MS - MS / 20, (0, State::Asleep), OTHER);
        trace.slice(OTHER, (middle - MS, middle + 50 * MS), "", "pause");
        first = middle;
        None
    });
    let mut out = trace.finish(Shape::States);
    // Another thread woke the other one once.
    let of = te::Waking { cpu: 0, waker: HOG as u32, is_interrupt: false, tid: OTHER as u32 };
    te::waking(&mut out, SequenceId(3), first + MS, &of);
    let text = text(&out, "net/request");
    assert!(text.contains("Cause: sleep.") && !text.contains("`pause` ends"), "{text}");
    assert!(text.contains("Why: not known") && !text.contains("Without wake-ups"), "{text}");
}
