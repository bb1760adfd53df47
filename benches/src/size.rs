//! The sizes of a trace and of a session: bytes of a scope, memory beside the ring.

use hairline::{Error, Format, MemoryOutput, Session, trace_scope};

use crate::machine::resident;
use crate::row::{Budget, Row, label};

const MIB: u64 = 1 << 20;

/// The bytes of a scope in the trace, compressed or not.
///
/// # Errors
/// If a session cannot be started or stopped.
pub fn bytes_per_scope(format: Format, compress: bool) -> Result<Row, Error> {
    const SCOPES: u32 = 100_000;
    let builder = Session::builder().output_memory(&MemoryOutput::new()).format(format).compress(compress);
    let session = builder.start()?;
    for _ in 0..SCOPES {
        trace_scope!("bench", "scope");
    }
    let bytes = session.stop()?.bytes as f64 / f64::from(SCOPES);
    let (kind, budget) = match (compress, format) {
        (true, _) => (", compressed", 8.0),
        (false, Format::Fxt) => ("", 32.2), // the stream's head included
        (false, _) => ("", 34.0),
    };
    let name = format!("{}: a scope in the trace{kind}", label(format));
    Ok(Row::figure(&name, "B", bytes, bytes, Budget::AtMost, budget))
}

/// The memory of a session beside the ring.
///
/// # Errors
/// If a session cannot be started or stopped.
pub fn memory_beside_the_ring() -> Result<Row, Error> {
    const RING: u64 = 16 * MIB;
    let (all_before, shared_before) = resident();
    let session = Session::builder().output_writer(std::io::sink()).buffer_size(RING).start()?;
    for _ in 0..1_000_000 {
        trace_scope!("bench", "scope");
    }
    session.flush()?;
    let (all, shared) = resident();
    session.stop()?;
    let private = (all - shared) as f64 - (all_before - shared_before) as f64;
    let beyond_ring = (shared - shared_before) as f64 - RING as f64;
    let mib = (private.max(0.0) + beyond_ring.max(0.0)) / MIB as f64;
    Ok(Row::figure("memory beside the ring", "MiB", mib, mib, Budget::AtMost, 2.0))
}
