//! A program that records on several threads and makes children meanwhile, in every way there is; for the
//! torture of forks.
//!
//! ```text
//! forker seed=N children=N threads=N forkers=N depth=N kinds=fork,_fork,clone,spawn,exec,handler,returned,_handler
//!        mode=environment|steady|coming|recorder template=t-%p.fxt subscriber=own|layer
//! forker return
//! ```
//!
//! | kind | child |
//! |---|---|
//! | `fork` | of `fork()`. Records whatever there is, starts threads, has children of its own |
//! | `_fork` | of `_Fork()`, which runs no `pthread_atfork` handlers. Records scopes and instants, no more |
//! | `clone` | of the system call, of which the C library knows nothing. As `_fork` |
//! | `spawn` | of `posix_spawn`: this program, with `return` |
//! | `exec` | of `fork()`, and then `exec` at once: as `spawn` |
//! | `handler` | of `fork()` in a signal handler, on a thread that records. Ends there |
//! | `returned` | the same, but the child goes on as the interrupted thread, maybe in the midst of an event |
//! | `_handler` | of `_Fork()` in a signal handler, on a thread that records. As `_fork` |
//!
//! `forkers`: the threads that fork, the newest of the process. `depth`: the generations of a child: itself,
//! its child, and that one's.
//!
//! | mode | session |
//! |---|---|
//! | `environment` | as the environment asks |
//! | `steady` | one, from before the first child until after the last |
//! | `coming` | one after the other, for some milliseconds each |
//! | `recorder` | one flight recorder, of which snapshots are taken all the time |
//!
//! Every process appends a line to the file `told` before it ends: `PID PARENT KIND END THREAD:STEPS ...`,
//! the scopes `step` that it recorded as a process of its own. What goes wrong is a line on stdout that
//! begins with `failure`.

mod child;
mod ends;
mod handler;
mod make;
mod orders;
mod run;
mod steps;
mod threads;
mod told;

use hairline_tests::marking::MarkingAlloc;

#[global_allocator]
static MARKING: MarkingAlloc = MarkingAlloc;

fn main() {
    if std::env::args().nth(1).as_deref() == Some("return") {
        (0..5).for_each(|_| steps::step());
        return;
    }
    let orders = orders::read();
    ends::again();
    told::open();
    handler::install();

    hairline::Logger::new().install().expect("the logger");
    if orders.has_own_subscriber {
        tracing::subscriber::set_global_default(hairline::Subscriber::new()).expect("the subscriber");
    } else {
        use tracing_subscriber::layer::SubscriberExt;
        let layers = tracing_subscriber::registry().with(hairline::layer());
        tracing::subscriber::set_global_default(layers).expect("the subscriber");
    }
    let mode = orders.mode.as_str();
    let has_one = matches!(mode, "steady" | "recorder");
    let session = has_one.then(|| threads::builder(&orders.template).start().expect("a session"));
    let steps = threads::run(session.as_ref());
    told::tell(0, "parent", mode, &steps);
    if let Some(session) = session {
        session.stop().expect("stopped");
    }
    std::process::exit(i32::from(told::failures() > 0));
}
