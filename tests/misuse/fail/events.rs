use hairline::{trace_instant, trace_scope};

struct Peer {
    port: u16,
}

fn main() {
    let peer = Peer { port: 80 };
    trace_scope!("t", "a field without a key", peer.port);
    trace_instant!("t", "a value without a key", n = 1, 5);
    trace_instant!("t", "a formatted value without a key", %peer.port, n = 1);
    trace_instant!("t", "an argument with a colon", level: 3);
}
