//! Short programs: how long a process takes to make a whole trace of a single scope.

use std::path::Path;
use std::time::Instant;

use hairline_benches::timing::Samples;
use serde_json::{Value, json};

use crate::child;
use crate::peer::{Failure, Peer};
use crate::scopes::Run;

/// The first argument of a short program. The name of the peer and the file follow.
pub const CHILD: &str = "--short";

/// The number of programs.
const PROGRAMS: usize = 40;

/// Makes the trace of one scope with this process, in the peer's first way to make a file. The time is that
/// from the peer's start until the file is whole: some peers that are linked into this program take a
/// quarter of a second before `main`.
pub fn record(peer: &Peer, path: &Path) -> Result<Value, Failure> {
    let way = peer.floods.first().ok_or("it writes no file")?;
    let began = Instant::now();
    (way.record)(path, &mut Run::of_one())?;
    Ok(json!(began.elapsed().as_secs_f64() * 1e3))
}

/// Measures such programs.
pub fn measured(peer: &Peer) -> Result<Value, Failure> {
    if peer.floods.is_empty() {
        return Ok(Value::Null);
    }
    let (path, mut samples) = (child::file(), Samples::default());
    for _ in 0..PROGRAMS {
        let took = child::said(child::command()?.args([CHILD, peer.name]).arg(&path))?;
        samples.push(took.as_f64().ok_or("no time")?);
        std::fs::remove_file(&path)?;
    }
    Ok(json!({ "ms_median": samples.median(), "ms_min": samples.min() }))
}
