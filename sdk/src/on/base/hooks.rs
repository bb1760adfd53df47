//! Functions of the layers above that this layer calls. The layers above set them before the first session
//! starts.

#![allow(unsafe_code)] // a static behind an atomic pointer

use std::sync::atomic::{AtomicPtr, Ordering};

/// The functions of the layers above.
pub(crate) struct Hooks {
    /// The calling thread ends: releases all that it has of its session.
    pub(crate) thread_ends: fn(),
    /// This process is a forked child in which no fork handler has run.
    pub(crate) in_unhandled_child: fn(),
}

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(std::ptr::null_mut());

/// Sets the functions. Each call passes the same functions.
pub(crate) fn set(hooks: &'static Hooks) {
    HOOKS.store(std::ptr::from_ref(hooks).cast_mut(), Ordering::Release); // pairs with the Acquire in `get`
}

/// Returns the functions; `None` before the first hit of a callsite and the first session, when no thread
/// needs them.
pub(crate) fn get() -> Option<&'static Hooks> {
    // SAFETY: null, or from the `&'static` of `set`.
    unsafe { HOOKS.load(Ordering::Acquire).as_ref() }
}
