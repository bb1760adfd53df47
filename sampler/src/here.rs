//! Samples that threads take of themselves.

use std::io;
use std::marker::PhantomData;

use hairline_perf::Words;

use crate::ring::{Claimed, Note, Ring};
use crate::sampler::Sample;
use crate::sys::{self, REGISTERS, SignalMask, sample_at};

/// Blocks all signals of the calling thread until it is dropped.
///
/// A thread that claims a slot must fill it: a handler of the program that left by `siglongjmp` in
/// between, or a thread that was cancelled there, would hold up the reader for good. Two system calls,
/// together 0.4 us.
#[derive(Debug)]
pub struct Undisturbed {
    before: SignalMask,
    /// It restores the signals of the thread that made it.
    thread: PhantomData<*const ()>,
}

impl Undisturbed {
    /// Blocks all signals of the calling thread.
    #[must_use]
    #[allow(clippy::new_without_default)] // it has an effect
    pub fn new() -> Self {
        Self { before: sys::block_signals(), thread: PhantomData }
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        sys::restore_signals(self.before);
    }
}

/// A ring of samples that threads take of themselves, each with a note of three numbers.
///
/// ```
/// # #[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))] {
/// let stacks = hairline_sampler::Stacks::new(2, 4096)?;
/// let undisturbed = hairline_sampler::Undisturbed::new();
/// stacks.claim(&undisturbed).expect("a free slot").sample([1, 2, 3]);
/// drop(undisturbed);
/// let mut notes = Vec::new();
/// let position = stacks.read(0, |note, sample| notes.push((note, sample.stack.is_empty())));
/// assert_eq!((position, notes), (1, vec![([1, 2, 3], false)]));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Stacks(pub(crate) Ring);

/// A free slot of [`Stacks`], for one sample. A slot that is dropped without a sample holds up the reader for
/// good.
#[must_use = "a slot without a sample holds up the reader"]
pub struct Here<'s>(Claimed<'s>);

impl std::fmt::Debug for Here<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Here")
    }
}

impl Stacks {
    /// Creates a ring for at least this number of samples, each with up to `stack` bytes of a stack.
    ///
    /// # Errors
    /// Those of `mmap`; [`Unsupported`](io::ErrorKind::Unsupported) on other systems than Linux on x86-64 and
    /// aarch64.
    pub fn new(samples: u32, stack: u32) -> io::Result<Self> {
        Ring::new(samples, stack).map(Self)
    }

    /// Sets what samples from now on have of the stack: its top, or, `on`, the addresses of the chain of frame
    /// pointers, and no more than 512 bytes of the stack beyond the end of the chain: the functions that call
    /// the program's first one often have no frame pointers. Where the program has none either, a sample
    /// lacks callers.
    pub fn follow_frame_pointers(&self, on: bool) {
        self.0.follow_frame_pointers(on);
    }

    /// Claims a slot; `None` if none is free, which is counted. It neither waits nor allocates.
    pub fn claim<'s>(&'s self, _: &'s Undisturbed) -> Option<Here<'s>> {
        self.0.claim().map(Here)
    }

    /// Calls `each` with the notes and samples from `position` on, which is 0 in the first call, and in each
    /// other one what the call before has returned. One thread reads at a time.
    pub fn read(&self, position: u64, mut each: impl FnMut(Note, &Sample<'_>)) -> u64 {
        self.0.read(position, |head, passed, stack| {
            let (registers, call_chain) = (&head.registers[..REGISTERS], Words::of_bytes(passed));
            each(head.note, &Sample { registers, call_chain, stack });
        })
    }

    /// Returns the number of samples that found no free slot.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.0.lost()
    }
}

impl Here<'_> {
    /// Returns the number of samples before this one: a writer may wake the reader at each so many of them.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.0.position()
    }

    /// Copies no more than so many bytes of the stack, unless the sample is a chain of frame pointers.
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.0.at_most(bytes);
        self
    }

    /// Takes the sample: copies the registers and the top of the stack of the calling thread. The first frame
    /// is that of this function, or of the one into which it is inlined.
    pub fn sample(self, note: Note) {
        from_here(|frame| sample_at(self.0, frame, note));
    }

    /// As [`sample`](Self::sample), from the frame on that [`from_here`] passes to its function, while that
    /// runs.
    pub fn sample_from(self, frame: [u64; 3], note: Note) {
        sample_at(self.0, frame, note);
    }
}

/// Calls `take` with the registers of the function into which this call is compiled, for
/// [`Here::sample_from`]: the instruction, the stack pointer and the frame pointer. Whatever the compiler
/// inlines, and whichever calls it makes jumps: the frame of that function is there while `take` runs.
#[inline(always)]
pub fn from_here<R>(take: impl FnOnce([u64; 3]) -> R) -> R {
    let taken = take(sys::here());
    sys::stay();
    taken
}
