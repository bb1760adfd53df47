//! A program that forks, ends threads and is interrupted at the worst moments it can find.
//!
//! ```text
//! moments WAY [OUTPUT]
//! ```
//!
//! It prints what it did, and ends with 0 if nothing hung or crashed. A watchdog ends it after 30 s.

mod common;
mod ends;
mod first;
mod forks;
mod realtime;
mod ring;
mod snapshots;

use std::time::Duration;

use hairline_tests::children;

fn watchdog() {
    let (blocks, waits) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        common::block_signals(); // a child of a handler on this thread would do nothing for 30 s
        let _ = blocks.send(());
        std::thread::sleep(Duration::from_secs(30));
        eprintln!("moments: hangs");
        children::exit_at_once(99)
    });
    let _ = waits.recv(); // before any signal is sent
}

fn main() {
    watchdog();
    let mut arguments = std::env::args().skip(1);
    let way = arguments.next().unwrap_or_default();
    let output = arguments.next().unwrap_or_default();
    match way.as_str() {
        "end-of-threads" => ends::end_of_threads(&output),
        "cancelled" => ends::cancelled_threads(&output),
        "first-in-handler" => first::first_events_in_handlers(&output, false),
        "first-in-handler-of-recorder" => first::first_events_in_handlers(&output, true),
        "stack" => first::stack_of_events(&output, false),
        "stack-of-recorder" => first::stack_of_events(&output, true),
        "clone" => forks::unannounced(&output, children::clone),
        "bare-fork" => forks::unannounced(&output, children::bare_fork),
        "fork-in-handler" => forks::fork_in_signal_handlers(&output),
        "fork-while-waiting" => forks::fork_while_waiting_for_room(),
        "fork-in-flush-and-stop" => forks::fork_in_flush_and_stop(),
        "fork-under-signals" => forks::fork_under_signals(&output),
        "fork-without-session" => forks::fork_without_a_session(),
        "fork-during-start" => forks::fork_during_the_start(output.parse().expect("microseconds")),
        "snapshot-in-child" => snapshots::snapshot_in_child(&output),
        "trigger-in-handler" => snapshots::trigger_in_signal_handlers(&output),
        "snapshot-first" => snapshots::snapshot_before_the_first_event(&output, false),
        "snapshot-first-busy" => snapshots::snapshot_before_the_first_event(&output, true),
        "signal-at-exit" => ends::signals_at_the_end(&output),
        "real-time" => realtime::record_in_real_time(&output),
        "forget-beside" => ring::forget_beside_others(&output),
        "idle-threads" => ring::sessions_with_idle_threads(),
        "forget" => ring::forget_scopes(&output),
        "timer" => ring::start_under_a_timer(&output),
        _ => panic!("unknown way: {way}"),
    }
}
