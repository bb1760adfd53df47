//! A program whose requests are slow for one reason, for the tests of `hairline explain`. Its second argument
//! is the trace to write.
//!
//! ```text
//! slow lock         another thread holds the lock that some requests need
//! slow starvation   other threads of the program take the core
//! slow disk         some requests write to a file and wait until it is on the disk
//! slow blocking     some polls of a future make a blocking call
//! slow dependency   a service answers some requests late
//! slow nested       a future inside of some requests waits
//! slow join         some requests wait for the end of a thread that they start
//! slow between      some requests wait between their polls, for something that is not recorded
//! ```

#![allow(unsafe_code)] // sched_setaffinity

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use hairline::{Format, Session, TraceFuture, trace_async, trace_scope};

const REQUESTS: u32 = 100;
/// Far longer than what other programs on the machine do to a request.
const SLOW: Duration = Duration::from_millis(300);

fn is_slow(number: u32) -> bool {
    number == REQUESTS / 2
}

fn main() {
    let [cause, trace] = [1, 2].map(|at| std::env::args().nth(at).expect("slow CAUSE TRACE"));
    let format = if trace.ends_with("fxt") { Format::Fxt } else { Format::TrackEvent };
    let session = Session::builder().format(format).output(&trace).scheduling(true).start();
    let session = session.expect("started");
    slow(&cause);
    let summary = session.stop().expect("written");
    eprintln!("{summary:?}");
}

fn slow(cause: &str) {
    match cause {
        "lock" => lock(),
        "starvation" => starvation(),
        "disk" => disk(),
        "blocking" => blocking(),
        "dependency" => dependency(),
        "nested" => requests(authorise),
        "join" => join(),
        "between" => requests(tokio::time::sleep),
        _ => panic!("slow lock|starvation|disk|blocking|dependency|nested|join|between"),
    }
}

/// Requests one after the other, which wait by `wait`.
fn requests<F: Future>(wait: fn(Duration) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("started");
    runtime.block_on(async {
        for number in 0..REQUESTS {
            let short = Duration::from_micros(100);
            let request = async {
                let parse = trace_async!("net", "parse");
                spin(short);
                drop(parse);
                wait(if is_slow(number) { SLOW } else { short }).await;
            };
            request.traced("web", "request").await;
        }
    });
}

async fn authorise(time: Duration) {
    let ask = async { tokio::time::sleep(time).traced("net", "ask").await };
    ask.traced("web", "authorise").await;
}

fn spin(duration: Duration) {
    let until = Instant::now() + duration;
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

fn lock() {
    let cache = Arc::new(Mutex::new(0_u64));
    let (begin, begins) = channel::<()>();
    let (held, is_held) = sync_channel(0);
    let shared = Arc::clone(&cache);
    let rebuild = move || {
        for () in begins {
            trace_scope!("cache", "rebuild");
            let mut cache = shared.lock().expect("not poisoned");
            held.send(()).expect("received");
            thread::sleep(SLOW);
            *cache += 1;
        }
    };
    let rebuilder = thread::Builder::new().name("rebuilder".to_owned()).spawn(rebuild).expect("started");
    for number in 0..REQUESTS {
        if is_slow(number) {
            begin.send(()).expect("received");
            is_held.recv().expect("sent");
        }
        trace_scope!("net", "request");
        spin(Duration::from_micros(300));
        trace_scope!("cache", "lookup");
        *cache.lock().expect("not poisoned") += 1;
    }
    drop(begin);
    rebuilder.join().expect("ended");
}

fn join() {
    for number in 0..REQUESTS {
        trace_scope!("net", "request");
        spin(Duration::from_micros(300));
        let render = move || {
            for _ in 0..if is_slow(number) { 10 } else { 0 } {
                trace_scope!("app", "tile");
                thread::sleep(SLOW / 10);
            }
        };
        let renderer = thread::Builder::new().name("renderer".to_owned()).spawn(render);
        renderer.expect("started").join().expect("ended");
    }
}

/// Lets the process run on one processor only.
fn on_one_core() {
    // SAFETY: the set is plain data, and the call reads it only.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(0, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &raw const set), 0);
    }
}

fn starvation() {
    on_one_core();
    let busy = Arc::new(AtomicBool::new(false));
    for _ in 0..3 {
        let busy = Arc::clone(&busy);
        let hog = move || {
            loop {
                if busy.load(Ordering::Relaxed) {
                    spin(Duration::from_millis(1));
                } else {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        };
        thread::Builder::new().name("hog".to_owned()).spawn(hog).expect("started");
    }
    for number in 0..REQUESTS {
        busy.store(is_slow(number), Ordering::Relaxed);
        if is_slow(number) {
            thread::sleep(Duration::from_millis(5)); // until they have begun
        }
        trace_scope!("net", "request");
        (0..if is_slow(number) { 50_000_000 } else { 300_000 }).for_each(|n| {
            std::hint::black_box(n);
        });
    }
}

fn disk() {
    let mut file = tempfile::tempfile_in(".").expect("a file");
    let bytes = vec![7; 4 << 10];
    for number in 0..REQUESTS {
        trace_scope!("net", "request");
        spin(Duration::from_micros(300));
        if is_slow(number) {
            trace_scope!("disk", "sync");
            let begin = Instant::now();
            while begin.elapsed() < SLOW {
                file.write_all(&bytes).expect("written");
                file.sync_data().expect("on the disk");
                // Where the disk answers at once, a sync is the kernel's work, and nothing is slow to find.
                thread::sleep(Duration::from_millis(2));
            }
        }
    }
}

fn blocking() {
    for number in 0..REQUESTS {
        let mut polls = 0;
        let handler = std::future::poll_fn(|context| {
            polls += 1;
            spin(Duration::from_micros(100));
            if polls == 2 && is_slow(number) {
                thread::sleep(SLOW);
            }
            context.waker().wake_by_ref();
            if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
        });
        let mut handler = pin!(handler.traced("net", "handler"));
        let mut context = Context::from_waker(Waker::noop());
        while handler.as_mut().poll(&mut context).is_pending() {}
    }
}

fn dependency() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    let service = move || {
        let (mut client, _) = listener.accept().expect("a client");
        let mut number = [0; 4];
        while client.read_exact(&mut number).is_ok() {
            if is_slow(u32::from_le_bytes(number)) {
                thread::sleep(SLOW);
            }
            client.write_all(&number).expect("sent");
        }
    };
    thread::Builder::new().name("service".to_owned()).spawn(service).expect("started");
    let mut service = TcpStream::connect(address).expect("connected");
    service.set_nodelay(true).expect("set");
    for number in 0..REQUESTS {
        trace_scope!("net", "request");
        spin(Duration::from_micros(300));
        trace_scope!("rpc", "inventory");
        service.write_all(&number.to_le_bytes()).expect("sent");
        service.read_exact(&mut [0; 4]).expect("answered");
    }
}
