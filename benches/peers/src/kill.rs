//! The kills: how many scopes the file of a killed program holds.

use std::fs::File;

use serde_json::{Value, json};

use crate::child;
use crate::peer::{Failure, Killed, Peer};
use crate::scopes::BEFORE_THE_KILL;

/// The first argument of a process that records and is killed. The name of the peer and the file follow.
pub const CHILD: &str = "--killed";

/// The number of kills of a peer. The content of its file depends on the other load of the machine.
const KILLS: usize = 5;

/// Counts the scopes in the files of the peer's processes.
pub fn measured(peer: &Peer) -> Result<Option<Value>, Failure> {
    let Some(killed) = &peer.killed else { return Ok(None) };
    let counts = (0..KILLS).map(|_| once(peer, killed)).collect::<Result<Vec<(u64, u64)>, Failure>>()?;
    let (left, repaired): (Vec<u64>, Vec<u64>) = counts.into_iter().unzip();
    let repaired = killed.repair.map(|_| repaired);
    Ok(Some(json!({ "scopes": BEFORE_THE_KILL, "in_the_file": left, "after_repair": repaired })))
}

/// Kills one process. Returns the scopes in the file before and after its repair.
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
