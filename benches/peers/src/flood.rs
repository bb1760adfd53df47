//! Scopes as fast as they come, until the trace is complete.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use hairline_benches::machine::pin_to_last_core;
use hairline_benches::timing::{Samples, batch};
use serde_json::{Value, json};

use crate::bench::two_clock_reads;
use crate::child;
use crate::peers::{Failure, Peer};

/// Before the name of the peer, the number of its flood, the file, and how many scopes this process is to record into it.
pub const CHILD: &str = "--flooded";

/// How often each is done, where it does not take long.
const FLOODS: usize = 3;

/// Seconds after which a flood is not done again.
const LONG: f64 = 15.0;

/// One way of a peer to make a trace.
pub struct Flood {
    /// Where the trace goes and what is special, behind the peer's name.
    pub name: &'static str,
    /// Records with [`Run::scopes`], and completes the trace.
    pub record: fn(&Path, &mut Run) -> Result<Trace, Failure>,
}

/// Where a trace is.
pub enum Trace {
    /// In the file, in which something counts the ends of scopes.
    InTheFile(fn(File) -> u64),
    /// Nowhere that can be looked at; the peer says itself.
    Told { lost: u64, bytes: u64 },
}

/// The process's one flood.
pub struct Run {
    scopes: u32,
    floor: Samples,
    began: Instant,
    recording_s: f64,
}

impl Run {
    /// How many scopes there will be, for peers that want to know.
    pub fn count(&self) -> u32 {
        self.scopes
    }

    /// Records them all, on a core that the threads which the peer has started so far are not bound to.
    pub fn scopes(&mut self, mut scope: impl FnMut()) {
        pin_to_last_core();
        for _ in 0..100 {
            self.floor.push(batch(10_000, two_clock_reads));
        }
        self.began = Instant::now();
        for _ in 0..self.scopes {
            scope();
        }
        self.recording_s = self.began.elapsed().as_secs_f64();
    }
}

/// Floods, in this process.
pub fn flood(peer: &Peer, number: usize, path: &Path, scopes: u32) -> Result<Value, Failure> {
    let flood = peer.floods.get(number).ok_or("it has no such flood")?;
    let mut run = Run { scopes, floor: Samples::default(), began: Instant::now(), recording_s: f64::NAN };
    let trace = (flood.record)(path, &mut run)?;
    let complete_s = run.began.elapsed().as_secs_f64();
    let peak = peak_memory();
    let (lost, bytes) = match trace {
        Trace::Told { lost, bytes } => (lost, bytes),
        Trace::InTheFile(ends) => {
            let bytes = std::fs::metadata(path)?.len();
            (u64::from(scopes).saturating_sub(ends(File::open(path)?)), bytes)
        }
    };
    Ok(json!({
        "ns": run.recording_s * 1e9 / f64::from(scopes), "floor_ns": run.floor.median(), "complete_s": complete_s,
        "peak_memory": peak, "lost": lost, "bytes": bytes,
    }))
}

/// The most memory that the process ever had, in bytes. Not getrusage's figure, which a process inherits from the one that started it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Seconds to write so many bytes to a file, and nothing else.
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

/// One run of a flood, in a process of its own; beside it the file's bytes once more, by themselves.
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

/// All floods of a peer. What fails is said and left out.
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
