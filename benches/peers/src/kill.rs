//! What a file holds of a program that was killed.

use std::fs::File;
use std::path::Path;

use serde_json::{Value, json};

use crate::child;
use crate::peers::{Failure, Peer};

/// Scopes before the kill.
pub const SCOPES: u32 = 1_000_000;

/// Before the name of the peer and the file that this process is to record into, and be killed.
pub const CHILD: &str = "--killed";

/// A peer that writes a file while it records.
pub struct Killed {
    /// Records into the file with [`scopes_and_die`].
    pub record: fn(&Path) -> Result<(), Failure>,
    /// Makes the file whole, where the peer has something for that; the pid is the dead process's.
    pub repair: Option<fn(u32) -> Result<(), Failure>>,
    /// The ends of scopes in the file, up to the first byte that cannot be read.
    pub ends: fn(File) -> u64,
}

/// Records all scopes, and is killed by the next instruction.
pub fn scopes_and_die(mut scope: impl FnMut()) {
    for _ in 0..SCOPES {
        scope();
    }
    // SAFETY: sends a signal to this process.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

/// How often a peer is killed: how much its file has then depends on what else the machine does.
const KILLS: usize = 5;

/// What the files of the peer's processes hold.
pub fn measured(peer: &Peer) -> Result<Option<Value>, Failure> {
    let Some(killed) = &peer.killed else { return Ok(None) };
    let counts = (0..KILLS).map(|_| once(peer, killed)).collect::<Result<Vec<(u64, u64)>, Failure>>()?;
    let (left, repaired): (Vec<u64>, Vec<u64>) = counts.into_iter().unzip();
    Ok(Some(
        json!({ "scopes": SCOPES, "in_the_file": left, "after_repair": killed.repair.map(|_| repaired) }),
    ))
}

/// Scopes in the file as it lies there, and after its repair.
fn once(peer: &Peer, killed: &Killed) -> Result<(u64, u64), Failure> {
    let path = child::file();
    let mut child = child::command()?.args([CHILD, peer.name]).arg(&path).spawn()?;
    let pid = child.id();
    if child.wait()?.success() {
        return Err("it was not killed".into());
    }
    let left = File::open(&path).map(killed.ends)?;
    killed.repair.map_or(Ok(()), |repair| repair(pid))?;
    let repaired = File::open(&path).map(killed.ends)?;
    std::fs::remove_file(&path)?;
    Ok((left, repaired))
}
