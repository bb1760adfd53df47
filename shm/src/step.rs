//! The points between the stores on which recovery depends. A kill can come at each of them.

/// One such point. Does nothing, except in the unit tests of `ledger/`: they look at the region there.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(all(test, not(loom)))]
    hook::call();
}

#[cfg(all(test, not(loom)))]
pub(crate) mod hook {
    use std::cell::RefCell;

    thread_local! {
        static HOOK: RefCell<Option<Box<dyn FnMut()>>> = const { RefCell::new(None) };
    }

    /// Sets the function that each step of this thread calls.
    pub(crate) fn set(hook: Option<Box<dyn FnMut()>>) {
        HOOK.set(hook);
    }

    /// Calls the function. Steps inside of it do nothing.
    pub(super) fn call() {
        if let Some(mut hook) = HOOK.take() {
            hook();
            set(Some(hook));
        }
    }
}
