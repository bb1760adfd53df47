//! Call stacks of samples: unwound while the program runs, symbolised when it has ended, and written as
//! packets or FXT records.
//!
//! ```text
//!  records of the kernel's rings          hairline-perf
//!         |  Profile::add
//!         v
//!  order: by time                         the rings of two processors are read one after the other
//!         |
//!         v
//!  processes: mappings, unwinding         a file is opened when it is mapped, so that it may be replaced
//!         |                               later
//!         v
//!  table: frames and stacks, each once    a sample is then a time, a thread and the number of a stack
//!         |            |
//!         v            v
//!  packets | fxt     tape                 entries for a snapshot or a recovery
//!         ^            |
//!         |            v
//!  symbols --------- window               each address once, at the end
//! ```
//!
//! Unwinding is the work of [framehop](https://docs.rs/framehop), with the first bytes of the stack that the
//! kernel has copied: a build without frame pointers needs no change. Functions, inlined functions and lines
//! come from [addr2line](https://docs.rs/addr2line).
//!
//! What this crate reads belongs to other programs: files may be malformed, replaced while they are read, or
//! no files at all. They lead to frames without a function, never to a panic or to a mapping that ends below
//! this process.

mod file;
mod fxt;
mod machine;
mod names;
mod order;
mod packets;
mod present;
mod process;
mod profile;
mod section;
mod signal_frames;
mod symbols;
mod sys;
mod table;
mod tape;
mod units;
mod unwound;
mod vdso;
mod window;

pub use machine::{LEAST_STACK, REGISTERS, stack_bytes};
pub use order::{SampledAt, WRITING};
pub use profile::{
    Allocated, HeapMoment, HeapProfile, HeapProgress, HeapTotals, HeapWindow, HeapWriter, KeptAt, Profile,
    Totals,
};
pub use tape::is_sample;
pub use window::{Functions, Window};
