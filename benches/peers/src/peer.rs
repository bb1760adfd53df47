//! The description of a peer: how it is set up, and its ways to record.

use std::fs::File;
use std::path::Path;

use crate::bench::Bench;
use crate::scopes::Run;

pub type Failure = Box<dyn std::error::Error>;

/// A tracer that is measured.
pub struct Peer {
    pub name: &'static str,
    /// The package; Cargo.lock has its version.
    pub package: &'static str,
    /// The setup: the fastest one that the peer's documentation names.
    pub setup: &'static str,
    /// Measures the peer. The process is its own, so `cost` may set global state.
    pub cost: fn(&mut Bench) -> Result<(), Failure>,
    /// The traces that the peer can write by itself. Empty if all events stay in memory or go over the
    /// network.
    pub floods: &'static [Flood],
    /// How to kill it while it records. `None` if all events are in the memory of the program.
    pub killed: Option<Killed>,
}

/// One way of a peer to make a trace.
pub struct Flood {
    /// The output and the special settings, to be shown after the peer's name.
    pub name: &'static str,
    /// Records with [`Run::scopes`], and completes the trace.
    pub record: fn(&Path, &mut Run) -> Result<Trace, Failure>,
}

/// The outcome of a flood.
pub enum Trace {
    /// The trace is in the file. The function counts the ends of scopes in it.
    InTheFile(fn(File) -> u64),
    /// The trace is nowhere else: the peer itself reports the lost scopes and the bytes.
    Told { lost: u64, bytes: u64 },
}

/// A peer that writes a file while it records.
pub struct Killed {
    /// Records into the file with [`scopes_and_die`](crate::scopes::scopes_and_die).
    pub record: fn(&Path) -> Result<(), Failure>,
    /// Completes the file, if the peer can do that. The argument is the pid of the dead process.
    pub repair: Option<fn(u32) -> Result<(), Failure>>,
    /// Counts the ends of scopes in the file, up to the first byte that cannot be read.
    pub ends: fn(File) -> u64,
}
