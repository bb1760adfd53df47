//! An application for every target: each kind of macro, a session, spans of `tracing`, recovery. It has no
//! `cfg` of its own. `ci/cross.sh` runs it where an emulator is there, and asks the judge about its traces.
//!
//! ```text
//! hairline-cross record OUT     records one event of each kind, by a session of its own
//! hairline-cross events [exit]  records them if the environment asks for a session
//! hairline-cross window OUT     records more than a flight recorder's ring holds, and takes a snapshot
//! hairline-cross crowd OUT      more threads than the ring has chunks record, one after the other
//! hairline-cross forever OUT    records until it is killed; prints its pid
//! hairline-cross recover PID    completes the trace of a killed process
//! ```

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use hairline::{
    Flow, Level, Overflow, Session, Track, Unit, recovery, scope, trace, trace_async, trace_begin,
    trace_counter, trace_end, trace_instant, trace_log, trace_scope, trigger,
};
use tracing_subscriber::layer::SubscriberExt;

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().collect();
    let arguments: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match arguments[..] {
        ["record", out] => record(out),
        ["events"] => {
            events();
            Ok(())
        }
        ["events", "exit"] => {
            events();
            std::process::exit(0)
        }
        ["window", out] => window(out),
        ["crowd", out] => crowd(out),
        ["forever", out] => forever(out),
        ["recover", pid] => recover(pid.parse()?),
        _ => Err("record, events, window, crowd, forever or recover".into()),
    }
}

#[trace]
fn traced(n: u32) -> u32 {
    n + 1
}

/// Records one event of each kind, on this thread and on another.
fn events() {
    let subscriber = tracing_subscriber::registry().with(hairline::layer());
    tracing::subscriber::with_default(subscriber, || {
        let _entered = tracing::info_span!("span", answer = 42).entered();
        tracing::info!("event");
    });
    let flow = Flow::new();
    {
        trace_scope!("app", "scope", number = -7, text = "short", float = 1.5, flag = true);
        trace_instant!("app", "instant", flow: &flow);
        traced(1);
    }
    let name = format!("made at run time, {} bytes", 24);
    trace_scope!("app", "constant", name: name, value = ?[1, 2, 3]);
    let mut guard = scope!("app", "guard");
    guard.arg("late", 512);
    drop(guard);
    trace_counter!("app", "counter", 17, unit: Unit::Bytes);
    let queue = Track::process().child("queue");
    trace_begin!("app", "job", track: &queue);
    trace_end!(&queue, result = "done");
    let interval = trace_async!("app", "interval", id = 7);
    let thread = std::thread::Builder::new().name("worker".to_owned()).spawn(move || {
        trace_scope!("app", "on the worker", end_flow: &flow);
        drop(interval);
    });
    if let Ok(thread) = thread {
        let _ = thread.join();
    }
    trace_log!(Level::Warn, "app", "a message");
    trigger!();
}

fn record(out: &str) -> Outcome {
    let session = Session::builder().output(out).start()?;
    events();
    let summary = session.stop()?;
    println!("{} records, {} lost", summary.records, summary.lost.total());
    Ok(())
}

fn window(out: &str) -> Outcome {
    let session =
        Session::builder().output(out).overflow(Overflow::Overwrite).buffer_size(1 << 20).start()?;
    for n in 0..100_000_u32 {
        trace_scope!("app", "step", n);
    }
    session.snapshot(out)?;
    drop(session);
    Ok(())
}

/// The threads live at the same time, so each chunk of an idle one must be recalled for the next.
fn crowd(out: &str) -> Outcome {
    let session = Session::builder().output(out).buffer_size(256 << 10).chunk_size(4 << 10).start()?;
    let recorded = AtomicU32::new(0);
    std::thread::scope(|threads| {
        for n in 0..200_u32 {
            let recorded = &recorded;
            threads.spawn(move || {
                while recorded.load(Ordering::Relaxed) < n {
                    std::thread::sleep(Duration::from_millis(1));
                }
                trace_instant!("app", "in turn", n);
                std::thread::sleep(Duration::from_millis(10));
                recorded.fetch_add(1, Ordering::Relaxed);
                while recorded.load(Ordering::Relaxed) < 200 {
                    std::thread::sleep(Duration::from_millis(5));
                }
            });
        }
    });
    let summary = session.stop()?;
    println!("{} records, {} lost", summary.records, summary.lost.total());
    Ok(())
}

fn forever(out: &str) -> Outcome {
    let _session = Session::builder().output(out).buffer_size(8 << 20).start()?;
    println!("recording {}", std::process::id());
    let work = |from: u64| {
        for n in (from..).step_by(2) {
            trace_instant!("app", "step", n);
            if n % 64 == from {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(|| work(1));
        work(0);
    });
    Ok(())
}

fn recover(pid: u32) -> Outcome {
    let mut recovered = 0;
    for region in recovery::find()?.iter().filter(|region| region.pid == pid && region.is_dead()) {
        recovery::recover(&region.path, &recovery::RecoverOptions::new())?;
        recovered += 1;
    }
    println!("{recovered} recovered");
    Ok(())
}
