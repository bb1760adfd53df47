//! The processor's counter, which a program reads without the system.
//!
//! | processor | counter      | ticks                                                          |
//! |-----------|--------------|----------------------------------------------------------------|
//! | x86-64    | the TSC      | as it is: some GHz                                             |
//! | aarch64   | `CNTVCT_EL0` | times 64: 19.2 MHz to 1 GHz, and a tick must be less than 1 ns |
//! | others    | none         |                                                                |
//!
//! # Order
//!
//! The counter is read without a barrier, `rdtsc` and `mrs` alike. So the processor may read it some
//! instructions earlier or later than the program says, by less than it can hold in flight: some hundred
//! instructions, which is the cost of an event. A barrier (`lfence`, `isb`) would cost more than the rest of
//! the event, and would move no event to a truer place.
//!
//! * **One thread.** Its times must not go back. Two reads of the TSC by one thread are in program order on
//!   each x86-64 that has an invariant one. On aarch64, reads of one system register appear in program order
//!   (Arm ARM, "Synchronization requirements for AArch64 System registers": read after read needs none), and
//!   `CNTVCT_EL0` never goes back. The compiler keeps them in order too: the `asm!` is volatile.
//! * **Two threads.** Times of two threads are compared only for flows. There a load must come before the
//!   read of the counter, and [`Begun`](crate::on::event::begun) has the barrier.
//! * **Samples.** A sample reads the counter, the system's clock and the counter again. The system's clock is
//!   this counter, read between barriers of its own. So its read is between the other two, as reads of one
//!   register are in order.

#![allow(unsafe_code)] // rdtsc, cpuid and mrs

pub(crate) use imp::{HAS_COUNTER, HAS_LONG_TICKS, is_steady, step, ticks};

#[cfg(target_arch = "x86_64")]
mod imp {
    /// Whether the processor has a counter.
    pub(crate) const HAS_COUNTER: bool = true;

    /// Whether a tick may be longer than an event.
    pub(crate) const HAS_LONG_TICKS: bool = false;

    /// Returns the ticks of the counter.
    #[inline(always)]
    pub(crate) fn ticks() -> u64 {
        // SAFETY: every x86-64 has rdtsc, and it touches no memory.
        unsafe { core::arch::x86_64::_rdtsc() }
    }

    /// Waits for the counter's next step. Returns its ticks after that, and the length of the step.
    #[inline]
    pub(crate) fn step() -> (u64, u64) {
        (ticks(), 0) // shorter than a read
    }

    /// Whether the counter ticks at one rate in all power states.
    pub(crate) fn is_steady() -> bool {
        use core::arch::x86_64::__cpuid;
        // Leaf 0x8000_0007, EDX bit 8: invariant TSC (Intel SDM vol. 3, "Invariant TSC").
        #[allow(unused_unsafe)] // a safe intrinsic in newer toolchains
        // SAFETY: every x86-64 has cpuid.
        unsafe {
            __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx & 1 << 8 != 0
        }
    }
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod imp {
    use core::arch::asm;

    /// Whether the processor has a counter.
    pub(crate) const HAS_COUNTER: bool = true;

    /// Whether a tick may be longer than an event: 1 to 52 ns.
    pub(crate) const HAS_LONG_TICKS: bool = true;

    /// The ticks are the counter's times 2 to this power, so that a tick is shorter than 1 ns from 15.7 MHz
    /// on. The ticks of a counter of 1 GHz wrap after 9 years; then time jumps as if the machine had been
    /// suspended.
    const SHIFT: u32 = 6;

    /// Returns the ticks of the counter.
    #[inline(always)]
    pub(crate) fn ticks() -> u64 {
        let count: u64;
        // SAFETY: reads a register. Linux, macOS, Windows and the BSDs let a program read it. Not `pure`, so
        // the compiler keeps the order of two reads.
        unsafe { asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
        count << SHIFT
    }

    /// The most reads in which a counter must step: some 10 us.
    const MOST_READS: u32 = 1000;

    /// Waits for the counter's next step. Returns its ticks after that, and the length of the step: a sample
    /// that begins anywhere inside of a step would be wrong by up to as much.
    pub(crate) fn step() -> (u64, u64) {
        let before = ticks();
        let mut reads = (0..MOST_READS).map(|_| ticks());
        reads.find(|now| *now != before).map_or((before, u64::MAX), |now| (now, now.wrapping_sub(before)))
    }

    /// Whether the counter ticks at one rate in all power states: the architecture promises it. A counter
    /// whose steps are longer than 2 us is not used. That may be more than its frequency says: an emulator's
    /// steps are.
    pub(crate) fn is_steady() -> bool {
        let frequency: u64;
        // SAFETY: reads a register, as above.
        unsafe { asm!("mrs {}, cntfrq_el0", out(reg) frequency, options(nomem, nostack, preserves_flags)) };
        let shortest = (0..4).map(|_| step().1).min().unwrap_or(u64::MAX); // the others were interrupted
        let per_second = frequency << SHIFT;
        per_second > 1_000_000_000 && shortest.saturating_mul(500_000) <= per_second
    }
}

#[cfg(not(any(target_arch = "x86_64", all(target_arch = "aarch64", not(miri)))))]
mod imp {
    /// Whether the processor has a counter: every session has the fallback.
    pub(crate) const HAS_COUNTER: bool = false;

    /// Whether a tick may be longer than an event: there is none.
    pub(crate) const HAS_LONG_TICKS: bool = false;

    /// Returns 0.
    #[inline(always)]
    pub(crate) fn ticks() -> u64 {
        0
    }

    /// Returns 0 and 0.
    pub(crate) fn step() -> (u64, u64) {
        (0, 0)
    }

    /// Returns false.
    pub(crate) fn is_steady() -> bool {
        false
    }
}
