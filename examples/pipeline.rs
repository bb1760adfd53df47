//! Counts the words of every file in a folder, on a pool of threads behind a bounded queue.
//!
//! ```text
//! cargo run --release -p hairline-examples --example pipeline -- \
//!     [FOLDER] [--workers N] [--top N] [--trace FILE]
//! HAIRLINE=pipeline.fxt cargo run --release -p hairline-examples --example pipeline -- FOLDER
//! ```
//!
//! The answer is the same with tracing and without. The last line says how many scopes the program entered,
//! by its own count, to be compared with the slices in the trace.

use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::{env, fs, thread};

use hairline::{Session, trace_counter, trace_instant, trace_scope};

/// Files waiting for a worker.
const QUEUE: usize = 32;
/// Larger files are left out.
const LARGEST: u64 = 8 << 20;
/// Folders that hold no source.
const SKIPPED: [&str; 3] = [".git", "target", "node_modules"];

static SCOPES: AtomicU64 = AtomicU64::new(0);
static QUEUED: AtomicI64 = AtomicI64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

/// A scope in the trace, counted by the program too.
macro_rules! scope {
    ($($what:tt)*) => {
        trace_scope!($($what)*);
        SCOPES.fetch_add(1, Relaxed);
    };
}

type Words = HashMap<String, u64>;

#[derive(Default)]
struct Tally {
    files: u64,
    words: Words,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::parse(env::args().skip(1))?;
    let session = match &options.trace {
        Some(path) => Some(Session::builder().output(path).start()?),
        None => None,
    };
    let tally = run(&options)?;
    let (distinct, total) = (tally.words.len(), tally.words.values().sum::<u64>());
    println!("{} files, {} bytes, {total} words, {distinct} distinct", tally.files, BYTES.load(Relaxed));
    for (word, count) in top(&tally.words, options.top) {
        println!("{count:>8} {word}");
    }
    println!("scopes: {}", SCOPES.load(Relaxed));
    if let Some(session) = session {
        let summary = session.stop()?;
        eprintln!("trace: {} records, {} lost", summary.records, summary.lost.total());
    }
    Ok(())
}

fn run(options: &Options) -> Result<Tally, Box<dyn Error>> {
    scope!("pipeline", "run", workers = options.workers);
    let (sender, receiver) = sync_channel(QUEUE);
    let receiver = Mutex::new(receiver);
    thread::scope(|threads| {
        let mut workers = Vec::new();
        for n in 1..=options.workers {
            let receiver = &receiver;
            let worker = thread::Builder::new().name(format!("worker-{n}"));
            workers.push(worker.spawn_scoped(threads, move || work(receiver))?);
        }
        walk(&options.folder, &sender)?;
        drop(sender); // the workers' queue ends here
        let mut all = Tally::default();
        for worker in workers {
            let part = worker.join().map_err(|_| "a worker panicked")?;
            merge(&mut all, part);
        }
        Ok(all)
    })
}

/// Queues every file below the folder, in the order of their names.
fn walk(folder: &Path, queue: &SyncSender<PathBuf>) -> Result<(), Box<dyn Error>> {
    scope!("pipeline.walk", "walk", folder = %folder.display());
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() && !SKIPPED.iter().any(|name| entry.file_name() == *name) {
            walk(&path, queue)?;
        } else if kind.is_file() {
            if entry.metadata()?.len() > LARGEST {
                trace_instant!("pipeline.walk", "too large", path = %path.display());
                continue;
            }
            trace_counter!("pipeline", "queue", QUEUED.fetch_add(1, Relaxed) + 1);
            queue.send(path)?;
        }
    }
    Ok(())
}

/// Takes files from the queue until it ends.
fn work(queue: &Mutex<Receiver<PathBuf>>) -> Tally {
    let mut tally = Tally::default();
    loop {
        let next = {
            scope!("pipeline.work", "wait");
            queue.lock().unwrap_or_else(PoisonError::into_inner).recv()
        };
        let Ok(path) = next else { return tally };
        trace_counter!("pipeline", "queue", QUEUED.fetch_sub(1, Relaxed) - 1);
        scope!("pipeline.work", "file", path = %path.display());
        if let Some(text) = read(&path) {
            let words = tokenise(&text);
            count(&mut tally.words, &words);
            tally.files += 1;
        }
    }
}

fn read(path: &Path) -> Option<String> {
    scope!("pipeline.work", "read");
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(e) => {
            trace_instant!("pipeline.work", "unreadable", error = %e);
            return None;
        }
    };
    let read = BYTES.fetch_add(bytes.len() as u64, Relaxed) + bytes.len() as u64;
    trace_counter!("pipeline", "bytes read", read);
    let text = String::from_utf8(bytes);
    if text.is_err() {
        trace_instant!("pipeline.work", "not text", path = %path.display());
    }
    text.ok()
}

fn tokenise(text: &str) -> Vec<&str> {
    scope!("pipeline.work", "tokenise", bytes = text.len());
    text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| w.len() > 1).collect()
}

fn count(into: &mut Words, words: &[&str]) {
    scope!("pipeline.work", "count", words = words.len());
    for word in words {
        match into.get_mut(*word) {
            Some(count) => *count += 1,
            None => drop(into.insert((*word).to_owned(), 1)),
        }
    }
}

fn merge(into: &mut Tally, part: Tally) {
    scope!("pipeline", "merge", files = part.files, words = part.words.len());
    into.files += part.files;
    for (word, count) in part.words {
        *into.words.entry(word).or_default() += count;
    }
}

/// The most frequent words; among equals in the order of the alphabet.
fn top(words: &Words, n: usize) -> Vec<(&str, u64)> {
    scope!("pipeline", "sort", words = words.len());
    let mut sorted: Vec<_> = words.iter().map(|(word, count)| (word.as_str(), *count)).collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    sorted.truncate(n);
    sorted
}

struct Options {
    folder: PathBuf,
    workers: usize,
    top: usize,
    trace: Option<PathBuf>,
}

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        // By default the repository that this example is in.
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
        let workers = thread::available_parallelism()?.get();
        let mut options = Self { folder: repository.to_owned(), workers, top: 10, trace: None };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--workers" => options.workers = value()?.parse().map_err(|e| format!("--workers: {e}"))?,
                "--top" => options.top = value()?.parse().map_err(|e| format!("--top: {e}"))?,
                "--trace" => options.trace = Some(value()?.into()),
                flag if flag.starts_with('-') => return Err(format!("unknown option {flag}").into()),
                folder => options.folder = folder.into(),
            }
        }
        if options.workers == 0 {
            return Err("--workers: at least one".into());
        }
        Ok(options)
    }
}
