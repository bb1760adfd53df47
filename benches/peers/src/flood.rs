//! The floods: scopes without a pause, until the trace is complete.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use crate::child;
use crate::peer::{Failure, Peer, Trace};
use crate::scopes::Run;

/// The first argument of a process that floods. The name of the peer, the number of its flood, the file and
/// the number of scopes follow.
pub const CHILD: &str = "--flooded";

/// The number of processes for each flood, if one does not take [`LONG`].
const FLOODS: usize = 3;

/// Seconds after which a flood is not repeated.
const LONG: f64 = 15.0;

/// Floods with this process.
pub fn flood(peer: &Peer, number: usize, path: &Path, scopes: u32) -> Result<Value, Failure> {
    let flood = peer.floods.get(number).ok_or("it has no such flood")?;
    let mut run = Run::new(scopes);
    let trace = (flood.record)(path, &mut run)?;
    let complete_s = run.elapsed_s();
    let peak = peak_memory();
    let (lost, bytes) = match trace {
        Trace::Told { lost, bytes } => (lost, bytes),
        Trace::InTheFile(ends) => {
            let bytes = std::fs::metadata(path)?.len();
            (u64::from(scopes).saturating_sub(ends(File::open(path)?)), bytes)
        }
    };
    Ok(json!({
        "ns": run.scope_ns(), "floor_ns": run.floor_ns(), "complete_s": complete_s, "peak_memory": peak,
        "lost": lost, "bytes": bytes,
    }))
}

/// The peak of the process's resident memory, in bytes. A process inherits the figure of `getrusage` from its
/// parent, so that one would be wrong.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Seconds to write `bytes` bytes to a file.
fn plain_write_s(path: &Path, bytes: u64) -> io::Result<f64> {
    let piece = vec![b'x'; 1 << 20];
    let (mut file, began, mut left) = (File::create(path)?, Instant::now(), bytes);
    while left > 0 {
        let len = left.min(piece.len() as u64);
        file.write_all(&piece[..len as usize])?;
        left -= len;
    }
    drop(file);
    let seconds = began.elapsed().as_secs_f64();
    std::fs::remove_file(path)?;
    Ok(seconds)
}

/// One run of a flood in a process of its own. Afterwards, for comparison, as many bytes are written plainly.
fn once(peer: &Peer, number: usize, scopes: u32) -> Result<Value, Failure> {
    let path = child::file();
    let mut command = child::command()?;
    command.args([CHILD, peer.name, &number.to_string()]).arg(&path).arg(scopes.to_string());
    let run = child::said(&mut command);
    if !path.exists() {
        return run;
    }
    std::fs::remove_file(&path)?;
    let mut run = run?;
    run["plain_write_s"] = plain_write_s(&path, run["bytes"].as_u64().unwrap_or(0))?.into();
    Ok(run)
}

/// Measures all floods of a peer. Reports those that fail on stderr and leaves them out.
pub fn measured(peer: &Peer, scopes: u32, quick: bool) -> Vec<Value> {
    let floods = peer.floods.iter().enumerate().map(|(number, flood)| {
        let mut runs: Vec<Value> = Vec::new();
        for _ in 0..if quick { 1 } else { FLOODS } {
            match once(peer, number, scopes) {
                Ok(run) => runs.push(run),
                Err(e) => eprintln!("{}, {}: {e}", peer.name, flood.name),
            }
            if runs.last().is_none_or(|run| run["complete_s"].as_f64().is_none_or(|seconds| seconds > LONG)) {
                break;
            }
        }
        json!({ "name": flood.name, "scopes": scopes, "runs": runs })
    });
    floods.filter(|flood| flood["runs"][0].is_object()).collect()
}
