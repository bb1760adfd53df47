//! A scope must end on the thread it began on, so a task that may move has none across an await.
use hairline::trace_scope;

fn spawn<F: std::future::Future + Send + 'static>(_: F) {}

fn main() {
    spawn(async {
        trace_scope!("t", "held");
        std::future::ready(()).await;
    });
}
