//! An HTTP server with a database behind it: axum, tower-http's `TraceLayer` and `#[instrument]`.
//!
//! ```text
//! web --with none|subscriber|layer|peer
//! ```
//!
//! It prints its address, answers `/users/ID` until its standard input ends, and then prints how often each
//! instrumented future was polled.
//!
//! ```text
//! request             tower-http's span, with the URI
//!   handler           its id is that of the URI
//!     query           the same id; waits for a connection, then for the answer
//! ```

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tower_http::trace::TraceLayer;
use tracing::{Instrument, info_span};

#[path = "../../traced.rs"]
mod traced;

use traced::{Counted, Failure, install};

/// Connections to the database, for all requests.
const POOL: usize = 4;

/// Polls of all futures of one kind, counted beside the trace.
static HANDLER_POLLS: AtomicU64 = AtomicU64::new(0);
static QUERY_POLLS: AtomicU64 = AtomicU64::new(0);

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Failure> {
    let _peer = install()?;

    let app = Router::new()
        .route("/users/{id}", get(user))
        .layer(TraceLayer::new_for_http())
        .with_state(Arc::new(Database::open()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("address: {}", listener.local_addr()?);
    std::io::stdout().flush()?;
    axum::serve(listener, app).with_graceful_shutdown(end_of_input()).await?;
    println!("polls of handler: {}", HANDLER_POLLS.load(Relaxed));
    println!("polls of query: {}", QUERY_POLLS.load(Relaxed));
    Ok(())
}

async fn end_of_input() {
    let (ended, end) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(ended);
    });
    let _ = end.await;
}

async fn user(Path(id): Path<u64>, State(database): State<Arc<Database>>) -> String {
    let answer = async move {
        let row = database.query(id).await;
        format!("user {id}: {row}\n")
    };
    Counted::new(&HANDLER_POLLS, answer).instrument(info_span!("handler", id)).await
}

/// A task that answers one question after the other.
struct Database {
    connections: Semaphore,
    questions: mpsc::Sender<(u64, oneshot::Sender<u64>)>,
}

impl Database {
    fn open() -> Self {
        let (questions, mut queue) = mpsc::channel::<(u64, oneshot::Sender<u64>)>(POOL);
        tokio::spawn(async move {
            while let Some((id, answer)) = queue.recv().await {
                let _ = answer.send(id * 7);
            }
        });
        Self { connections: Semaphore::new(POOL), questions }
    }

    async fn query(&self, id: u64) -> u64 {
        let query = async move {
            let _connection = self.connections.acquire().await.expect("the pool stays open");
            let (sender, answer) = oneshot::channel();
            self.questions.send((id, sender)).await.expect("the database runs");
            answer.await.expect("the database answers")
        };
        Counted::new(&QUERY_POLLS, query).instrument(info_span!("query", id)).await
    }
}
