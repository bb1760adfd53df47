//! Scopes for which a full ring has no room.

use std::sync::{Barrier, Mutex, PoisonError};

use hairline::{Error, Format, Session, trace_scope};

use crate::machine::{aside, cores, pin, pin_to_last_core};
use crate::row::{Budget, Row, label};
use crate::stuck::Gate;
use crate::timing::{Samples, batch, started};

/// Bytes of the ring, and of a scope in it.
const RING: u64 = 1 << 20;
const SCOPE: u64 = 32;

fn scopes(count: u32) -> f64 {
    batch(count, |_| {
        trace_scope!("bench", "scope");
    })
}

/// Measures such a scope on a thread with a chunk, on one that never had a chunk, and on two threads at once.
pub(crate) fn rows(format: Format, rounds: usize) -> Result<Vec<Row>, Error> {
    let gate = Gate::default();
    let session = started(gate.of(Session::builder()).format(format).buffer_size(RING))?;
    let closed = gate.close();
    let batches = || {
        let mut ns = Samples::new();
        (0..rounds * 4).for_each(|_| ns.push(scopes(2000)));
        ns
    };
    let fill = || scopes((2 * RING / SCOPE) as u32);
    let (of_old, of_new) = aside(|| {
        pin_to_last_core();
        fill();
        let of_new = || {
            pin_to_last_core();
            batches()
        };
        (batches(), aside(of_new))
    });
    drop(closed);
    session.flush()?; // both threads below get a chunk
    let closed = gate.close();
    let (both, start) = (Mutex::new(Samples::new()), Barrier::new(2));
    std::thread::scope(|threads| {
        for core in cores().into_iter().rev().take(2) {
            let (both, start) = (&both, &start);
            threads.spawn(move || {
                pin(core);
                scopes(1); // each thread gets a chunk before the other one fills the ring
                start.wait();
                fill();
                start.wait();
                let ns = batches();
                both.lock().unwrap_or_else(PoisonError::into_inner).append(&ns);
            });
        }
    });
    let of_both = both.into_inner().unwrap_or_else(PoisonError::into_inner);
    drop(closed);
    session.stop()?;
    let row = |what: &str, ns: &Samples, budget: f64| {
        Row::sampled(&format!("{}: lost scope{what}", label(format)), "ns", ns, Budget::AtMost, budget)
    };
    Ok(vec![
        row("", &of_old, 8.0),
        row(", 2 threads at once", &of_both, 10.0),
        row(", thread without a chunk", &of_new, 200.0),
    ])
}
