//! A server that is traced on request: `GET /debug/trace?seconds=5` answers with a trace of the next five
//! seconds. One at a time; whoever asks meanwhile gets 409.
//!
//! ```text
//! cargo run --release -p hairline-examples --features web --example on_demand
//! ```
//!
//! The program asks itself twice at the same time, under load, and leaves the answer in `on_demand.pftrace`.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::routing::get;
use hairline::{MemoryOutput, Session, trace_scope};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The longest recording, in seconds, and the largest one, in bytes: it is in memory until it is sent.
const LONGEST: f64 = 60.0;
const LARGEST: u64 = 256 << 20;

/// The handler. Such a route is for the people who run the server: it is on a port that others do not reach.
async fn trace(RawQuery(query): RawQuery) -> Result<Vec<u8>, (StatusCode, String)> {
    let seconds = query.and_then(|query| query.strip_prefix("seconds=")?.parse().ok()).unwrap_or(5.0);
    let memory = MemoryOutput::new();
    let session = Session::builder().output_memory(&memory).max_file_size(LARGEST).start();
    let session = session.map_err(|e| (StatusCode::CONFLICT, e.to_string()))?;
    tokio::time::sleep(Duration::from_secs_f64(f64::clamp(seconds, 0.0, LONGEST))).await;
    // A client that goes away drops the future, and with it the session.
    let stopped = tokio::task::spawn_blocking(|| session.stop()).await.map_err(|e| e.to_string());
    let stopped = stopped.and_then(|stopped| stopped.map_err(|e| e.to_string()));
    stopped.map_err(|e| (StatusCode::INTERNAL_SERVER_ERROR, e))?;
    Ok(memory.to_vec())
}

async fn work() -> String {
    trace_scope!("app", "work");
    (0..1_000_u64).map(|n| n * n).sum::<u64>().to_string()
}

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = Router::new().route("/work", get(work)).route("/debug/trace", get(trace));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async { axum::serve(listener, app).await });

    let load = tokio::spawn(async move {
        while get_page(address, "/work").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    let asked = || get_page(address, "/debug/trace?seconds=0.3");
    let (first, second) = tokio::join!(asked(), asked());
    load.abort();
    let mut answers = [first?, second?];
    answers.sort_by_key(|(status, _)| *status);
    let [(ok, trace), (conflict, why)] = &answers;
    println!("{ok}: {} bytes, {conflict}: {}", trace.len(), String::from_utf8_lossy(why));
    std::fs::write("on_demand.pftrace", trace)?;
    Ok(())
}

/// One request over HTTP/1.1: the status, and the answer's content.
async fn get_page(address: SocketAddr, path: &str) -> io::Result<(u16, Vec<u8>)> {
    let mut connection = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).await?;
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status =
        String::from_utf8_lossy(&answer[..head]).split(' ').nth(1).and_then(|code| code.parse().ok());
    Ok((status.ok_or(io::ErrorKind::InvalidData)?, answer.split_off(head + 4)))
}
