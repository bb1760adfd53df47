//! What the programs with tasks take from tokio: the floor, without Hairline.
#![allow(dead_code)] // each program needs a part of it

use std::io;

use tokio::runtime::{Builder, Runtime};
pub use tokio::spawn;
pub use tokio::sync::mpsc::{Receiver, Sender};
pub use tokio::sync::{Mutex, Semaphore};

pub fn runtime(workers: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread().worker_threads(workers).enable_all().build()
}

/// A future that is spawned as a task of this name.
pub fn task<F: Future>(_category: &'static str, _name: &'static str, future: F) -> F {
    future
}

/// A part of a task, with a life of its own.
pub fn life<F: Future>(_category: &'static str, _name: &'static str, future: F) -> F {
    future
}

pub fn mutex<T>(_name: &'static str, value: T) -> Mutex<T> {
    Mutex::new(value)
}

pub fn semaphore(_name: &'static str, permits: usize) -> Semaphore {
    Semaphore::new(permits)
}

pub fn channel<T>(_name: &'static str, size: usize) -> (Sender<T>, Receiver<T>) {
    tokio::sync::mpsc::channel(size)
}
