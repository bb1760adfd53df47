//! The processor: the registers that unwinding needs.

/// The first bytes of a stack that a sample copies. With half of it, a quarter of the stacks of a plain
/// release build lose their root.
pub const STACK_BYTES: u32 = 8192;

/// The bytes of a section, which the modules of several processes share.
pub(crate) type Section = std::sync::Arc<[u8]>;

#[cfg(target_arch = "x86_64")]
mod native {
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
}

#[cfg(not(target_arch = "x86_64"))]
mod native {
    use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};

    pub(crate) type Unwinder<D> = UnwinderAarch64<D>;
    pub(crate) type Cache = CacheAarch64;

    /// The user registers that a sample needs, for `Attributes::user_stack`: X29, LR, SP and PC.
    pub const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

    /// Returns the instruction, the stack pointer, and the registers for the unwinder.
    pub(crate) fn registers(words: &[u64]) -> Option<(u64, u64, UnwindRegsAarch64)> {
        let [fp, lr, sp, pc] = *words else { return None };
        Some((pc, sp, UnwindRegsAarch64::new(lr, sp, fp)))
    }
}

pub use native::REGISTERS;
pub(crate) use native::{Cache, Unwinder, registers};
