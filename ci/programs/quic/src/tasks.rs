//! The calls over quinn, whose tasks, and what they wait for, are recorded. Nobody has the spans of quinn.
//!
//! ```text
//! quic-plain|quic-tasks [--streams N]
//! ```
//!
//! | task | its work |
//! |---|---|
//! | `call`, one for each stream | waits for a permit, asks over its stream, and reads the answer |
//! | `serve_stream`, one for each stream | answers |
//! | one | accepts the streams |
//! | those of quinn: an endpoint and a connection, each for the client and for the server | spawned by `Tasks` |
//!
//! At the end it prints what it counted.

use std::error::Error;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{
    AsyncTimer, AsyncUdpSocket, ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, Runtime,
    SendStream, ServerConfig, TokioRuntime,
};
use tokio::task::JoinSet;

#[path = "../../counts.rs"]
mod counts;

use crate::kit::{Semaphore, runtime, semaphore, spawn, task};
use counts::{Counted, Polls, Waits};

pub type Failure = Box<dyn Error + Send + Sync>;

/// Calls that are under way at the same time.
const CALLS: usize = 32;
/// Bytes of a question, and of its answer.
const BYTES: usize = 1000;

static QUINN_POLLS: Polls = Polls::new();
static SERVE_POLLS: Polls = Polls::new();
static CALL_POLLS: Polls = Polls::new();
static STREAM_POLLS: Polls = Polls::new();
static CALLS_WAITS: Waits = Waits::new();

/// quinn's runtime for tokio, whose tasks are recorded.
#[derive(Debug)]
struct Tasks;

impl Runtime for Tasks {
    fn new_timer(&self, until: Instant) -> Pin<Box<dyn AsyncTimer>> {
        TokioRuntime.new_timer(until)
    }

    fn spawn(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) {
        spawn(Counted::new(&QUINN_POLLS, future)); // quinn
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

pub fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--streams");
    let streams = arguments.nth(1).map_or(Ok(3200), |n| n.parse())?;
    let runtime = runtime(2)?;
    let served = runtime.block_on(call_all(streams))?;
    drop(runtime); // all tasks are over
    println!("streams: {served}");
    println!("polls of quinn:{QUINN_POLLS}");
    println!("polls of serve:{SERVE_POLLS}");
    println!("polls of call:{CALL_POLLS}");
    println!("polls of serve_stream:{STREAM_POLLS}");
    println!("waits for calls:{CALLS_WAITS}");
    Ok(())
}

/// Returns how many streams the server answered.
async fn call_all(streams: usize) -> Result<usize, Failure> {
    let (server, certificate) = server()?;
    let address = server.local_addr()?;
    let serving = spawn(Counted::new(&SERVE_POLLS, serve(server))); // serve
    let client = client(certificate)?;
    let connection = client.connect(address, "localhost")?.await?;

    let permits = Arc::new(semaphore("calls", CALLS));
    let mut calls = JoinSet::new();
    for _ in 0..streams {
        let call = call(connection.clone(), Arc::clone(&permits));
        calls.spawn(task("quic", "call", Counted::new(&CALL_POLLS, call)));
    }
    calls.join_all().await.into_iter().collect::<Result<(), _>>()?;
    connection.close(0_u8.into(), b"done");
    client.wait_idle().await;
    serving.await?
}

fn server() -> Result<(Endpoint, CertificateDer<'static>), Failure> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    Ok((endpoint(Some(config))?, certificate))
}

fn client(certificate: CertificateDer<'static>) -> Result<Endpoint, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = endpoint(None)?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    Ok(client)
}

fn endpoint(server: Option<ServerConfig>) -> io::Result<Endpoint> {
    let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(Tasks))
}

/// Answers the streams of one connection. Returns their number.
async fn serve(server: Endpoint) -> Result<usize, Failure> {
    let incoming = server.accept().await.ok_or("nobody called")?;
    let connection = incoming.await?;
    let mut streams = JoinSet::new();
    while let Ok((send, receive)) = connection.accept_bi().await {
        let stream = Counted::new(&STREAM_POLLS, serve_stream(send, receive));
        streams.spawn(task("quic", "serve_stream", stream));
    }
    let served = streams.join_all().await;
    let count = served.len();
    served.into_iter().collect::<Result<(), _>>()?;
    Ok(count)
}

async fn serve_stream(mut send: SendStream, mut receive: RecvStream) -> Result<(), Failure> {
    let question = receive.read_to_end(BYTES).await?;
    send.write_all(&question).await?;
    send.finish()?;
    Ok(())
}

async fn call(connection: Connection, permits: Arc<Semaphore>) -> Result<(), Failure> {
    let _permit = CALLS_WAITS.measure(permits.acquire()).await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&[7; BYTES]).await?;
    send.finish()?;
    let answer = receive.read_to_end(BYTES).await?;
    if answer.len() == BYTES { Ok(()) } else { Err("an answer is too short".into()) }
}
