//! An HTTP server with a database behind it, instrumented with the `tracing` crate alone.
//!
//! ```text
//! HAIRLINE=web.pftrace cargo run --release -p hairline-examples --features web --example web -- [REQUESTS]
//! ```
//!
//! A load loop in the same program sends the requests, 1,000 by default, over several connections at once;
//! then the server is shut down. Without HAIRLINE nothing is recorded, and the answers are the same.
//!
//! ```text
//! request                       from the middleware to the response
//!   user                        the handler
//!     query                     the database's part
//!       connect                 waits for one of the pool's connections
//!       round trip              waits for the answer
//!     rank, render              work, on one thread
//! ```

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{Html, Response};
use axum::routing::get;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tracing::{Instrument, Span, field, info_span, instrument, warn};
use tracing_subscriber::prelude::*;

/// Connections of the load loop.
const CLIENTS: usize = 4;
/// Connections to the database, for all requests.
const POOL: usize = 2;
/// Users that there are; the load loop asks for a tenth more.
const USERS: u64 = 1000;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    tracing_subscriber::registry().with(hairline::layer()).try_init()?;

    let requests = std::env::args().nth(1).map_or(Ok(1000), |n| n.parse())?;
    let app = Router::new()
        .route("/users/{id}", get(user))
        .layer(from_fn(traced))
        .with_state(Arc::new(Database::open()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let server = axum::serve(listener, app).with_graceful_shutdown(async { drop(stopped.await) });
    let server = tokio::spawn(async { server.await });

    let statuses = load(address, requests).await?;
    drop(stop);
    server.await??;
    for (status, count) in &statuses {
        println!("status {status}: {count}");
    }
    println!("requests: {}", statuses.values().sum::<u64>());
    Ok(())
}

/// Puts all that is done for a request into a span.
async fn traced(request: Request, next: Next) -> Response {
    let (method, path) = (request.method(), request.uri().path());
    let span = info_span!("request", %method, path, status = field::Empty);
    let answered = async {
        let response = next.run(request).await;
        Span::current().record("status", response.status().as_u16());
        response
    };
    answered.instrument(span).await
}

#[instrument(skip(database))]
async fn user(
    State(database): State<Arc<Database>>,
    Path(id): Path<u64>,
) -> Result<Html<String>, StatusCode> {
    match database.friends_of_friends(id).await {
        Some(known) => Ok(Html(render(id, &rank(&known)))),
        None => {
            warn!(id, "no such user");
            Err(StatusCode::NOT_FOUND)
        }
    }
}

/// Who is named most often, first.
#[instrument(skip_all, fields(known = known.len()))]
fn rank(known: &[u64]) -> Vec<(u64, usize)> {
    let mut times = BTreeMap::<u64, usize>::new();
    known.iter().for_each(|user| *times.entry(*user).or_default() += 1);
    let mut ranked: Vec<_> = times.into_iter().collect();
    ranked.sort_by_key(|(user, times)| (Reverse(*times), *user));
    ranked
}

#[instrument(skip(ranked), fields(rows = ranked.len()))]
fn render(id: u64, ranked: &[(u64, usize)]) -> String {
    let rows = ranked.iter().map(|(user, times)| format!("<li>user {user}, {times} times</li>"));
    format!("<h1>user {id} may know</h1><ol>{}</ol>", rows.collect::<String>())
}

/// Who knows whom, behind a pool of connections.
struct Database {
    pool: Semaphore,
    friends: BTreeMap<u64, Vec<u64>>,
}

impl Database {
    fn open() -> Self {
        let friends = |id: u64| (0..USERS).filter(|other| (id + 3 * other).is_multiple_of(7)).collect();
        Self { pool: Semaphore::new(POOL), friends: (0..USERS).map(|id| (id, friends(id))).collect() }
    }

    #[instrument(name = "query", target = "db", skip(self))]
    async fn friends_of_friends(&self, id: u64) -> Option<Vec<u64>> {
        let connect = info_span!(target: "db", "connect");
        let _connection = self.pool.acquire().instrument(connect).await.ok()?;
        let round_trip = info_span!(target: "db", "round trip");
        let answered = async {
            tokio::task::yield_now().await; // waits in any case, even where this thread stood still for so long
            tokio::time::sleep(Duration::from_micros(200 + id % 3 * 400)).await;
        };
        answered.instrument(round_trip).await;
        let friends = self.friends.get(&id)?.iter();
        Some(friends.filter_map(|friend| self.friends.get(friend)).flatten().copied().collect())
    }
}

/// Sends the requests over several connections at once; how many were answered with which status.
async fn load(address: SocketAddr, requests: u64) -> Result<BTreeMap<u16, u64>, Box<dyn Error>> {
    let sent = Arc::new(AtomicU64::new(0));
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let sent = sent.clone();
        clients.spawn(async move {
            let mut connection = BufReader::new(TcpStream::connect(address).await?);
            let mut statuses = Vec::new();
            loop {
                let n = sent.fetch_add(1, Relaxed);
                if n >= requests {
                    return io::Result::Ok(statuses);
                }
                statuses.push(fetch(&mut connection, n * 7 % (USERS + USERS / 10)).await?);
            }
        });
    }
    let mut counts = BTreeMap::new();
    while let Some(client) = clients.join_next().await {
        for status in client?? {
            *counts.entry(status).or_default() += 1;
        }
    }
    Ok(counts)
}

/// One request over HTTP/1.1, and the status of its response, which is read to its end.
async fn fetch(connection: &mut BufReader<TcpStream>, id: u64) -> io::Result<u16> {
    let request = format!("GET /users/{id} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let (mut status, mut length) = (None, 0);
    let mut line = String::new();
    while connection.read_line(&mut line).await? > 2 {
        match line.trim_end().split_once(' ') {
            Some(("HTTP/1.1", rest)) => status = rest.get(..3).and_then(|code| code.parse().ok()),
            Some(("content-length:", rest)) => length = rest.parse().unwrap_or(0),
            _ => {}
        }
        line.clear();
    }
    tokio::io::copy(&mut connection.take(length), &mut tokio::io::sink()).await?;
    status.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
