//! The threads of the first process: those that record, those that fork, and one that starts sessions or
//! takes snapshots.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use hairline::{Overflow, Session};
use hairline_tests::torture::Random;

use crate::handler;
use crate::make::make;
use crate::orders::orders;
use crate::run::{BUFFER, STOP, is_stopped};
use crate::steps::{is_child, record, recorded, set_number};
use crate::told::failures;

/// Children still to be made.
static LEFT: AtomicI64 = AtomicI64::new(0);

/// Threads pass when all have come. Of atomics alone, so that no fork finds a lock held.
struct Gate(AtomicU64);

impl Gate {
    fn pass(&self) {
        self.0.fetch_sub(1, SeqCst);
        while self.0.load(SeqCst) > 0 && !is_stopped() {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Nobody waits for a thread that is no more.
struct StopOnPanic;

impl Drop for StopOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            STOP.store(true, SeqCst);
        }
    }
}

/// Records until it is told to stop, or in a child that a handler made, as long as that says.
fn recorder(number: u64, seed: u64, gate: &Gate) -> (u64, u64) {
    let random = Random::new(seed);
    let _stop = StopOnPanic;
    set_number(number);
    // All callsites of `tracing` and `log` are known before the first fork: those crates have locks of their
    // own.
    (0..200).for_each(|_| record(&random));
    handler::add_recorder();
    gate.pass();
    while !is_stopped() {
        record(&random);
        if random.one_in(16) && !is_child() {
            std::thread::sleep(Duration::from_micros(200));
        }
        handler::end_if_done(&random);
    }
    (number, recorded())
}

fn forker(number: u64, seed: u64, gate: &Gate) -> (u64, u64) {
    let random = Random::new(seed);
    let _stop = StopOnPanic;
    set_number(number);
    (0..200).for_each(|_| record(&random));
    gate.pass();
    while LEFT.fetch_sub(1, SeqCst) > 0 && failures() < 5 {
        let kinds = &orders().kinds;
        (0..random.below(20)).for_each(|_| record(&random));
        make(kinds[random.below(kinds.len() as u64) as usize], &random, orders().depth);
        std::thread::sleep(Duration::from_micros(random.below(1500)));
    }
    (number, recorded())
}

/// As the mode says, for one session.
pub(crate) fn builder(path: &str) -> hairline::SessionBuilder {
    let builder = Session::builder().output(path).buffer_size(BUFFER);
    if orders().mode == "recorder" { builder.overflow(Overflow::Overwrite) } else { builder }
}

/// Sessions that come and go, or snapshots of one, until it is told to stop.
fn manager(session: Option<&Session>, gate: &Gate) {
    let _stop = StopOnPanic;
    gate.pass();
    let orders = orders();
    for n in 0_u64.. {
        if is_stopped() {
            break;
        }
        match (orders.mode.as_str(), session) {
            ("coming", _) => {
                let session = builder(&format!("s{n}-{}", orders.template)).start().expect("a session");
                std::thread::sleep(Duration::from_millis(3 + n % 7));
                session.stop().expect("stopped");
                std::thread::sleep(Duration::from_millis(n % 4));
            }
            ("recorder", Some(session)) => {
                session.snapshot(format!("snap{n}.{}", orders.extension)).expect("a snapshot");
                hairline::trigger!("a trigger");
                std::thread::sleep(Duration::from_millis(20));
            }
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// Runs all of them until the children are made. Returns what each recorded: its number and its steps.
pub(crate) fn run(session: Option<&Session>) -> Vec<(u64, u64)> {
    let orders = orders();
    LEFT.store(orders.children.cast_signed(), SeqCst);
    let random = Random::new(orders.seed);
    let gate = &Gate(AtomicU64::new(orders.threads + orders.forkers + 1));
    std::thread::scope(|threads| {
        let recorders: Vec<_> = (0..orders.threads)
            .map(|n| (n, random.next()))
            .map(|(n, seed)| threads.spawn(move || recorder(n, seed, gate)))
            .collect();
        threads.spawn(move || manager(session, gate));
        let forkers: Vec<_> = (20..20 + orders.forkers)
            .map(|n| (n, random.next()))
            .map(|(n, seed)| threads.spawn(move || forker(n, seed, gate)))
            .collect();
        let mut steps: Vec<_> = forkers.into_iter().map(|thread| thread.join().expect("joined")).collect();
        STOP.store(true, SeqCst);
        steps.extend(recorders.into_iter().map(|thread| thread.join().expect("joined")));
        steps
    })
}
