//! The atomics of this crate's protocols.
//!
//! Each protocol is a small file that uses only this module of the crate: `base/clock/published.rs`,
//! `base/heap/slots.rs`, `base/heap/profile/blocks.rs`, `base/spot.rs`, `callsite/word.rs`,
//! `callsite/link.rs`, `event/begun.rs`,
//! `event/track/few_slices.rs`, `bridges/locks/who.rs`, `bridges/tracing/cells/state.rs`,
//! `bridges/tracing/slots/count.rs`. The loom tests (`sdk/models`) compile the same files with loom's
//! atomics in place of these, so the models run the code that ships. The rest of the crate has constant
//! statics and thread-locals, which loom's atomics do not allow.

#[cfg(feature = "sampling")]
pub(crate) use core::sync::atomic::AtomicU8;
pub(crate) use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

/// Defines a function that is const, except under loom, whose atomics cannot be made at compile time.
macro_rules! const_unless_loom {
    (
        $(#[$meta:meta])*
        $vis:vis fn $name:ident($($argument:ident: $Argument:ty),*) -> $Type:ty $body:block
    ) => {
        $(#[$meta])*
        #[cfg(not(loom))]
        $vis const fn $name($($argument: $Argument),*) -> $Type $body

        $(#[$meta])*
        #[cfg(loom)]
        $vis fn $name($($argument: $Argument),*) -> $Type $body
    };
}
pub(crate) use const_unless_loom;
