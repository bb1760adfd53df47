//! A producer of Perfetto's tracing service, `traced`: the format of its commands, the memory that both
//! share, and the output that writes a session's packets there.
//!
//! ```text
//! lifecycle/traced.rs   the thread that registers, and does what the service commands
//!        |  changes.rs
//! output.rs             on the session's thread: packets to the memory of each instance's writers
//!    packet.rs             what the output must know of a packet
//!    sorting.rs            the category of each event, where instances want different ones
//!    numbers.rs            the numbers of writers
//!    memory.rs             pages, chunks and packets (the ABI, version 1)
//!    link.rs               calls to the service, from both threads
//!    frames.rs             their bytes, and those of commands
//!    wanted.rs             which categories an instance wants
//! ```
//!
//! The ABI: Perfetto's `docs/design-docs/api-and-abi.md`, `shared_memory_abi.h`, and the protos
//! `wire_protocol`, `producer_port` and `commit_data_request`.
//!
//! What comes from the service is checked as a trace file is. Its memory is this process's own and sealed.

pub(crate) mod changes;
pub(crate) mod frames;
pub(crate) mod link;
pub(crate) mod memory;
mod numbers;
pub(crate) mod output;
mod packet;
mod sorting;
pub(crate) mod wanted;
