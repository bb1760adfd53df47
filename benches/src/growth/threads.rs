//! Scopes on many threads. All threads exist at the same time, each with its chunk. Only as many as the
//! machine has cores record at the same time. So a row shows the cost of the number of threads, not of the
//! number of cores.

use std::hint::black_box;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, scope, sleep};
use std::time::Duration;

use hairline::{Format, Session, trace_scope};

use crate::Outcome;
use crate::cost::Budgets;
use crate::machine::{clock_read, cores, release_freed_memory, resident};
use crate::row::{Budget, Row, label};
use crate::timing::{Samples, batch};

const MIB: u64 = 1 << 20;
const RING: u64 = 64 * MIB;
/// The scopes of all threads together: half the room of the ring.
const SCOPES: u32 = 1_000_000;
/// The turns in which a thread records its share.
const TURNS: u32 = 2;
/// The stack of each thread. Pages that the thread does not touch take no memory.
const STACK: usize = 64 << 10;

/// The most scopes in a batch: so few that the kernel interrupts few batches.
const BATCH: u32 = 1000;

/// The results of the rounds.
#[derive(Default)]
struct Outcomes {
    floor_ns: Samples,
    scope_ns: Samples,
    lost_percent: Samples,
    beside_ring_mib: Samples,
}

/// Touches the pages of the stack that recording needs, so that their page faults are not measured.
#[inline(never)]
fn touch_stack() {
    black_box([1u8; STACK / 4]);
}

/// The turns of one thread, each of which it hands to the next thread afterwards: one in which it only
/// starts, one with its first event, the timed ones, and one in which it ends. Returns the times of the floor
/// and of a scope for each batch.
fn live(turn: &Receiver<()>, next: &SyncSender<()>, share: u32) -> (Samples, Samples) {
    let (mut floor, mut subject) = (Samples::new(), Samples::new());
    touch_stack();
    for number in 0..TURNS + 3 {
        if turn.recv().is_err() {
            break;
        }
        if number == 1 {
            trace_scope!("bench", "scope of many threads");
        } else if (2..TURNS + 2).contains(&number) {
            for _ in 0..share.div_ceil(BATCH) {
                floor.push(batch(share.min(BATCH), |_| {
                    clock_read();
                    clock_read();
                }));
                subject.push(batch(share.min(BATCH), |_| {
                    trace_scope!("bench", "scope of many threads");
                }));
            }
        }
        let _ = next.send(());
    }
    (floor, subject)
}

fn round(format: Format, count: u32, outcomes: &mut Outcomes) -> Outcome<()> {
    let share = SCOPES / count / TURNS;
    let lanes = cores().len().clamp(1, count as usize);
    let channels: Vec<_> = (0..count).map(|_| sync_channel::<()>(1)).collect();
    let starts: Vec<_> = channels.iter().take(lanes).map(|(send, _)| send.clone()).collect();
    let (done, lane_done) = sync_channel(lanes);
    let mut nexts: Vec<_> = channels.iter().skip(lanes).map(|(send, _)| send.clone()).collect();
    nexts.resize(channels.len(), done);
    // If this fails, the moved senders are dropped, so that no thread waits for its turn for ever.
    scope(move |scope| {
        let pass = || {
            for start in &starts {
                let _ = start.send(()); // a thread that is gone has panicked, and the scope says so
            }
            for _ in &starts {
                let _ = lane_done.recv();
            }
        };
        let mut threads = Vec::with_capacity(count as usize);
        for ((_, turn), next) in channels.into_iter().zip(nexts) {
            let thread = Builder::new().stack_size(STACK);
            let live = move || live(&turn, &next, share);
            threads.push(thread.spawn_scoped(scope, live)?);
        }
        pass();
        release_freed_memory();
        let (all_before, shared_before) = resident();
        let session =
            Session::builder().output_writer(std::io::sink()).format(format).buffer_size(RING).start()?;
        sleep(Duration::from_millis(100)); // the ring's pages are there
        (0..=TURNS).for_each(|_| pass());
        let (all, shared) = resident();
        let summary = session.stop()?;
        pass();
        for (floor, subject) in threads.into_iter().filter_map(|thread| thread.join().ok()) {
            outcomes.floor_ns.append(&floor);
            outcomes.scope_ns.append(&subject);
        }
        let recorded = summary.records as f64 / 2.0;
        let lost = summary.lost.total() as f64;
        outcomes.lost_percent.push(lost * 100.0 / (lost + recorded));
        let private = (all - shared) as f64 - (all_before - shared_before) as f64;
        let beyond_ring = (shared as f64 - shared_before as f64 - RING as f64).max(0.0);
        outcomes.beside_ring_mib.push((private.max(0.0) + beyond_ring) / MIB as f64);
        Ok(())
    })
}

/// Measures the cost of a scope, the loss, and the memory beside the ring.
pub(super) fn rows(format: Format, count: u32, rounds: usize) -> Outcome<Vec<Row>> {
    let mut outcomes = Outcomes::default();
    for _ in 0..rounds {
        round(format, count, &mut outcomes)?;
    }
    let Outcomes { floor_ns, scope_ns, lost_percent, beside_ring_mib } = outcomes;
    let plural = if count == 1 { "" } else { "s" };
    let name = |what: &str| format!("{}: {count} thread{plural}, {what}", label(format));
    let budget = Budgets::of(format).scope;
    Ok(vec![
        Row::sampled(&name("scope"), "ns", &scope_ns, Budget::Ratio, budget).beside(&floor_ns),
        Row::sampled(&name("lost"), "%", &lost_percent, Budget::AtMost, 0.0),
        Row::sampled(&name("memory beside the ring"), "MiB", &beside_ring_mib, Budget::AtMost, 10.0),
    ])
}
