//! A server with 200 requests `web/request`, some of which are slow for one planted cause. The test `tools`
//! records it by the environment, and asks `hairline explain` for the cause. If one of the fast requests
//! takes long too, since other programs have the processors, it prints `disturbed`.
//!
//! ```text
//! causes std           a thread has the lock of the standard library that a request takes in its poll
//! causes parking_lot   the same, with a lock of `parking_lot`
//! causes mutex         another task has the async lock
//! causes semaphore     other tasks have all permits
//! causes channel       the queue of jobs is full
//! causes blocking      another task blocks the only worker
//! causes nested        a future inside of the request is slow
//! causes queue         many tasks compute on the only worker
//! causes timer         it sleeps, without an interval for that
//! causes downstream    the server in another process answers late
//! causes neighbour     other processes compute on all processors
//! causes fsync         it waits for the disk
//! causes allocations   it allocates much
//! ```

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use hairline::{TraceFuture, sync};
use hairline_tokio::TraceRuntime;
use hairline_tokio::sync::{Mutex, Semaphore, mpsc};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

const REQUESTS: u32 = 200;
/// How long a slow request is held up.
const SLOW: Duration = Duration::from_millis(120);
/// What the work of a request takes.
const WORK: Duration = Duration::from_micros(100);

fn is_slow(number: u32) -> bool {
    number % 75 == 50
}

fn main() {
    let cause = std::env::args().nth(1).unwrap_or_default();
    match &*cause {
        "std" => std(),
        "parking_lot" => parking_lot(),
        "mutex" => mutex(),
        "semaphore" => semaphore(),
        "channel" => jobs(),
        "blocking" => blocking(),
        "nested" => nested(),
        "queue" => queue(),
        "timer" => serve(2, |_| async {}, |number| sleep(if is_slow(number) { SLOW } else { WORK })),
        "downstream" => downstream(),
        "answers" => answers(),
        "neighbour" => neighbour(),
        "computes" => compute(Duration::MAX),
        "fsync" => fsync(),
        "allocations" => allocations(),
        _ => panic!("the words are at the top of causes.rs"),
    }
}

fn runtime(workers: usize) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(workers).thread_name("worker").enable_time().traced();
    builder.build().expect("a runtime")
}

/// Runs requests one after the other. `before` comes before each, with its number.
fn serve<B: Future<Output = ()>, R: Future<Output = ()> + Send + 'static>(
    workers: usize,
    mut before: impl FnMut(u32) -> B,
    mut request: impl FnMut(u32) -> R,
) {
    runtime(workers).block_on(async {
        for number in 0..REQUESTS {
            before(number).await;
            let request = request(number);
            let request = async {
                compute(WORK);
                request.await;
            };
            let start = Instant::now();
            tokio::spawn(request.traced_task("web", "request")).await.expect("no panic");
            if start.elapsed() > SLOW / 2 && !is_slow(number) {
                println!("disturbed");
            }
        }
    });
}

fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Requests that lock, while a thread has the lock at slow ones. `lock` takes it, and calls the function.
fn beside_a_thread(lock: fn(&dyn Fn())) {
    let (begin, begins) = channel::<()>();
    let (held, is_held): (Sender<()>, Receiver<()>) = channel();
    let rebuild = move || {
        for () in begins {
            lock(&|| {
                held.send(()).expect("received");
                thread::sleep(SLOW);
            });
        }
    };
    let rebuilder = thread::Builder::new().name("rebuilder".to_owned()).spawn(rebuild).expect("a thread");
    let before = |number| {
        if is_slow(number) {
            begin.send(()).expect("received");
            is_held.recv().expect("sent");
        }
        std::future::ready(())
    };
    serve(2, before, |_| async move { lock(&|| {}) });
    drop(begin);
    rebuilder.join().expect("no panic");
}

fn std() {
    static CACHE: sync::Mutex<()> = sync::Mutex::named("cache", ());
    beside_a_thread(|f| {
        let _guard = CACHE.lock().expect("not poisoned");
        f();
    });
}

fn parking_lot() {
    type Raw = sync::RawMutex<parking_lot::RawMutex>;
    static CACHE: lock_api::Mutex<Raw, ()> = lock_api::Mutex::from_raw(Raw::named("cache"), ());
    beside_a_thread(|f| {
        let _guard = CACHE.lock();
        f();
    });
}

fn mutex() {
    static CACHE: Mutex<()> = Mutex::const_named("cache", ());
    async fn rebuild(number: u32) {
        if is_slow(number) {
            let (held, is_held) = tokio::sync::oneshot::channel();
            let rebuild = async {
                let _guard = CACHE.lock().await;
                let load = async {
                    held.send(()).expect("received");
                    sleep(SLOW).await;
                };
                load.traced("db", "load").await;
            };
            tokio::spawn(rebuild.traced_task("cache", "rebuild"));
            is_held.await.expect("sent");
        }
    }
    serve(2, rebuild, |_| async {
        let _guard = CACHE.lock().await;
    });
}

fn semaphore() {
    static CONNECTIONS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::named("connections", 2));
    async fn report(number: u32) {
        if is_slow(number) {
            let permits = CONNECTIONS.acquire_many(2).await.expect("open");
            let report = async {
                let _permits = permits;
                sleep(SLOW).await;
            };
            tokio::spawn(report.traced_task("web", "report"));
        }
    }
    serve(2, report, |_| async {
        let _permit = CONNECTIONS.acquire().await.expect("open");
    });
}

fn jobs() {
    let (jobs, mut queue) = mpsc::channel_named("jobs", 4);
    // The thread that takes the jobs out.
    let take = move || {
        while let Some(time) = queue.blocking_recv() {
            thread::sleep(time);
        }
    };
    let consumer = thread::spawn(take);
    let before = |number| {
        let jobs = jobs.clone();
        async move {
            if is_slow(number) {
                jobs.send(SLOW).await.expect("received");
                while jobs.capacity() < 4 {
                    sleep(WORK).await; // until the thread has begun with it
                }
                while jobs.capacity() > 0 {
                    jobs.send(Duration::ZERO).await.expect("received");
                }
            } else {
                while jobs.capacity() < 4 {
                    sleep(WORK).await;
                }
            }
        }
    };
    serve(2, before, |_| {
        let jobs = jobs.clone();
        async move { jobs.send(Duration::ZERO).await.expect("received") }
    });
    drop(jobs);
    consumer.join().expect("no panic");
}

fn blocking() {
    async fn block(number: u32) {
        if is_slow(number) {
            let (begun, has_begun) = channel();
            hairline_tokio::spawn(async move {
                begun.send(()).expect("received");
                thread::sleep(SLOW);
            });
            has_begun.recv().expect("sent"); // this thread is no worker
        }
    }
    serve(1, block, |_| async {});
}

fn nested() {
    async fn ask(number: u32) {
        let time = if is_slow(number) { SLOW } else { WORK };
        sleep(time).traced("net", "ask").await;
    }
    serve(2, |_| async {}, |number| async move { ask(number).traced("web", "authorise").await });
}

fn queue() {
    async fn compute_much(number: u32) {
        if is_slow(number) {
            const JOBS: u32 = 240;
            for _ in 0..JOBS {
                tokio::spawn(async { compute(SLOW / JOBS) }.traced_task("app", "job"));
            }
        }
    }
    serve(1, compute_much, |_| async {});
}

/// This program in another process, which is not recorded.
fn another(what: &str) -> Child {
    let program = std::env::current_exe().expect("its path");
    let mut command = Command::new(program);
    command.arg(what).env_remove("HAIRLINE").stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("it runs")
}

/// Answers each byte with itself, after as many milliseconds, until there are no more.
fn answers() {
    let (mut from, mut to) = (std::io::stdin(), std::io::stdout());
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() {
        thread::sleep(Duration::from_millis(byte[0].into()));
        to.write_all(&byte).and_then(|()| to.flush()).expect("it reads");
    }
}

fn downstream() {
    let mut server = another("answers");
    let to = server.stdin.take().expect("a pipe");
    let (mut from, connection) = (server.stdout.take().expect("a pipe"), Arc::new(std::sync::Mutex::new(to)));
    // Answers come to the requests as from a driver of connections, on a thread of its own.
    let (answered, answers) = tokio::sync::mpsc::channel(1);
    let read = move || {
        let mut byte = [0];
        while from.read_exact(&mut byte).is_ok() && answered.blocking_send(()).is_ok() {}
    };
    let reader = thread::Builder::new().name("reader".to_owned()).spawn(read).expect("a thread");
    let answers = Arc::new(tokio::sync::Mutex::new(answers));
    serve(
        2,
        |_| std::future::ready(()),
        |number| {
            let (connection, answers) = (Arc::clone(&connection), Arc::clone(&answers));
            async move {
                let time = if is_slow(number) { SLOW.as_millis() as u8 } else { 0 };
                connection.lock().expect("not poisoned").write_all(&[time]).expect("it reads");
                answers.lock().await.recv().await.expect("an answer");
            }
        },
    );
    drop(connection);
    reader.join().expect("no panic");
    server.wait().expect("it ends");
}

fn neighbour() {
    let processors = thread::available_parallelism().expect("a number").get();
    let all = Arc::new(std::sync::Mutex::new(Vec::new()));
    let begin = |number| {
        if is_slow(number) {
            let neighbours = (0..processors * 3).map(|_| another("computes"));
            all.lock().expect("not poisoned").extend(neighbours);
        }
        std::future::ready(())
    };
    serve(2, begin, |number| {
        let all = Arc::clone(&all);
        async move {
            if is_slow(number) {
                compute_on_the_cpu(SLOW / 3);
                for mut neighbour in all.lock().expect("not poisoned").drain(..) {
                    neighbour.kill().and_then(|()| neighbour.wait()).expect("it ends");
                }
            }
        }
    });
}

/// Computes for so much CPU time.
fn compute_on_the_cpu(time: Duration) {
    let start = cpu_time();
    while cpu_time() - start < time {
        compute(WORK);
    }
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let running = times.split(' ').next().and_then(|ns| ns.parse().ok());
    Duration::from_nanos(running.expect("a number"))
}

fn fsync() {
    let mut journal = tempfile::tempfile_in(".").expect("a file");
    serve(
        2,
        |_| std::future::ready(()),
        |number| {
            let mut journal = journal.try_clone().expect("a descriptor");
            async move {
                let (start, mut blocks) = (Instant::now(), 0);
                while is_slow(number) && start.elapsed() < SLOW {
                    let block = [number as u8; 4096];
                    journal.write_all(&block).and_then(|()| journal.sync_all()).expect("written");
                    blocks += 1;
                }
                if start.elapsed() < WORK * blocks {
                    println!("no disk");
                }
            }
        },
    );
    journal.flush().expect("written");
}

fn allocations() {
    serve(
        2,
        |_| std::future::ready(()),
        |number| async move {
            let (start, ran) = (Instant::now(), cpu_time());
            while is_slow(number) && start.elapsed() < SLOW {
                std::hint::black_box(vec![number; 1 << 20]);
            }
            if is_slow(number) && cpu_time() - ran < start.elapsed() * 3 / 4 {
                println!("disturbed");
            }
        },
    );
}
