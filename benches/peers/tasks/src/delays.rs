//! The polls of a program and their delays after the wakes, recorded by dial9 and by Hairline at once: each
//! of them wraps the same tasks.

use std::collections::HashMap;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use dial9::format::Decoder;
use dial9::format::types::FieldValueRef;
use dial9::{Dial9HandleTokioExt, Dial9TokioHandle, DiskBuffer, TokioAttachOptions};
use hairline::{Session, TraceFuture};
use tokio::runtime::Builder;
use tokio::sync::mpsc::{Receiver, Sender, channel};

const WORKERS: usize = 2;
/// Tasks in a ring, each of which passes on what it receives.
const TASKS: usize = 100;
const TOKENS: u64 = 20;
const HOPS: u64 = 50_000;

/// Records the program into the folder. Prints what it counts itself, and what dial9 has.
pub fn record(folder: &Path) -> Result<(), Box<dyn Error>> {
    let session = Session::builder().output(folder.join("hairline.fxt")).buffer_size(64 << 20).start()?;
    let dial9 = folder.join("dial9");
    fs::create_dir(&dial9)?;
    let writer =
        DiskBuffer::builder().base_path(&dial9).max_total_size(1 << 30).max_file_size(256 << 20).build();
    let recorder = dial9::recorder(writer?).build();
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKERS);
    let options = TokioAttachOptions::builder().task_tracking_enabled(true).build();
    let runtime = recorder.handle().attach_tokio_runtime(builder, options)?;
    let polls = runtime.block_on(ring());
    drop(runtime);
    drop(recorder);
    let lost = session.stop()?.lost.total();
    println!("the program counts: {polls} polls; of Hairline {lost} events were lost");
    print("dial9", delays(&dial9)?);
    Ok(())
}

/// Returns the number of polls of its tasks.
async fn ring() -> u64 {
    let polls = Arc::new(AtomicU64::new(0));
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..TASKS).map(|_| channel(TOKENS as usize)).unzip();
    let first: Vec<_> = senders.iter().take(TOKENS as usize).cloned().collect();
    let mut tasks = Vec::new();
    for (number, from) in receivers.into_iter().enumerate() {
        let to = senders[(number + 1) % TASKS].clone();
        let task = Counted { future: Box::pin(pass_on(from, to)), polls: Arc::clone(&polls) };
        tasks.push(Dial9TokioHandle::current().spawn(task.traced_task("bench", "task")));
    }
    drop(senders);
    for sender in first {
        let _ = sender.send(HOPS).await;
    }
    for task in tasks {
        let _ = task.await;
    }
    polls.load(Relaxed)
}

async fn pass_on(mut from: Receiver<u64>, to: Sender<u64>) {
    while let Some(hops) = from.recv().await {
        black_box((0..1000).fold(hops, |sum, m| black_box(sum ^ m)));
        // The first token that has no hops left ends its task, and so all others, one after the other.
        if hops == 0 || to.send(hops - 1).await.is_err() {
            return;
        }
    }
}

/// A future whose polls are counted.
struct Counted<F> {
    future: Pin<Box<F>>,
    polls: Arc<AtomicU64>,
}

impl<F: Future> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.fetch_add(1, Relaxed);
        self.future.as_mut().poll(cx)
    }
}

/// Returns the number of polls in dial9's files, and the delays of those that follow a wake.
fn delays(folder: &Path) -> Result<(usize, Vec<u64>), Box<dyn Error>> {
    let mut events = Vec::new();
    let mut files: Vec<_> =
        fs::read_dir(folder.parent().unwrap_or(folder))?.flatten().map(|file| file.path()).collect();
    files.extend(fs::read_dir(folder)?.flatten().map(|file| file.path()));
    for file in files.iter().filter(|file| file.to_string_lossy().contains(".bin")) {
        let bytes = fs::read(file)?;
        let mut decoder =
            Decoder::new(&bytes).ok_or_else(|| format!("{}: no trace of dial9", file.display()))?;
        decoder.for_each_event(|event| {
            let task = match event.name {
                "PollStartEvent" | "PollStart" => "task_id",
                "WakeEventEvent" | "WakeEvent" => "woken_task_id",
                _ => return,
            };
            let value = event.field_names().zip(event.fields).find(|(name, _)| *name == task);
            if let Some((_, FieldValueRef::Varint(id))) = value {
                events.push((event.timestamp_ns, task == "task_id", *id));
            }
        })?;
    }
    events.sort_unstable();
    let (mut polls, mut woken, mut delays) = (0, HashMap::new(), Vec::new());
    for (time, is_poll, task) in events {
        if !is_poll {
            woken.entry(task).or_insert(time); // the first one since the last poll
        } else {
            polls += 1;
            delays.extend(woken.remove(&task).map(|since| time - since));
        }
    }
    Ok((polls, delays))
}

fn print(name: &str, (polls, mut delays): (usize, Vec<u64>)) {
    delays.sort_unstable();
    let at = |part: usize| delays.get(delays.len() * part / 100).copied().unwrap_or(0);
    println!("{name}: {polls} polls, {} delays, median {} ns, 99 % {} ns", delays.len(), at(50), at(99));
}
