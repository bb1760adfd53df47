//! Short programs: what a trace of a single scope adds to the time of a program that ends at once.

use std::path::Path;
use std::time::Instant;

use hairline_benches::timing::Samples;
use serde_json::{Value, json};

use crate::child;
use crate::peer::{Failure, Flood, Peer};
use crate::scopes::Run;

/// The first argument of a short program. The name of the peer and the file follow, or nothing: it then ends.
pub const CHILD: &str = "--short";

/// The number of programs with and without a trace.
const PROGRAMS: usize = 40;

/// The peer's first way to make a file.
fn way(peer: &Peer) -> Option<&'static Flood> {
    peer.floods.first()
}

/// Makes the trace of one scope with this process.
pub fn record(peer: &Peer, path: &Path) -> Result<Value, Failure> {
    let way = way(peer).ok_or("it writes no file")?;
    (way.record)(path, &mut Run::of_one())?;
    Ok(Value::Null)
}

/// Measures such programs in turn with ones that end at once.
pub fn measured(peer: &Peer) -> Result<Value, Failure> {
    if way(peer).is_none() {
        return Ok(Value::Null);
    }
    let path = child::file();
    let (mut with, mut without) = (Samples::default(), Samples::default());
    for _ in 0..PROGRAMS {
        for (samples, peer) in [(&mut without, None), (&mut with, Some(peer))] {
            let mut command = child::command()?;
            command.arg(CHILD);
            if let Some(peer) = peer {
                command.arg(peer.name).arg(&path);
            }
            let began = Instant::now();
            child::said(&mut command)?;
            samples.push(began.elapsed().as_secs_f64() * 1e3);
        }
        let _ = std::fs::remove_file(&path);
    }
    Ok(json!({
        "added_ms_median": with.median() - without.median(), "added_ms_min": with.min() - without.min(),
        "nothing_ms_median": without.median(),
    }))
}
