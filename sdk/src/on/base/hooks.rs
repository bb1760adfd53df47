//! Functions of the layers above that this layer calls. The layers above set them before the first session
//! starts.

#![allow(unsafe_code)] // a static behind an atomic pointer

use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

/// The functions of the layers above.
pub(crate) struct Hooks {
    /// The calling thread ends: releases all that it has of its session.
    pub(crate) thread_ends: fn(),
    /// This process is a forked child in which no fork handler has run.
    pub(crate) in_unhandled_child: fn(),
}

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(std::ptr::null_mut());

/// The time of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sampled {
    Regularly,
    /// The session has stopped recording, and records what it is given on its own thread alone.
    AtEnd,
}

/// Records values that nobody records when they change, for the session with this epoch. Returns the longest
/// time until the next call, `None` if the session does not record them.
pub(crate) type Sampler = fn(u32, Sampled) -> Option<Duration>;

/// What is sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Samples {
    Heap = 0,
    Process = 1,
}

/// The samplers, by [`Samples`].
static SAMPLERS: [AtomicPtr<()>; 2] = [const { AtomicPtr::new(std::ptr::null_mut()) }; 2];

/// Sets a sampler. Each call passes the same one. Allocates nothing and takes no lock.
pub(crate) fn set_sampler(of: Samples, sampler: Sampler) {
    SAMPLERS[of as usize].store(sampler as *mut (), Ordering::Release); // pairs with the Acquire in `sample`
}

/// Calls the samplers that there are. Returns the longest time until the next call, `None` if none is needed.
/// The session's own thread calls this, with nothing locked.
pub(crate) fn sample(epoch: u32, when: Sampled) -> Option<Duration> {
    let samplers = SAMPLERS.iter().filter_map(|sampler| {
        let sampler = sampler.load(Ordering::Acquire);
        if sampler.is_null() {
            return None;
        }
        // SAFETY: only `set_sampler` stores here, a `Sampler`.
        let sampler: Sampler = unsafe { std::mem::transmute(sampler) };
        sampler(epoch, when)
    });
    samplers.min()
}

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
