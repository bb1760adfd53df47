// Included in modules with hostile names in scope.

#[trace("app", args)]
fn called(n: u32) -> u32 {
    n
}

#[trace("app", args)]
async fn awaited(n: u32, text: &str) -> u32 {
    text.len() as u32 + n
}

#[trace("app")]
async fn nothing() {}

fn all() {
    let (flow, track, n) = (Flow::new(), Track::new("track"), 1);
    trace_scope!("app", "scope");
    trace_scope!("app", "scope", n = 1, shown = %n, debugged = ?n, flow: &flow);
    trace_scope!("app", "scope", name: "other");
    trace_scope!("app", "scope", flow: &flow);
    trace_instant!("app", "instant");
    trace_instant!("app", "instant", n, track: &track, correlation: 7);
    trace_counter!("app", "counter", 3, unit: "x");
    trace_begin!("app", "begin", track: &track);
    trace_end!(&track, n);
    drop(trace_async!("app", "interval", n));
    trace_log!(Level::Warn, "app", "message {n}");
    trigger!("trigger");
    let mut slow = scope!("app", "slow", slow: MILLISECOND);
    let _ = slow.arg("key", 1);
    drop(slow);
    called(1);
    drop(awaited(1, ""));
    drop(trace_future!("app", "future", nothing(), n, track: &track));
    drop(nothing());
}
