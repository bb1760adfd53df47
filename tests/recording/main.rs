//! What a user of the macros and of `Session` relies on, judged by Perfetto's trace_processor in both
//! formats.

mod allocations;
mod clocks;
mod environment;
mod errors;
mod holds;
mod loss;
mod quiet;
mod sessions;
mod signals;
mod threads;
mod vocabulary;
mod volume;
mod waits;

#[global_allocator]
static ALLOCATOR: hairline_tests::alloc::CountingAlloc = hairline_tests::alloc::CountingAlloc;
