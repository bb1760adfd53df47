//! Hairline and perfetto-sdk in one session of Perfetto's tracing service: each in a process of its own,
//! with the same events.

use std::path::Path;
use std::process::Stdio;

use hairline_benches::service::Service;

use crate::child;
use crate::peer::Failure;
use crate::peers::{hairline, perfetto_sdk};

/// The first argument of a process that records the events. The name of the peer follows.
pub const CHILD: &str = "--events";

/// Records both. Returns the pids of the processes, first that of Hairline.
pub fn record(trace: &Path) -> Result<[u32; 2], Failure> {
    let mut both = [0; 2];
    let running = Service::start()?;
    for (pid, name) in both.iter_mut().zip(["hairline", "perfetto-sdk"]) {
        let mut child = child::command()?.args([CHILD, name]).stdout(Stdio::null()).spawn()?;
        *pid = child.id();
        let ended = child.wait()?;
        if !ended.success() {
            return Err(format!("{name}: {ended}").into());
        }
    }
    running.save(trace)?;
    Ok(both)
}

/// Records the events of one of them, in this process.
pub fn events(name: &str) -> Result<(), Failure> {
    if name == "hairline" { hairline::events() } else { perfetto_sdk::events() }
}
