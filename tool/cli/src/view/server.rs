//! Serves one trace to the UI on this machine, with a thread for each connection.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use crate::view::answers::{Reply, reply};
use crate::view::connections::{Connection, Connections};
use crate::view::content::Content;
use crate::view::http::{self, Answer, NoRequest, Request};

/// The time for a client to send its request.
const REQUEST_PATIENCE: Duration = Duration::from_secs(5);

/// The time that a client may accept nothing. The UI accepts the trace as fast as it reads it.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// The pause after a connection could not be accepted, for example because of too many open files.
const PAUSE: Duration = Duration::from_millis(50);

/// A port of this machine that no other machine can reach.
pub(super) struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    pub(super) fn start(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port))?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests until a client has the trace, or forever.
    pub(super) fn serve(self, content: Content, for_ever: bool) -> io::Result<()> {
        let (fetched, is_fetched) = mpsc::channel();
        let accept = move || self.accept(&Arc::new(content), &fetched);
        thread::Builder::new().name("accept".to_owned()).spawn(accept)?;
        while is_fetched.recv().is_ok() {
            if !for_ever {
                return Ok(());
            }
        }
        Err(io::Error::other("the server has ended"))
    }

    fn accept(&self, content: &Arc<Content>, fetched: &Sender<()>) {
        let connections = Arc::new(Connections::default());
        let server = self.address;
        for stream in self.listener.incoming() {
            let Ok(stream) = stream else {
                thread::sleep(PAUSE);
                continue;
            };
            let connection = connections.admit(stream);
            let (content, fetched) = (Arc::clone(content), fetched.clone());
            let answer = move || {
                if answer(&connection, server, &content) {
                    let _ = fetched.send(()); // the process may be about to end
                }
            };
            // If no thread can be started, the connection is closed.
            let _ = thread::Builder::new().name("answer".to_owned()).spawn(answer);
        }
    }
}

/// Answers the request of a connection. Returns whether the client received the whole trace.
fn answer(connection: &Connection, server: SocketAddr, content: &Content) -> bool {
    let stream = connection.stream();
    let request = Request::read(stream, REQUEST_PATIENCE);
    connection.keep();
    let reply = match (request, stream.peer_addr()) {
        (Ok(request), Ok(client)) => reply(&request, client, server, content),
        (Err(NoRequest::Refused(status)), _) => Reply::from(Answer::new(status)),
        (Err(NoRequest::Silence), _) | (_, Err(_)) => return false,
    };
    let is_sent = reply.answer.send(stream, ANSWER_PATIENCE).is_ok();
    connection.release();
    http::close(stream);
    is_sent && reply.has_trace
}
