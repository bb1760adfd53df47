//! What a recorded task of tokio costs: the same program, recorded by nobody and by each recorder.
//!
//! ```text
//! ci/peers.sh --tasks [ROUNDS]
//! ci/peers.sh --delays           the polls and their delays after the wakes, beside dial9's
//! ```
//!
//! Each round starts a process for each recorder, in turns. A process has a runtime with one worker, and a
//! hundred tasks that yield a thousand times each: a poll is woken by the poll before, goes through the queue
//! and does some work. The tables have the time of a poll with all of that, and of a spawn with one poll.

#[cfg(not(feature = "console"))]
mod delays;

use std::env;
use std::error::Error;
use std::future::Future;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use std::time::Instant;

use hairline::{Session, TraceFuture};
use hairline_tokio::TraceRuntime;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, yield_now};

const TASKS: u64 = 100;
const YIELDS: u64 = 1000;
const SPAWNS: u64 = 20_000;

#[cfg(not(feature = "console"))]
const RECORDERS: &[(&str, &str)] = &[
    ("tokio", "tokio alone"),
    ("off", "Hairline, while nothing is recorded"),
    ("on", "Hairline: lives, polls, wakes, queues"),
    ("polls", "Hairline without the category `task`: lives and polls"),
    ("dial9", "dial9: polls, wakes, queues"),
];
#[cfg(feature = "console")]
const RECORDERS: &[(&str, &str)] =
    &[("tokio", "tokio alone, with spans"), ("console", "tokio-console's subscriber")];

fn main() -> ExitCode {
    let arguments: Vec<_> = env::args().skip(1).collect();
    let result = match arguments.first().map(String::as_str) {
        #[cfg(not(feature = "console"))]
        Some("--delays") => delays::record(arguments.get(1).map_or("", String::as_str).as_ref()),
        Some("--recorder") => measure(arguments.get(1).map_or("", String::as_str)),
        rounds => compare(rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(11)),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tasks: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the minimum and the median of the rounds for each recorder.
fn compare(rounds: usize) -> Result<(), Box<dyn Error>> {
    let program = env::current_exe()?;
    let mut all = vec![[Vec::new(), Vec::new()]; RECORDERS.len()];
    for _ in 0..rounds {
        for ((recorder, _), columns) in RECORDERS.iter().zip(&mut all) {
            let out = Command::new(&program).args(["--recorder", recorder]).output()?;
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            let [poll, spawn] = numbers[..] else {
                return Err(format!("{recorder}: {}", String::from_utf8_lossy(&out.stderr)).into());
            };
            columns[0].push(poll);
            columns[1].push(spawn);
        }
    }
    for column in all.iter_mut().flatten() {
        column.sort_by(f64::total_cmp);
    }
    println!("ns, minimum (median) of {rounds} rounds    poll            spawn, one poll, end");
    for ((_, title), columns) in RECORDERS.iter().zip(&all) {
        let cell = |n: usize| format!("{:.0} ({:.0})", columns[n][0], columns[n][rounds / 2]);
        println!("{title:<54} {:>14} {:>14}", cell(0), cell(1));
    }
    Ok(())
}

fn builder() -> Builder {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(1);
    builder
}

fn measure(recorder: &str) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    match recorder {
        "tokio" => {
            let runtime = builder().build()?;
            run(&runtime, plain);
        }
        "off" => {
            let runtime = builder().traced().build()?;
            run(&runtime, hairline);
        }
        "on" | "polls" => {
            let categories = if recorder == "on" { "*" } else { "*,-task" };
            let session = Session::builder()
                .output_writer(std::io::sink())
                .categories(categories)
                .buffer_size(64 << 20)
                .start()?;
            let runtime = builder().traced().build()?;
            run(&runtime, hairline);
            drop(runtime);
            let lost = session.stop()?.lost.total();
            if lost > 0 {
                return Err(format!("{lost} events were lost").into());
            }
        }
        "dial9" => {
            use dial9::{Dial9HandleTokioExt, Dial9TokioHandle, DiskBuffer, TokioAttachOptions};
            let writer = DiskBuffer::builder()
                .base_path(folder.path())
                .max_total_size(1 << 30)
                .max_file_size(256 << 20)
                .build();
            let recorder = dial9::recorder(writer?).build();
            let options = TokioAttachOptions::builder().task_tracking_enabled(true).build();
            let runtime = recorder.handle().attach_tokio_runtime(builder(), options)?;
            run(&runtime, |future| Dial9TokioHandle::current().spawn(future));
        }
        #[cfg(feature = "console")]
        "console" => {
            console_subscriber::init();
            let runtime = builder().build()?;
            run(&runtime, plain);
        }
        _ => return Err(format!("there is no recorder {recorder}").into()),
    }
    Ok(())
}

fn plain(future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(future)
}

fn hairline(future: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(future.traced_task("bench", "task"))
}

async fn yields() {
    for n in 0..YIELDS {
        black_box((0..100).fold(n, |sum, m| black_box(sum ^ m)));
        yield_now().await;
    }
}

/// Prints the ns of a poll and of a spawn.
fn run<S>(runtime: &Runtime, spawn: S)
where
    S: Fn(std::pin::Pin<Box<dyn Future<Output = ()> + Send>>) -> JoinHandle<()> + Send + Copy + 'static,
{
    let program = async move {
        let [mut poll, mut one] = [f64::MAX; 2];
        for _ in 0..5 {
            let begun = Instant::now();
            let tasks: Vec<_> = (0..TASKS).map(|_| spawn(Box::pin(yields()))).collect();
            for task in tasks {
                let _ = task.await;
            }
            poll = poll.min(begun.elapsed().as_secs_f64() * 1e9 / (TASKS * (YIELDS + 1)) as f64);
            let begun = Instant::now();
            for _ in 0..SPAWNS {
                let _ = spawn(Box::pin(async {})).await;
            }
            one = one.min(begun.elapsed().as_secs_f64() * 1e9 / SPAWNS as f64);
        }
        println!("{poll} {one}");
    };
    // A task of the runtime, so that all wakes come from its worker.
    let _ = runtime.block_on(runtime.spawn(program));
}
