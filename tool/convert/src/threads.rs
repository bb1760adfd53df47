//! Threads at the ends of a conversion: they read, unpack, pack and write bytes while the caller converts.
//!
//! ```text
//! file, decoder --(blocks)--> ReadAhead     items     write_behind --(blocks)--> encoder, file
//!                <-(spare)--                                        <-(spare)--
//! ```
//!
//! Items borrow from their reader, so none crosses to another thread; blocks of bytes do. A few blocks go
//! back and forth, which bounds the memory. A block is handed over after one read or one write, full or not:
//! a live input waits no longer than without threads.

use std::io::{self, ErrorKind, Read, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle, ScopedJoinHandle};

/// The bytes of a block at most. Four blocks fit into the cache of a core.
const BLOCK: usize = 1 << 18;
/// The number of blocks: one on each side, and two on their way.
const BLOCKS: usize = 4;

/// An input that a thread of its own reads ahead, by up to 1 MiB. Each read returns the bytes or the error of
/// one read of the input, in the same order.
///
/// The thread starts at the first read. It ends after the input's end, or after the next read of the input
/// once this is dropped. Dropping does not wait for it, since the writer of a pipe may never write.
///
/// ```
/// use std::io::Read;
/// use hairline_convert::ReadAhead;
///
/// let mut text = String::new();
/// ReadAhead::new(|| &b"[]"[..]).read_to_string(&mut text)?;
/// assert_eq!(text, "[]");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// A read fails if the thread cannot be started.
///
/// # Panics
/// A read panics if the input does.
pub struct ReadAhead {
    /// The thread's work, until it starts.
    work: Option<Work>,
    thread: Option<JoinHandle<()>>,
    filled: Receiver<Filled>,
    spare: Sender<Vec<u8>>,
    /// The block that is read, and its bytes that are not.
    block: Vec<u8>,
    rest: std::ops::Range<usize>,
}

type Work = Box<dyn FnOnce() + Send>;

/// A block, and the result of the read that filled it.
type Filled = (Vec<u8>, io::Result<usize>);

impl std::fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReadAhead").finish_non_exhaustive()
    }
}

impl ReadAhead {
    /// An input that `open` makes on the thread. So the input need not be `Send`.
    #[must_use]
    pub fn new<R: Read>(open: impl FnOnce() -> R + Send + 'static) -> Self {
        let ((filling, filled), (spare, spares)) = (channel(), channel());
        for _ in 1..BLOCKS {
            let _ = spare.send(Vec::new()); // the receiver is here
        }
        let work: Work = Box::new(move || fill(open(), &spares, &filling));
        Self { work: Some(work), thread: None, filled, spare, block: Vec::new(), rest: 0..0 }
    }
}

/// Reads until the input or the reader ends.
fn fill(mut input: impl Read, spares: &Receiver<Vec<u8>>, filling: &Sender<Filled>) {
    for mut block in spares {
        block.resize(BLOCK, 0);
        let read = loop {
            match input.read(&mut block) {
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        let is_end = matches!(read, Ok(0));
        if filling.send((block, read)).is_err() || is_end {
            return;
        }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(work) = self.work.take() {
            self.thread = Some(thread::Builder::new().name("read".to_owned()).spawn(work)?);
        }
        if self.rest.is_empty() && !buffer.is_empty() {
            let Ok((block, read)) = self.filled.recv() else {
                // The thread has ended: at the end of the input, or by a panic.
                return self
                    .thread
                    .take()
                    .map_or(Ok(()), JoinHandle::join)
                    .map_or_else(|e| resume_unwind(e), |()| Ok(0));
            };
            let _ = self.spare.send(std::mem::replace(&mut self.block, block)); // unwanted after the end
            self.rest = 0..read?;
        }
        let given = (&self.block[self.rest.clone()]).read(buffer)?;
        self.rest.start += given;
        Ok(given)
    }
}

/// Calls `work` with a stream whose bytes a thread of its own writes to `output`, at most 1 MiB behind.
/// All bytes are written when this returns, also if `work` fails.
///
/// ```
/// use hairline_convert::write_behind;
///
/// let mut written = Vec::new();
/// write_behind(&mut written, |output| output.write_all(b"[]"))??;
/// assert_eq!(written, b"[]");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Fails if the thread cannot be started, or with an error of `output` that `work` was not told. A write in
/// `work` fails with the error of a write before it.
///
/// # Panics
/// Panics if `work` or `output` does.
pub fn write_behind<T>(
    output: &mut (dyn Write + Send),
    work: impl FnOnce(&mut dyn Write) -> T,
) -> io::Result<T> {
    // An empty block asks for a flush.
    let write = |block: &mut Vec<u8>| if block.is_empty() { output.flush() } else { output.write_all(block) };
    with_worker(BLOCKS, write, |worker| work(worker))
}

/// Calls `work` with a thread that calls `each` with the values that `work` gives to it, in their order.
/// `count` values go back and forth. `each` has got all of them when this returns.
///
/// ```
/// use hairline_convert::with_worker;
///
/// let mut sum = 0;
/// let add = |value: &mut i32| {
///     sum += *value;
///     Ok(())
/// };
/// with_worker(2, add, |worker| {
///     (0..100).try_for_each(|n| {
///         worker.take()?;
///         worker.give(n)
///     })
/// })??;
/// assert_eq!(sum, 4950);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Fails if the thread cannot be started, or with an error of `each` that `work` was not told. After an
/// error, `each` is not called again.
///
/// # Panics
/// Panics if `work` or `each` does.
pub fn with_worker<V: Default + Send, T>(
    count: usize,
    mut each: impl FnMut(&mut V) -> io::Result<()> + Send,
    work: impl FnOnce(&mut Worker<'_, V>) -> T,
) -> io::Result<T> {
    thread::scope(|scope| {
        let ((given, values), (done, spare)) = (channel(), channel());
        let serve = move || {
            for mut value in values {
                each(&mut value)?;
                let _ = done.send(value); // none is wanted at the end
            }
            Ok(())
        };
        let thread = Some(thread::Builder::new().name("worker".to_owned()).spawn_scoped(scope, serve)?);
        let spares = std::iter::repeat_with(V::default).take(count).collect();
        let mut worker = Worker { given, spare, spares, count, thread };
        let result = work(&mut worker);
        let Worker { given, thread, .. } = worker;
        drop(given); // the end of its values
        thread.map_or(Ok(()), ended)?;
        Ok(result)
    })
}

/// The result of a worker's thread.
fn ended(thread: ScopedJoinHandle<'_, io::Result<()>>) -> io::Result<()> {
    thread.join().unwrap_or_else(|e| resume_unwind(e))
}

/// The thread of [`with_worker`], which has an example.
pub struct Worker<'s, V> {
    given: Sender<V>,
    spare: Receiver<V>,
    /// The values that are not with the thread.
    spares: Vec<V>,
    count: usize,
    /// `None` once its error is told.
    thread: Option<ScopedJoinHandle<'s, io::Result<()>>>,
}

impl<V> std::fmt::Debug for Worker<'_, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").finish_non_exhaustive()
    }
}

impl<V> Worker<'_, V> {
    /// Takes a value that the thread does not need, or waits for it. First come default values, then
    /// those that the thread has done.
    ///
    /// # Errors
    /// Fails with the error of the thread, at every call after it.
    pub fn take(&mut self) -> io::Result<V> {
        match self.spares.pop() {
            Some(value) => Ok(value),
            None => self.spare.recv().map_err(|_| self.error()),
        }
    }

    /// Gives a value to the thread. Does not wait. Call [`take`](Self::take) before: it bounds the memory.
    ///
    /// # Errors
    /// As [`take`](Self::take).
    pub fn give(&mut self, value: V) -> io::Result<()> {
        self.given.send(value).map_err(|_| self.error())
    }

    /// Waits until the thread has done all values.
    fn wait(&mut self) -> io::Result<()> {
        while self.spares.len() < self.count {
            let value = self.spare.recv().map_err(|_| self.error())?;
            self.spares.push(value);
        }
        Ok(())
    }

    /// The error of a thread that has ended before its time.
    fn error(&mut self) -> io::Error {
        let told = || io::Error::new(ErrorKind::BrokenPipe, "a write before this one failed");
        self.thread.take().map_or(Ok(()), ended).err().unwrap_or_else(told)
    }
}

impl Write for Worker<'_, Vec<u8>> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = &bytes[..bytes.len().min(BLOCK)];
        if !taken.is_empty() {
            let mut block = self.take()?;
            block.clear();
            block.extend_from_slice(taken);
            self.give(block)?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut block = self.take()?;
        block.clear();
        self.give(block)?;
        self.wait()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::time::Duration;

    use super::*;

    /// Each read gives what a sender sent. Without a sender it is at its end.
    struct Script(Receiver<io::Result<Vec<u8>>>);

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Ok(bytes) = self.0.recv() else { return Ok(0) };
            (&bytes?[..]).read(buffer)
        }
    }

    #[test]
    fn reads_and_errors_come_in_order_and_as_soon_as_they_are_there() {
        let (sender, script) = channel();
        let mut reader = ReadAhead::new(move || Script(script));
        let mut buffer = [0; 4];
        for part in [&b"abc"[..], b"d", b"efghij"] {
            sender.send(Ok(part.to_vec())).expect("it listens");
            for piece in part.chunks(4) {
                // The sender sends no more before: a reader that fills its block would wait for ever.
                assert_eq!(reader.read(&mut buffer).expect("read"), piece.len());
                assert_eq!(&buffer[..piece.len()], piece);
            }
        }
        sender.send(Err(ErrorKind::Interrupted.into())).expect("it listens");
        sender.send(Err(io::Error::other("first"))).expect("it listens");
        sender.send(Err(io::Error::other("second"))).expect("it listens");
        sender.send(Ok(b"k".to_vec())).expect("it listens");
        assert_eq!(reader.read(&mut buffer).expect_err("an error").to_string(), "first");
        assert_eq!(reader.read(&mut buffer).expect_err("an error").to_string(), "second");
        assert_eq!(reader.read(&mut buffer).expect("read"), 1);
        drop(sender);
        for _ in 0..2 {
            assert_eq!(reader.read(&mut buffer).expect("the end"), 0);
        }
    }

    #[test]
    fn a_reader_that_is_dropped_does_not_wait_for_its_input() {
        let (sender, script) = channel();
        let mut reader = ReadAhead::new(move || Script(script));
        sender.send(Ok(b"a".to_vec())).expect("it listens");
        assert_eq!(reader.read(&mut [0]).expect("read"), 1);
        drop(reader);
        let mut waited = Duration::ZERO;
        while sender.send(Ok(b"b".to_vec())).is_ok() {
            let step = Duration::from_millis(1);
            std::thread::sleep(step);
            waited += step;
            assert!(waited < Duration::from_secs(20), "the thread reads on");
        }
    }

    #[test]
    fn long_inputs_and_outputs_are_whole() {
        let bytes: Vec<u8> = (0..5 * BLOCK + 7).map(|n| (n % 251) as u8).collect();
        let input = bytes.clone();
        let mut read = Vec::new();
        ReadAhead::new(|| io::Cursor::new(input)).read_to_end(&mut read).expect("read");
        assert!(read == bytes);
        let mut written = Vec::new();
        write_behind(&mut written, |output| output.write_all(&bytes)).expect("written").expect("written");
        assert!(written == bytes);
    }

    /// Takes so many bytes, then fails. Notes flushes.
    struct Full(Vec<u8>, usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.1 - self.0.len());
            self.0.extend_from_slice(&bytes[..taken]);
            if taken == 0 { Err(io::Error::new(ErrorKind::StorageFull, "full")) } else { Ok(taken) }
        }

        fn flush(&mut self) -> io::Result<()> {
            self.0.push(b'!');
            Ok(())
        }
    }

    #[test]
    fn an_error_of_the_output_is_told_once_and_nothing_is_written_after_it() {
        let mut full = Full(Vec::new(), 10);
        let failed = write_behind(&mut full, |output| {
            let failed = (0..100).map(|_| output.write_all(b"abc")).find_map(Result::err);
            assert!(output.write_all(b"x").is_err() && output.flush().is_err());
            failed
        });
        let failed = failed.expect("it was told").expect("an error");
        assert_eq!((failed.kind(), failed.to_string()), (ErrorKind::StorageFull, "full".to_owned()));
        assert_eq!(full.0, b"abcabcabca");
        let untold = write_behind(&mut Full(Vec::new(), 2), |output| output.write_all(b"abc"));
        assert_eq!(untold.expect_err("the last write").kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn a_flush_waits_for_all_that_was_written() {
        let (sender, script) = channel();
        struct Tells(Sender<usize>);
        impl Write for Tells {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                std::thread::sleep(Duration::from_millis(5));
                self.0.send(bytes.len()).map_err(io::Error::other)?;
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                self.0.send(0).map_err(io::Error::other)
            }
        }
        write_behind(&mut Tells(sender), |output| {
            for len in [3, 1, 4, 1, 5, 9] {
                output.write_all(&vec![0; len]).expect("written");
            }
            output.flush().expect("flushed");
            assert_eq!(script.try_iter().collect::<Vec<_>>(), [3, 1, 4, 1, 5, 9, 0]);
        })
        .expect("written");
    }

    #[test]
    fn a_panic_of_the_other_side_comes_back() {
        struct Panics;
        impl Read for Panics {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                panic!("of the input")
            }
        }
        impl Write for Panics {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                panic!("of the output")
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let message = |work: &mut dyn FnMut()| {
            let panic = catch_unwind(AssertUnwindSafe(work)).expect_err("a panic");
            *panic.downcast::<&str>().expect("a text")
        };
        assert_eq!(message(&mut || drop(ReadAhead::new(|| Panics).read(&mut [0]))), "of the input");
        let mut write = || drop(write_behind(&mut Panics, |output| output.write_all(b"a")));
        assert_eq!(message(&mut write), "of the output");
    }
}
