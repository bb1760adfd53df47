//! What the programs with tasks take from `hairline-tokio`, where `kit/tokio.rs` takes it from tokio.
#![allow(dead_code)] // each program needs a part of it

use std::io;

use hairline::{TraceFuture, TracedTask};
use hairline_tokio::TraceRuntime;
pub use hairline_tokio::spawn;
pub use hairline_tokio::sync::mpsc::{Receiver, Sender};
pub use hairline_tokio::sync::{Mutex, Semaphore};
use tokio::runtime::{Builder, Runtime};

pub fn runtime(workers: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(workers).enable_all().traced().build()
}

/// A future that is spawned as a task of this name.
#[track_caller]
pub fn task<F: Future>(category: &'static str, name: &'static str, future: F) -> TracedTask<F> {
    future.traced_task(category, name)
}

/// A part of a task, with a life of its own.
#[track_caller]
pub fn life<F: Future>(
    category: &'static str,
    name: &'static str,
    future: F,
) -> impl Future<Output = F::Output> {
    future.traced(category, name)
}

pub fn mutex<T>(name: &'static str, value: T) -> Mutex<T> {
    Mutex::named(name, value)
}

pub fn semaphore(name: &'static str, permits: usize) -> Semaphore {
    Semaphore::named(name, permits)
}

pub fn channel<T>(name: &'static str, size: usize) -> (Sender<T>, Receiver<T>) {
    hairline_tokio::sync::mpsc::channel_named(name, size)
}
