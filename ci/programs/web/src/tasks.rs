//! The HTTP server whose tasks, and what they wait for, are recorded. It has no spans of `tracing`.
//!
//! ```text
//! web-plain|web-tasks [--pool CONNECTIONS] [--hold MS] [--block MS]
//! ```
//!
//! It prints its address, answers `/users/ID` until its standard input ends, and then prints what it counted.
//!
//! | task | its work |
//! |---|---|
//! | one for each connection of a client | hyper's HTTP/1 |
//! | `query`, one for each request | takes a connection of the pool, asks, and appends to the log |
//! | one | the database: answers one question after the other |
//!
//! `append` has a life of its own, inside of that of `query`.
//!
//! `--hold` keeps a connection of the pool for so long. With `--block` every hundredth `append` blocks its
//! worker for so long. These are causes for `hairline explain`.

use std::error::Error;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

#[path = "../../counts.rs"]
mod counts;

use crate::kit::{Mutex, Receiver, Semaphore, Sender, channel, life, mutex, runtime, semaphore, spawn, task};
use counts::{Counted, Polls, Waits};

pub type Failure = Box<dyn Error + Send + Sync>;

static CONNECTION_POLLS: Polls = Polls::new();
static DATABASE_POLLS: Polls = Polls::new();
static QUERY_POLLS: Polls = Polls::new();
static POOL_WAITS: Waits = Waits::new();
static QUESTIONS_WAITS: Waits = Waits::new();
static LOG_WAITS: Waits = Waits::new();

pub fn main() -> Result<(), Failure> {
    let database = Database {
        connections: semaphore("pool", number("--pool")?.unwrap_or(4)),
        hold: number("--hold")?,
        block: number("--block")?,
        log: mutex("log", 0),
    };
    let runtime = runtime(2)?;
    runtime.block_on(serve(database))?;
    drop(runtime); // all tasks are over
    println!("polls of connection:{CONNECTION_POLLS}");
    println!("polls of database:{DATABASE_POLLS}");
    println!("polls of query:{QUERY_POLLS}");
    println!("waits for pool:{POOL_WAITS}");
    println!("waits for questions:{QUESTIONS_WAITS}");
    println!("waits for log:{LOG_WAITS}");
    Ok(())
}

/// The number that follows an argument.
fn number<T: std::str::FromStr>(name: &str) -> Result<Option<T>, T::Err> {
    std::env::args().skip_while(|argument| argument != name).nth(1).map(|n| n.parse()).transpose()
}

async fn serve(database: Database) -> Result<(), Failure> {
    let (questions, queue) = channel("questions", 1);
    spawn(Counted::new(&DATABASE_POLLS, answer_all(queue))); // database
    let state = Arc::new((database, questions));
    let app = Router::new().route("/users/{id}", get(user)).with_state(state);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("address: {}", listener.local_addr()?);
    std::io::stdout().flush()?;

    let mut end = end_of_input();
    let mut connections = Vec::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let connection = Counted::new(&CONNECTION_POLLS, talk(accepted?.0, app.clone()));
                connections.push(spawn(connection)); // connection
            }
            _ = &mut end => break,
        }
    }
    for connection in connections {
        connection.await??;
    }
    Ok(())
}

fn end_of_input() -> oneshot::Receiver<()> {
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        drop(ended);
    });
    end
}

async fn talk(stream: TcpStream, app: Router) -> Result<(), hyper::Error> {
    http1::Builder::new().serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)).await
}

type Question = (u64, oneshot::Sender<u64>);
type Shared = Arc<(Database, Sender<Question>)>;

async fn user(Path(id): Path<u64>, State(shared): State<Shared>) -> String {
    let query = async move { shared.0.query(id, &shared.1).await };
    let row = tokio::spawn(task("db", "query", Counted::new(&QUERY_POLLS, query))).await;
    format!("user {id}: {}\n", row.expect("no panic"))
}

async fn answer_all(mut queue: Receiver<Question>) {
    while let Some((id, answer)) = queue.recv().await {
        let _ = answer.send(id * 7);
    }
}

struct Database {
    connections: Semaphore,
    hold: Option<u64>,
    block: Option<u64>,
    log: Mutex<u64>,
}

impl Database {
    async fn query(&self, id: u64, questions: &Sender<Question>) -> u64 {
        let _connection = POOL_WAITS.measure(self.connections.acquire()).await.expect("the pool stays open");
        let (sender, answer) = oneshot::channel();
        QUESTIONS_WAITS.measure(questions.send((id, sender))).await.expect("the database runs");
        let row = answer.await.expect("the database answers");
        if let Some(time) = self.hold {
            tokio::time::sleep(Duration::from_millis(time)).await;
        }
        let mut log = LOG_WAITS.measure(self.log.lock()).await;
        let block = self.block.filter(|_| id % 100 == 50);
        life("db", "append", append(&mut log, row, block)).await;
        row
    }
}

/// The log is taken for longer than one poll.
async fn append(log: &mut u64, row: u64, block: Option<u64>) {
    *log += row;
    if let Some(time) = block {
        std::thread::sleep(Duration::from_millis(time));
    }
    tokio::task::yield_now().await;
}
