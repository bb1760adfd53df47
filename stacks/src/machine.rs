//! The processor: the registers that unwinding needs.

/// The least number of bytes of a stack that a sample copies. With half of it, a quarter of the stacks of a
/// plain release build lose their root.
pub const LEAST_STACK: u32 = 8 << 10;

/// The largest number. A handler of an async runtime is deeper than [`LEAST_STACK`] as a rule.
const MOST_STACK: u32 = 32 << 10;

/// The time in ms that a ring has room for: its reader may get no processor for so long.
const ROOM_FOR: u64 = 50;

/// Returns the number of bytes of a stack that each sample copies, for rings of this size and this number of
/// samples in a second: as many as the ring has room for in 50 ms, from 8 to 32 KiB.
#[must_use]
pub fn stack_bytes(ring: u64, frequency: u32) -> u32 {
    let has_room = |stack: u32| u64::from(frequency) * u64::from(stack) / 1000 * ROOM_FOR <= ring;
    let mut stack = MOST_STACK;
    while stack > LEAST_STACK && !has_room(stack) {
        stack /= 2;
    }
    stack
}

/// The bytes of a section, which the modules of several processes share.
pub(crate) type Section = std::sync::Arc<[u8]>;

/// A stack pointer, and a frame pointer that no frame can have.
const STACK_POINTER: u64 = 1 << 32;
const FRAME_POINTER: u64 = 1 << 40;

#[cfg(target_arch = "x86_64")]
mod native {
    use super::{FRAME_POINTER, STACK_POINTER};
    use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};

    pub(crate) type Unwinder<D> = UnwinderX86_64<D>;
    pub(crate) type Cache = CacheX86_64;

    /// The user registers that a sample needs, for `Attributes::user_stack`: BP, SP and IP.
    pub const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;

    /// Returns the instruction, the stack pointer, and the registers for the unwinder.
    pub(crate) fn registers(words: &[u64]) -> Option<(u64, u64, UnwindRegsX86_64)> {
        let [bp, sp, ip] = *words else { return None };
        Some((ip, sp, UnwindRegsX86_64::new(ip, sp, bp)))
    }

    /// Returns the address of the code that a function returns to.
    pub(crate) const fn code_address(return_address: u64) -> u64 {
        return_address
    }

    /// Whether a function that has saved the return address and its caller's frame pointer at these places keeps
    /// the chain. Here it may have saved the register to use it for a number.
    pub(crate) const fn is_frame_record(_: u64, _: u64) -> bool {
        false
    }

    /// The words of `struct ucontext` of Linux: BP, SP, IP, and the segments, of which CS is 0x33 in all programs
    /// of 64 bits, and GS and FS are 0.
    const BP: u64 = 120;
    const SP: u64 = 160;
    const IP: u64 = 168;
    const SEGMENTS: u64 = 184;

    /// Returns the instruction and the registers that a signal has interrupted, for those of the frame that its
    /// handler returns to: the kernel has left them at its stack pointer. `None` if that is another frame.
    pub(crate) fn interrupted(
        registers: &UnwindRegsX86_64,
        mut word: impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<(u64, UnwindRegsX86_64)> {
        let mut at = |place: u64| word(registers.sp().checked_add(place)?).ok();
        let is_one = at(SEGMENTS)? << 16 == 0x33 << 16;
        let [bp, sp, ip] = [at(BP)?, at(SP)?, at(IP)?];
        is_one.then(|| (ip, UnwindRegsX86_64::new(ip, sp, bp)))
    }

    /// Returns registers that tell what a function's rule for its caller reads, and the frame pointer.
    pub(crate) fn far_apart() -> (UnwindRegsX86_64, u64) {
        (UnwindRegsX86_64::new(0, STACK_POINTER, FRAME_POINTER), FRAME_POINTER)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod native {
    use super::{FRAME_POINTER, STACK_POINTER};
    use framehop::aarch64::{CacheAarch64, PtrAuthMask, UnwindRegsAarch64, UnwinderAarch64};

    pub(crate) type Unwinder<D> = UnwinderAarch64<D>;
    pub(crate) type Cache = CacheAarch64;

    /// The user registers that a sample needs, for `Attributes::user_stack`: X29, LR, SP and PC.
    pub const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

    /// Returns the instruction, the stack pointer, and the registers for the unwinder.
    pub(crate) fn registers(words: &[u64]) -> Option<(u64, u64, UnwindRegsAarch64)> {
        let [fp, lr, sp, pc] = *words else { return None };
        Some((code_address(pc), sp, UnwindRegsAarch64::new_with_ptr_auth_mask(CODE, lr, sp, fp)))
    }

    /// The bits of an address of code. In the others a function may keep the signature of its return address
    /// (pointer authentication): the C library of most distributions does, where the processor can. Code is
    /// nowhere mapped beyond 48 bits, for which a program would have to ask.
    const CODE: PtrAuthMask = PtrAuthMask(u64::MAX >> 16);

    /// Returns the address of the code that a function returns to.
    pub(crate) const fn code_address(return_address: u64) -> u64 {
        return_address & CODE.0
    }

    /// Whether a function that has saved the return address and its caller's frame pointer at these places keeps
    /// the chain. Here the calling convention asks for both as one pair, to which the register then points: where
    /// its caller is, a function's rule says by the stack pointer all the same.
    pub(crate) const fn is_frame_record(one: u64, other: u64) -> bool {
        one.abs_diff(other) == size_of::<u64>() as u64
    }

    /// Here the kernel's own code has the frame that a handler returns to, with a rule.
    pub(crate) fn interrupted(
        _: &UnwindRegsAarch64,
        _: impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<(u64, UnwindRegsAarch64)> {
        None
    }

    /// Returns registers that tell what a function's rule for its caller reads, and the frame pointer.
    pub(crate) fn far_apart() -> (UnwindRegsAarch64, u64) {
        let registers = UnwindRegsAarch64::new_with_ptr_auth_mask(CODE, 0, STACK_POINTER, FRAME_POINTER);
        (registers, FRAME_POINTER)
    }
}

pub use native::REGISTERS;
pub(crate) use native::{Cache, Unwinder, code_address, far_apart, interrupted, is_frame_record, registers};

/// Returns the instruction of a sample's registers.
pub(crate) fn instruction(words: &[u64]) -> Option<u64> {
    registers(words).map(|(instruction, ..)| instruction)
}

/// Returns the stack pointer of a sample's registers.
pub(crate) fn stack_pointer(words: &[u64]) -> Option<u64> {
    registers(words).map(|(_, sp, _)| sp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "aarch64")]
    fn the_signature_of_a_return_address_is_no_part_of_it() {
        assert_eq!(code_address(0xb7e5_ffff_9000_1234), 0xffff_9000_1234);
        let (pc, _, registers) = registers(&[1, 0x2a5b_aaaa_d2f0_0ff0, 3, 0x0013_ffff_9000_1234]).unwrap();
        assert_eq!((pc, registers.lr()), (0xffff_9000_1234, 0xaaaa_d2f0_0ff0));
    }

    #[test]
    fn a_larger_ring_has_room_for_deeper_stacks() {
        let of_rings = [16 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20].map(|ring| stack_bytes(ring, 997));
        assert_eq!(of_rings, [8 << 10, 8 << 10, 16 << 10, 32 << 10, 32 << 10]);
        assert_eq!(stack_bytes(512 << 10, 97), 32 << 10, "fewer samples");
        assert_eq!(stack_bytes(u64::MAX, u32::MAX), 32 << 10);
    }
}
