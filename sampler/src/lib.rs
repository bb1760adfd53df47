//! Samples of call stacks where `perf_event_open` is refused, for [Hairline](https://docs.rs/hairline): a
//! container's threads copy their own registers and stacks.
//!
//! ```text
//!  a timer of each thread's CPU time          sys: timer_create, by the session's own thread
//!         |  SIGPROF
//!         v
//!  the thread's signal handler                sys: registers and the top of the stack
//!         |
//!         v
//!  ring of slots                              ring: many writers, one reader, no lock
//!         |
//!         v
//!  Sampler::read, by the session's own thread
//! ```
//!
//! # The handler
//!
//! It interrupts the program anywhere: under a lock of the allocator, in the middle of an event, on a stack
//! with little room. So it takes no lock, allocates nothing, and calls nothing but the kernel. The stack is
//! copied by `process_vm_readv`, which ends at the first page that is not there instead of faulting; where
//! that is refused too, up to the end of the page of the stack pointer.
//!
//! A program that was built with frame pointers can be sampled at less cost: the handler follows their chain,
//! and records its addresses alone ([`Taken::FramePointers`]). It reads the stack by the same means.
//!
//! # What the program notices
//!
//! The signal is `SIGPROF`, and only if the program has left it alone. All calls go on after the handler
//! where the kernel can do that (`SA_RESTART`). A thread that blocks the signal gets no timer: it may wait
//! for signals by `sigwait`. A `SIGPROF` from elsewhere does what it does without a handler: it ends the
//! process.
//!
//! # Other moments
//!
//! [`Stacks`] has the same ring for samples that a thread takes of itself, by a call: of its allocations and
//! its events. [`Watch`] asks the threads of slow slices for them, by the same signal.
//!
//! # Limits
//!
//! The kernel looks at the timers at its ticks, 100 to 1000 times in a second ([`Sampler::frequency`]). A
//! thread that lives for less than 20 ms, or than [`Sampler::every`], may have no sample.

mod asking;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod chain;
mod here;
mod memory;
mod ring;
mod sampler;
mod sys;
mod watch;

pub use asking::Asked;
pub use here::{Here, Stacks, Undisturbed, from_here};
pub use ring::Note;
pub use sampler::{Clock, Earlier, Sample, Sampler, Taken, advice, as_record, frequency_of};
pub use watch::{Next, Watch, Watched};
