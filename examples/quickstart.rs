//! A first trace. Run it, then open the file it names in the Perfetto UI.
//!
//! ```text
//! cargo run --release -p hairline-examples --example quickstart [trace.pftrace|trace.fxt]
//! ```

use std::thread;
use std::time::Duration;

use hairline::{Session, trace_counter, trace_instant, trace_scope};

/// A slice for each call, with its argument.
fn bake(cake: u32) {
    trace_scope!("kitchen", "bake", cake);
    for step in ["mix", "rise", "oven"] {
        trace_scope!("kitchen", "step", name = step, grams = 250 * cake);
        thread::sleep(Duration::from_millis(2));
    }
    if cake == 3 {
        trace_instant!("kitchen", "burnt", cake, reason = "tracing instead of watching");
    }
}

fn main() -> Result<(), hairline::Error> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "quickstart.pftrace".to_owned());

    let session = Session::builder().output(&path).start()?;

    let helper = thread::Builder::new().name("helper".to_owned()).spawn(|| {
        trace_scope!("kitchen", "wash up");
        thread::sleep(Duration::from_millis(10));
    });
    for cake in 1..=4 {
        bake(cake);
        trace_counter!("kitchen", "cakes", cake);
    }
    if let Ok(helper) = helper {
        let _ = helper.join();
    }

    let summary = session.stop()?;

    println!(
        "{path}: {} records of {} threads, {} lost",
        summary.records,
        summary.threads.len(),
        summary.lost.total()
    );
    println!("Open https://ui.perfetto.dev and drop the file on the page.");
    Ok(())
}
