//! `hairline explain` of requests that wait for a task of which nothing else tells.

use hairline_formats::Value;
use hairline_formats::track_event::EventType;

use crate::planted::{MS, SERVER};
use crate::tasks::{HOLDER, REQUEST, explained, interval, requests};

#[test]
fn a_timer_of_an_awaited_task_for_which_no_worker_looks() {
    let wake = ("task", "wake");
    let mut trace = requests(|trace, middle| {
        let answer = middle + 50 * MS;
        let ready = answer - 30_000;
        trace.slice(SERVER, (middle + 20_000, middle + 30_000), "net", "sub");
        trace.slice(SERVER, (middle + 40_000, ready - 20_000), "app", "work");
        trace.event(SERVER, (EventType::SliceBegin, ready - 10_000), ("tokio", "parked"), &[]);
        trace.event(SERVER, (EventType::Instant, ready), wake, &[]);
        trace.event(SERVER, (EventType::SliceEnd, ready + 5_000), ("tokio", "parked"), &[]);
        trace.event(SERVER, (EventType::SliceBegin, ready + 10_000), ("net", "sub"), &[]);
        trace.event(SERVER, (EventType::Instant, answer), wake, &[]);
        trace.event(SERVER, (EventType::SliceEnd, answer + 5_000), ("net", "sub"), &[]);
        interval(trace, HOLDER, (middle + 10_000, middle + 20_000), ("task", "queued"), &[]);
        interval(trace, HOLDER, (ready, ready + 10_000), ("task", "queued"), &[]);
        interval(trace, HOLDER, (middle, answer + 8_000), ("net", "sub"), &[("task", Value::I64(7))]);
        interval(trace, REQUEST, (answer, answer + 10_000), ("task", "queued"), &[]);
    });
    let now = trace.now;
    interval(&mut trace, HOLDER, (now + 1, now + 1000), ("task", "queued"), &[]);
    interval(&mut trace, HOLDER, (now, now + MS), ("app", "work"), &[("task", Value::I64(8))]);
    for (first, text) in explained(trace, "web/request") {
        let words = "the task `sub`, perhaps as workers are busy with other polls, most of all of `work`.";
        assert!(first.contains(words) && !first.contains("a timer or a socket"), "{text}");
    }
}
