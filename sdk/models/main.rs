//! The protocols of the SDK's atomics under loom: every interleaving of two or three threads, and every value
//! that a weak load may return.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" cargo test -p hairline-shm-models --release --test sdk
//! ```
//!
//! The SDK as a whole cannot be built with loom's atomics, which constant statics do not allow. Each protocol
//! is therefore a file of its own, and this crate includes these very files: the code that ships is the code
//! that is modelled. One property a model. Beside each model stands which weakening of the code makes it
//! fail; each was tried.

#![cfg(loom)]
#![allow(unexpected_cfgs)] // the features of the SDK, which are off here

mod callsites;
mod clock;
mod flows;
mod heap;
mod heap_profile;
mod holders;
mod on;
mod slices;
mod spans;
mod spots;

/// Every interleaving with at most as many preemptions as `LOOM_MAX_PREEMPTIONS` says.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    loom::model::Builder::new().check(model);
}

/// How often a model ended in some way. A model that never comes to the race it is about proves nothing.
#[derive(Clone, Default)]
struct Seen(std::sync::Arc<std::sync::atomic::AtomicU64>);

impl Seen {
    fn note_if(&self, it_happened: bool) {
        self.0.fetch_add(u64::from(it_happened), std::sync::atomic::Ordering::Relaxed);
    }

    fn happened(&self) -> bool {
        self.0.load(std::sync::atomic::Ordering::Relaxed) > 0
    }
}
