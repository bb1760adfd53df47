//! Serves one trace to the UI, to this machine only: a thread for each connection, none of which keeps the
//! others waiting.

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

/// How long a client may take to send its request.
const REQUEST_PATIENCE: Duration = Duration::from_secs(5);

/// How long a client may take nothing of its answer. The UI takes the trace as fast as it reads it.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

/// How long no connection is accepted after one could not be: there are too many open files, of all processes
/// for example.
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

    /// Answers until a client has the trace, or for ever.
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
                    let _ = fetched.send(()); // nobody waits for it if the process is about to end
                }
            };
            // Where no thread can be had the connection is closed.
            let _ = thread::Builder::new().name("answer".to_owned()).spawn(answer);
        }
    }
}

/// Answers the request of a connection. Returns whether the client has the trace, all of it.
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
