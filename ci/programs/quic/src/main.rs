//! quinn over loopback: a server and a client in one process, a stream for each call.
//!
//! ```text
//! quic --with none|subscriber|layer|peer [--streams N]
//! ```
//!
//! quinn has spans of its own: `drive` for a connection, `recv`, `frame` and `send` for packets. Added to
//! them:
//!
//! ```text
//! call, serve_stream    the client's and the server's part of one stream, both with its number
//!   exchange            in `call`: from the first byte sent to the last one received
//! ```
//!
//! At the end it prints how often each of these futures was polled.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig};
use tokio::task::JoinSet;
use tracing::{Instrument, info_span};

#[path = "../../traced.rs"]
mod traced;

use traced::{Counted, Failure, argument, install};

/// Calls that are under way at the same time.
const CALLS: usize = 32;
/// Bytes of a question, and of its answer.
const BYTES: usize = 1000;

/// Polls of all futures of one kind, counted beside the trace.
static CALL_POLLS: AtomicU64 = AtomicU64::new(0);
static EXCHANGE_POLLS: AtomicU64 = AtomicU64::new(0);
static SERVE_POLLS: AtomicU64 = AtomicU64::new(0);

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let _peer = install()?;
    let streams = argument("--streams").map_or(Ok(3200), |n| n.parse())?;

    let (server, certificate) = server()?;
    let address = server.local_addr()?;
    let serving = tokio::spawn(serve(server));
    let client = client(certificate)?;
    let connection = client.connect(address, "localhost")?.await?;

    let (mut begun, mut calls) = (0, JoinSet::new());
    while begun < streams || !calls.is_empty() {
        while begun < streams && calls.len() < CALLS {
            calls.spawn(call(connection.clone()));
            begun += 1;
        }
        if let Some(called) = calls.join_next().await {
            called??;
        }
    }
    connection.close(0_u8.into(), b"done");
    client.wait_idle().await;
    let served = serving.await??;
    println!("streams: {served}");
    println!("polls of call: {}", CALL_POLLS.load(Relaxed));
    println!("polls of exchange: {}", EXCHANGE_POLLS.load(Relaxed));
    println!("polls of serve_stream: {}", SERVE_POLLS.load(Relaxed));
    Ok(())
}

fn server() -> Result<(Endpoint, CertificateDer<'static>), Failure> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into())?;
    Ok((Endpoint::server(config, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?, certificate))
}

fn client(certificate: CertificateDer<'static>) -> Result<Endpoint, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    Ok(client)
}

/// Answers the streams of one connection. Returns their number.
async fn serve(server: Endpoint) -> Result<usize, Failure> {
    let incoming = server.accept().await.ok_or("nobody called")?;
    let connection = incoming.await?;
    let mut streams = JoinSet::new();
    while let Ok((send, receive)) = connection.accept_bi().await {
        let span = info_span!("serve_stream", stream = receive.id().index());
        streams.spawn(Counted::new(&SERVE_POLLS, serve_stream(send, receive)).instrument(span));
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

async fn call(connection: Connection) -> Result<(), Failure> {
    let (send, receive) = connection.open_bi().await?;
    let stream = receive.id().index();
    let called = async move {
        let exchanged = Counted::new(&EXCHANGE_POLLS, exchange(send, receive));
        let answer = exchanged.instrument(info_span!("exchange", stream)).await?;
        if answer.len() == BYTES { Ok(()) } else { Err("an answer is too short".into()) }
    };
    Counted::new(&CALL_POLLS, called).instrument(info_span!("call", stream)).await
}

async fn exchange(mut send: SendStream, mut receive: RecvStream) -> Result<Vec<u8>, Failure> {
    send.write_all(&[7; BYTES]).await?;
    send.finish()?;
    Ok(receive.read_to_end(BYTES).await?)
}
