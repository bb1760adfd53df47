//! What this layer calls of the layers above it. They say what it is, before the first session starts.

#![allow(unsafe_code)] // a static behind an atomic pointer

use std::sync::atomic::{AtomicPtr, Ordering};

/// Functions of the layers above.
pub(crate) struct Hooks {
    /// The calling thread ends: it gives back what it has for its session.
    pub(crate) thread_ends: fn(),
    /// This process is a forked child, and no fork handler has run.
    pub(crate) in_unannounced_child: fn(),
}

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(std::ptr::null_mut());

/// Sets the functions: the same at each call.
pub(crate) fn set(hooks: &'static Hooks) {
    HOOKS.store(std::ptr::from_ref(hooks).cast_mut(), Ordering::Release); // pairs with the Acquire in `get`
}

/// The functions; `None` while there was nothing that could need them: no callsite was hit, and no session started.
pub(crate) fn get() -> Option<&'static Hooks> {
    // SAFETY: null, or from the `&'static` of `set`.
    unsafe { HOOKS.load(Ordering::Acquire).as_ref() }
}
