//! The open connections. Their number is limited, and no waiting connection blocks a new one.
//!
//! Every user of the machine can open connections and send nothing. So at the limit the server closes the
//! oldest connection that it waits for. A client that sends its request at once is answered, however many
//! idle connections there are.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The most connections at a time: each has a thread. A browser opens 6 to one server.
const MOST: usize = 32;

#[derive(Debug, Default)]
pub(super) struct Connections {
    open: Mutex<Open>,
    one_ended: Condvar,
}

#[derive(Debug, Default)]
struct Open {
    count: usize,
    /// The number of the next connection.
    next: u64,
    /// The connections that the server waits for, the oldest first.
    waiting: BTreeMap<u64, Arc<TcpStream>>,
}

/// One of the open connections.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Arc<TcpStream>,
    number: u64,
    all: Arc<Connections>,
}

impl Connections {
    /// Counts a connection. If there are too many, closes the oldest one that the server waits for, and
    /// waits until one of them has ended.
    pub(super) fn admit(self: &Arc<Self>, stream: TcpStream) -> Connection {
        let stream = Arc::new(stream);
        let mut open = self.lock();
        while open.count >= MOST {
            if let Some((_, oldest)) = open.waiting.pop_first() {
                // Wakes its thread. If it is closed already, its thread is about to end.
                let _ = oldest.shutdown(Shutdown::Both);
            }
            open = self.one_ended.wait(open).unwrap_or_else(PoisonError::into_inner);
        }
        let number = open.next;
        open.next += 1;
        open.count += 1;
        open.waiting.insert(number, Arc::clone(&stream));
        drop(open);
        Connection { stream, number, all: Arc::clone(self) }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// From here on the server does not wait for the client: the connection stays open.
    pub(super) fn keep(&self) {
        self.all.lock().waiting.remove(&self.number);
    }

    /// From here on the server waits for the client, as at first.
    pub(super) fn release(&self) {
        self.all.lock().waiting.insert(self.number, Arc::clone(&self.stream));
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.all.lock();
        open.waiting.remove(&self.number);
        open.count -= 1;
        drop(open);
        self.all.one_ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_oldest_connection_that_waits_makes_room() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let all = Arc::new(Connections::default());
        let connect = || {
            let client = TcpStream::connect(listener.local_addr().expect("an address")).expect("connected");
            (client, all.admit(listener.accept().expect("accepted").0))
        };
        let mut open: Vec<_> = (0..MOST).map(|_| connect()).collect();
        open[0].1.keep();
        open[2].1.keep();
        open[2].1.release();
        let (mut oldest, its) = open.remove(1);
        // Its thread ends when its read does.
        let thread = std::thread::spawn(move || assert_eq!(its.stream().read(&mut [0]).expect("closed"), 0));
        open.push(connect());
        thread.join().expect("no panic");
        assert_eq!(oldest.read(&mut [0]).expect("closed"), 0);
        let counts = || {
            let open = all.lock();
            (open.count, open.waiting.len())
        };
        assert_eq!(counts(), (MOST, MOST - 1));
        drop(open);
        assert_eq!(counts(), (0, 0));
    }
}
